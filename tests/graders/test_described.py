"""Help and signatures of methods that take the options of a backend."""

from __future__ import annotations

import inspect
import pydoc
from collections.abc import Callable
from typing import Any

import pytest

import exampp
from exampp.bank import Bank
from exampp.errors import InputError
from exampp.graders.options import declared_options
from exampp.graders.registry import BUILT_IN


@pytest.mark.parametrize("method", [exampp.Collection.grade, exampp.Collection.grading])
def test_help_of_grading_lists_the_options_of_every_backend(method: Callable[..., Any]) -> None:
    text = pydoc.plain(pydoc.render_doc(method))
    for backend in BUILT_IN.values():
        for name, one in declared_options(backend.options).items():
            assert (f"        {name}: {one.type.__name__}. {one.help}" in text) == one.shown
    parameters = inspect.signature(method).parameters
    assert {"bank", "depth", "dry_run", "temperature", "device", "options"} <= {*parameters}


def test_help_of_generation_lists_the_backends_that_write() -> None:
    text = pydoc.plain(pydoc.render_doc(Bank.generate))
    assert "Options of hf and openai:" in text
    assert "temperature: float." in text
    assert "least_mass" not in text
    assert {"prompt", "grounded", "on_reply"} <= {*inspect.signature(Bank.generate).parameters}


@pytest.mark.parametrize(
    ("grader", "option", "meant"),
    [("openai", "modle", "model"), ("draft", "dpth", "depth"), (lambda *_: 1, "scael", "scale")],
)
def test_a_misspelt_option_is_named(
    small_exam: exampp.Collection, grader: Any, option: str, meant: str
) -> None:
    options: Any = {option: 1}
    with pytest.raises(InputError, match=f"Did you mean '{meant}'"):
        small_exam.grade(grader, **options)
