"""Some cases of the campaign of mutated files: a sentence, or success."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

CAMPAIGN = Path(__file__).parents[2] / "benchmarks" / "campaigns" / "mutated_files.py"


def test_mutated_files_of_every_format_are_a_sentence_or_success() -> None:
    spec = importlib.util.spec_from_file_location("mutated_files", CAMPAIGN)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(CAMPAIGN)
    campaign = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = campaign
    spec.loader.exec_module(campaign)
    findings, outcomes = campaign.run(seed=1, count=120)
    assert findings == []
    # the mutations neither spare nor destroy everything
    assert outcomes["read"] >= 12
    assert outcomes["refused"] >= 40
