"""Starting costs little: what is heavy loads when it is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = (
    "numpy",
    "polars",
    "onnxruntime",
    "torch",
    "transformers",
    "scipy",
    "ir_measures",
    "openai",
    "msgspec",
)


def loaded(code: str) -> set[str]:
    out = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return set(out.split()) & set(HEAVY)


@pytest.mark.parametrize(
    ("code", "allowed"),
    [
        ("import exampp", set()),
        ("import exampp.cli.main", set()),
        ("import exampp.integrations.pytest_plugin", set()),
        ("import exampp.collection", {"numpy"}),
    ],
)
def test_imports_are_cheap(code: str, allowed: set[str]) -> None:
    assert loaded(code) <= allowed
