"""Some cases of the campaigns of damaged files: a sentence, or what the file holds."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

CAMPAIGNS = Path(__file__).parents[2] / "benchmarks" / "campaigns"


def campaign(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, CAMPAIGNS / f"{name}.py")
    if spec is None or spec.loader is None:
        raise FileNotFoundError(name)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_mutated_files_of_every_format_are_a_sentence_or_success() -> None:
    findings, outcomes = campaign("mutated_files").run(seed=1, count=120)
    assert findings == []
    # the mutations neither spare nor destroy everything
    assert outcomes["read"] >= 12
    assert outcomes["refused"] >= 40


def test_damaged_forms_of_programs_are_refused_or_read_in_part() -> None:
    findings, outcomes = campaign("mutated_forms").run(seed=1, count=60)
    assert findings == []
    assert outcomes["read"] >= 6
    assert outcomes["refused"] >= 20
