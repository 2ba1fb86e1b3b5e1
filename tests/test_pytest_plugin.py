"""The plug-in of pytest, in projects of its users."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

pytest_plugins = ("pytester",)

FAILS = 'exam.grades().gate(["Cover@20>=0.7"], systems=["chat-v2"])'
OPEN = 'exam.grades().gate(["Cover@20>=0.7"], systems=["dense"])'
PASSES = 'exam.grades().gate(["Cover@20>=0.2"], systems=["dense"])'
Run = Callable[..., pytest.RunResult]


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run pytest on the lines of a test, in a project without exampp's own settings."""
    monkeypatch.setenv("COLUMNS", "200")

    def run(lines: str, *options: object) -> pytest.RunResult:
        body = "\n    ".join(lines.splitlines())
        pytester.makepyfile(f"def test_exam(exam):\n    {body}\n")
        return run_files(pytester, *options)

    return run


def run_files(pytester: pytest.Pytester, *options: object) -> pytest.RunResult:
    # the plug-in may be installed, or not
    plugin = ("-p", "no:exampp", "-p", "exampp.integrations.pytest_plugin")
    return pytester.runpytest_inprocess(*plugin, "-p", "no:cacheprovider", *map(str, options))


def test_a_gate_that_fails_shows_verdict_and_items(run: Run, demo_exam: Path) -> None:
    found = run(f"{FAILS}.check()", "--exam", demo_exam)
    found.assert_outcomes(failed=1)
    found.stdout.fnmatch_lines(
        [
            "E*Gate failed: of 1 check, 1 failed. Not met: chat-v2 Cover@20>=0.7.",
            "E*chat-v2  Cover@20>=0.7  failed*",
            "E*Not covered: the items that cost most*",
            "E*chat-v2  vaccines*What is an antigen?*5 of 6 others*",
        ]
    )
    found.stdout.fnmatch_lines(["FAILED *::test_exam - *GateFailed: Gate failed: of 1 check*"])
    # the line of the test, and no line of exampp
    assert "def check" not in found.stdout.str()
    assert "test_a_gate_that_fails_shows_verdict_and_items.py:2: GateFailed" in found.stdout.str()


def test_a_plain_assertion_shows_the_same(run: Run, demo_exam: Path) -> None:
    lines = f'result = {FAILS}\nassert result.verdict == "passed"'
    found = run(lines, "--exam", demo_exam)
    found.assert_outcomes(failed=1)
    found.stdout.fnmatch_lines(
        ["*- exampp gate -*", "Gate failed: of 1 check*", "Not covered: the items that cost most"]
    )
    # a gate that passed explains nothing
    found = run(f"result = {PASSES}\nassert result.counts == 5", "--exam", demo_exam)
    found.assert_outcomes(failed=1)
    assert "- exampp gate -" not in found.stdout.str()


@pytest.mark.parametrize(("how", "outcome"), [("fail", "failed"), ("skip", "skipped")])
def test_an_undecided_gate_fails_or_is_skipped(
    run: Run, demo_exam: Path, how: str, outcome: str
) -> None:
    options = ("--exam", demo_exam, "--exam-undecided", how, "-rs")
    found = run(f"{OPEN}.check()", *options)
    found.assert_outcomes(**{outcome: 1})
    assert "Gate undecided: of 1 check" in found.stdout.str()
    # a failed gate and other assertions are never skipped
    run(f"{FAILS}.check()", *options).assert_outcomes(failed=1)
    run("assert 0", *options).assert_outcomes(failed=1)


def test_a_gate_file_in_the_settings(pytester: pytest.Pytester, demo_exam: Path) -> None:
    pytester.makeini("[pytest]\nexam = gates/gate.toml\n")
    (pytester.path / "gates").mkdir()
    gate = f'collection = "{demo_exam}"\nsystem = ["dense"]\nrequire = ["Cover@20>=BOUND"]\n'
    (pytester.path / "gates" / "gate.toml").write_text(gate.replace("BOUND", "0.2"))
    pytester.makepyfile(
        """
        def test_gate(exam_gate):
            exam_gate.check()

        def test_collection(exam, exam_gate):
            assert exam.path.name == "demo.exam"
            assert exam_gate.verdict == "passed"
        """
    )
    run_files(pytester).assert_outcomes(passed=2)
    # the option is relative to where it is typed, and overrides the settings
    (pytester.path / "strict.toml").write_text(gate.replace("BOUND", "0.9"))
    run_files(pytester, "--exam", "strict.toml").assert_outcomes(failed=2)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ([], "no exam is named: pytest --exam my.exam"),
        (["--exam", "missing.exam"], "missing.exam: no such file"),
        (["--exam", "bad.toml"], "bad.toml: missing collection"),
    ],
)
def test_what_is_missing_is_said_in_a_sentence(
    run: Run, pytester: pytest.Pytester, options: list[str], told: str
) -> None:
    (pytester.path / "bad.toml").write_text("margin = 0.1\n")
    found = run("pass", *options)
    found.assert_outcomes(errors=1)
    assert told in found.stdout.str()
    assert "Traceback" not in found.stdout.str()
    assert "pytest_plugin.py" not in found.stdout.str()


def test_a_collection_is_no_gate_file(pytester: pytest.Pytester, demo_exam: Path) -> None:
    pytester.makepyfile("def test_gate(exam_gate): pass")
    found = run_files(pytester, "--exam", demo_exam)
    found.assert_outcomes(errors=1)
    assert "is not a gate file: pytest --exam gate.toml" in found.stdout.str()


def test_a_project_that_does_not_use_it(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.fixture
        def exam():
            return "of the project"

        def test_own_fixture(exam):
            assert exam == "of the project"

        def test_failure():
            assert 1 == 2
        """
    )
    run_files(pytester).assert_outcomes(passed=1, failed=1)


def test_workers_share_an_exam(pytester: pytest.Pytester, demo_exam: Path) -> None:
    lines = "\n".join(f"def test_{n}(exam):\n    {PASSES}.check()" for n in range(3))
    pytester.makepyfile(f"{lines}\ndef test_fails(exam):\n    {FAILS}.check()\n")
    plugin = ("-p", "no:exampp", "-p", "exampp.integrations.pytest_plugin")
    options = ("-p", "no:cacheprovider", "--exam", str(demo_exam), "-n", "2")
    found = pytester.runpytest_subprocess(*plugin, *options)
    found.assert_outcomes(passed=3, failed=1)
    assert "Not covered: the items that cost most" in found.stdout.str()
