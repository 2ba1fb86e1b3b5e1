"""The plug-in of pytest: an exam as a fixture, and gates whose failures explain themselves.

Installing exampp installs it. Nothing of exampp is imported before a test asks for a fixture; turn
it off with `-p no:exampp`.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from exampp.analysis.gate import GateResult
    from exampp.collection import Collection

_GATE = "exampp.analysis.gate"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options, and the setting `exam` of the configuration file."""
    group = parser.getgroup("exampp")
    group.addoption(
        "--exam",
        metavar="PATH",
        help="Collection, graded passages or gate file of the fixtures exam and exam_gate.",
    )
    group.addoption(
        "--exam-undecided",
        choices=("fail", "skip"),
        default="fail",
        help="Fail or skip tests whose gate is undecided because of too few queries.",
    )
    parser.addini("exam", "The default of --exam, relative to the root folder.", default="")


def _path(config: pytest.Config) -> Path:
    if given := config.getoption("exam"):
        return Path(config.invocation_params.dir, given)
    if setting := config.getini("exam"):
        return Path(config.rootpath, setting)
    pytest.fail(
        "no exam is named: pytest --exam my.exam, or exam = my.exam in the settings of pytest",
        pytrace=False,
    )


@contextmanager
def _explained() -> Iterator[None]:
    """Fail with the sentence of an error: what is wrong, where, how to fix it."""
    from exampp.errors import ExamError

    try:
        yield
    except ExamError as error:
        pytest.fail(str(error), pytrace=False)


@pytest.fixture(scope="session")
def exam(pytestconfig: pytest.Config) -> Iterator[Collection]:
    """Open the collection of --exam, or that of a gate file."""
    from exampp.collection import open as open_exam
    from exampp.project.gate_file import gate_inputs

    with _explained():
        collection, _ = gate_inputs(_path(pytestconfig))
        opened = open_exam(collection)
    with opened:
        yield opened


@pytest.fixture(scope="session")
def exam_gate(pytestconfig: pytest.Config) -> GateResult:
    """Run the gate file of --exam, once a session; `exam_gate.check()` fails a test."""
    from exampp.project.gate_file import gate_inputs, run_gate

    path = _path(pytestconfig)
    if path.suffix != ".toml":
        pytest.fail(f"{path} is not a gate file: pytest --exam gate.toml", pytrace=False)
    with _explained():
        return run_gate(*gate_inputs(path))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, Any, None]:
    """Show the gates of a failed test: verdict, requirements, and the items that cost most.

    A test whose gate is undecided is skipped, if that is wanted.
    """
    report: pytest.TestReport = (yield).get_result()
    gate = sys.modules.get(_GATE)
    if gate is None or not report.failed or call.excinfo is None:
        return
    error = call.excinfo.value
    if isinstance(error, gate.GateFailed):
        # its message has the gate
        wanted = item.config.getoption("exam_undecided") == "skip"
        if wanted and isinstance(error, gate.GateUndecided):
            file, line, _ = item.location
            report.outcome = "skipped"
            report.longrepr = (file, (line or 0) + 1, f"Skipped: {error.result.headline}")
        return
    found = {
        id(value): value
        for entry in call.excinfo.traceback
        for value in entry.frame.f_locals.values()
        if isinstance(value, gate.GateResult) and value.verdict != "passed"
    }
    report.sections += [("exampp gate", value.render().rstrip()) for value in found.values()]
