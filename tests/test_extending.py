"""The sample package that adds one thing of each kind, installed and used; packages with faults."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import exams
from support.commands import Commands

import exampp
from exampp.bank import Bank
from exampp.cli.main import app
from exampp.formats.format import FORMATS
from exampp.formats.preset import PRESETS, presets
from exampp.graders.base import Request
from exampp.graders.options import declared_options
from exampp.graders.registry import GRADERS, RESERVED
from exampp.measures.names import MEASURES, parse_measure
from exampp.plugins import Registry
from exampp.prompts import find_prompt, load_grading_prompt
from exampp.prompts.catalogue import PROMPTS

ROOT = Path(__file__).parents[1]
SAMPLE = ROOT / "examples" / "exampp-sample"
REGISTRIES: tuple[Registry[Any], ...] = (GRADERS, PROMPTS, FORMATS, PRESETS, MEASURES)
CSV = """\
query,passage,rank,score,system
q1,p1,1,2.0,alpha
q1,p4,2,1.0,alpha
q2,p4,1,1.0,alpha
q1,p2,1,1.0,beta
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample package in a folder of its own."""
    folder = tmp_path_factory.mktemp("installed")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    command += ["--no-build-isolation", "--target", str(folder), str(SAMPLE)]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return folder


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    """No test leaves a plug-in to another."""

    def forget() -> None:
        for registry in REGISTRIES:
            registry._loaded.clear()
            registry._added.clear()
        presets.cache_clear()
        for name in [name for name in sys.modules if name.startswith(("exampp_sample", "other_"))]:
            del sys.modules[name]

    forget()
    yield
    forget()


@pytest.fixture
def sample(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(installed))


@pytest.fixture
def exam(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a small exam without rankings of its own, where commands run."""
    monkeypatch.chdir(tmp_path)
    files = exams.write_files(tmp_path / "files")
    with exampp.create("my.exam") as collection:
        collection.import_files(*(file for file in files if file.suffix != ".run"))
    (tmp_path / "two.csv").write_text(CSV)
    return tmp_path


def package(
    folder: Path, name: str, code: str, monkeypatch: pytest.MonkeyPatch, **points: str
) -> None:
    """Another package as it is when installed; `points` are group=name:what, group in short."""
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    module = f"other_{name}"
    (folder / f"{module}.py").write_text(code)
    info = folder / f"{name}-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    lines = []
    for group, said in points.items():
        lines += [f"[exampp.{group}]", said.replace("=", f" = {module}:"), ""]
    (info / "entry_points.txt").write_text("\n".join(lines))


@pytest.mark.usefixtures("sample")
def test_from_the_command_line(exam: Path, exampp_command: Commands) -> None:
    def run(line: str) -> str:
        ran = exampp_command.line(f"exampp {line}")
        assert ran.code == 0, f"{line}\n{ran.err}"
        return ran.out

    assert [line.split()[:3] for line in run("plugins --format tsv").splitlines()[1:]] == [
        ["grader", "shared-words", "exampp-sample"],
        ["prompt", "sample-yes-no", "exampp-sample"],
        ["format", "csv-run", "exampp-sample"],
        ["preset", "helpdesk", "exampp-sample"],
        ["measure", "AnswerRate", "exampp-sample"],
    ]
    assert "csv-run, 4 records" in run("import my.exam two.csv --as csv-run")
    assert "--enough" in run("grade --grader shared-words --help")
    assert "--enough" not in run("grade --help")
    run("grade my.exam --grader shared-words --enough 1")
    board = run("evaluate my.exam -m AnswerRate@1 -m Cover@1 --min-rating 5 --format tsv")
    rates = [line.split("\t")[:4] for line in board.splitlines() if "AnswerRate" in line]
    assert rates == [["alpha", "AnswerRate@1", "5", "0.5"], ["beta", "AnswerRate@1", "5", "0.5"]]
    run("plot heatmap my.exam -m AnswerRate@1 --output rate.svg")
    assert "AnswerRate@1" in (exam / "rate.svg").read_text()
    run("export my.exam again.csv --format csv-run")
    assert sorted((exam / "again.csv").read_text().splitlines()) == sorted(CSV.splitlines())
    assert "sample-yes-no" in run("prompts")
    assert "Say yes or no" in run("prompts sample-yes-no --toml")
    assert "Say yes or no" in run(
        "grade my.exam --grader shared-words --prompt sample-yes-no --dry-run"
    )


@pytest.mark.usefixtures("sample")
def test_from_python(exam: Path) -> None:
    with exampp.create("my.exam", exist_ok=True) as collection:
        collection.import_files("two.csv", kind="csv-run")
        collection.grade("shared-words", enough=1)
        grades = collection.grades("shared-words")
        # p1 and p2 share "air" with a question of q1, p4 nothing with any; beta leaves q2 out
        assert grades.evaluate(["AnswerRate"], min_rating=5).scores("AnswerRate") == {
            "alpha": 0.25,
            "beta": 0.5,
        }
        with pytest.raises(exampp.InputError, match="enough is 'x'"):
            collection.grade("shared-words", enough="x")
        with pytest.raises(
            exampp.InputError, match=r"no option --beams\. Its options are --enough, --kind"
        ):
            collection.grade("shared-words", beams=2)
        with pytest.raises(exampp.InputError, match="AnswerRate has no parameter"):
            grades.evaluate(["AnswerRate(p=1)"])
    assert load_grading_prompt("sample-yes-no").reading == "yes-no"
    grader = GRADERS.get("shared-words")
    assert grader is not None
    made = grader.make(grader.options(enough=2), load_grading_prompt("question-self-rating"))
    ((_, reply),) = made.answer([Request(1, "a blue sky", "The sky is blue.")])
    assert reply.text == "5"


LOG = """
{"ticket": {"number": 7, "question": "Why is the sky blue?"}, "release": "r2",
 "snippets": ["Air scatters blue light."], "reply": {"text": "Because of the air."}}
""".replace("\n", "")


@pytest.mark.usefixtures("sample")
@pytest.mark.parametrize("kind", [None, "helpdesk"])
def test_a_preset_of_a_package_is_detected_and_named(exam: Path, kind: str | None) -> None:
    (exam / "log.jsonl").write_text(LOG)
    assert exampp.explain_files("log.jsonl", kind=kind).files[0].kind.startswith("helpdesk (")
    with exampp.create("other.exam") as collection:
        collection.import_files("log.jsonl", kind=kind)
        assert collection.query_texts() == {"7": "Why is the sky blue?"}
        assert {one.system for one in collection.systems} == {"r2", "r2:contexts"}


@pytest.mark.parametrize(
    ("declared", "fault"),
    [
        ("name = 'mine'\n[fields]\nquery = ['a']\nresponse = ['b']", "its name is 'mine'"),
        ("name = 'bad'\n[fields]\ncontexts = ['a']", "names neither the question, nor"),
        ("name = 'bad'\nsystem_columns = '('", "is not a preset of RAG files"),
        ("name =", "invalid TOML"),
    ],
)
def test_a_wrong_preset_of_a_package_leaves_detection_alone(
    exam: Path, monkeypatch: pytest.MonkeyPatch, declared: str, fault: str
) -> None:
    package(exam / "site", "wrong", f"B = {declared!r}\n", monkeypatch, presets="bad=B")
    (plugin,) = PRESETS.plugins()
    assert fault in plugin.fault
    assert "ragas" in presets()
    assert "bad" not in presets()
    match = "preset .bad. of the package wrong"
    with exampp.create("new.exam") as new, pytest.raises(exampp.InputError, match=match):
        new.import_files("two.csv", kind="bad")


def test_without_the_package_nothing_is_known(exam: Path, exampp_command: Commands) -> None:
    for line, said in (
        ("import my.exam two.csv --as csv-run", "csv-run files cannot be imported"),
        ("export my.exam x.csv --format csv-run", "'csv-run'. Available: beir"),
        ("grade my.exam --grader shared-words", "unknown grader 'shared-words'"),
        ("prompts sample-yes-no", "unknown prompt 'sample-yes-no'"),
    ):
        ran = exampp_command.line(f"exampp {line}")
        assert (ran.code, said in ran.err) == (2, True), ran.err
    assert not (exam / "x.csv").exists()
    with pytest.raises(exampp.InputError, match="unknown measure 'AnswerRate'"):
        parse_measure("AnswerRate@1")


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("import nothing_such", "ModuleNotFoundError"),
        ("import sys; sys.exit(7)", "SystemExit: 7"),
        ("raise BaseException('\\x1b[31mred')", "BaseException: \ufffd[31mred"),
    ],
)
def test_a_package_that_cannot_be_loaded_ends_nothing_else(
    exam: Path, monkeypatch: pytest.MonkeyPatch, exampp_command: Commands, code: str, error: str
) -> None:
    points = {
        "graders": "bad=B",
        "prompts": "bad-prompt=B",
        "formats": "bad=B",
        "presets": "bad=B",
        "measures": "Bad=B",
    }
    package(exam / "site", "broken", f"{code}\n", monkeypatch, **points)
    for line in ("grade my.exam --grader bad", "prompts bad-prompt"):
        ran = exampp_command.line(f"exampp {line}")
        assert ran.code == 2
        assert f"of the package broken cannot be loaded: {error}" in ran.err
    with pytest.raises(exampp.InputError, match="'Bad' of the package broken cannot be loaded"):
        parse_measure("Bad@3")
    for line in ("prompts", "plugins", "grade my.exam --grader draft"):
        ran = exampp_command.line(f"exampp {line}")
        assert ran.code == 0, ran.err
    assert exampp_command.line("exampp plugins").out.count("cannot be loaded") == 5


def test_what_is_not_what_it_should_be_is_told(exam: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = """
import exampp
B = 1
from dataclasses import dataclass
@dataclass(frozen=True, kw_only=True)
class O(exampp.GraderOptions):
    bank: str = exampp.option("", "")
R = exampp.Backend(print, O)
F = exampp.Format("cells")
"""
    package(exam / "site", "odd", code, monkeypatch, graders="odd=B\nodd2=R", formats="odd=F")
    for registry, name, said in (
        (GRADERS, "odd", "of the package odd cannot be used: 1 is not an exampp.Backend"),
        (GRADERS, "odd2", "invalid option name 'bank'"),
        (FORMATS, "odd", "unknown role 'cells'. Use one of queries"),
    ):
        with pytest.raises(exampp.InputError, match=said):
            registry.get(name)


def test_every_option_beside_those_of_a_grader_is_reserved() -> None:
    methods = (exampp.Collection.grading, exampp.Collection.grade, Bank.generation, Bank.generate)
    names = {name for one in methods for name in inspect.signature(one).parameters}
    verbs: Any = app.commands
    for command in (verbs["grade"], verbs["bank"].commands["generate"]):
        names |= {str(parameter.name) for parameter in command.params}
    known = {name for one in GRADERS.built_in.values() for name in declared_options(one.options)}
    assert names - known - RESERVED == {"self", "options"}


def test_names_that_clash_are_told(exam: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = "import exampp\nB = exampp.Backend(print)\n"
    package(exam / "one", "one", backend, monkeypatch, graders="same=B\ndraft=B")
    package(exam / "two", "two", backend, monkeypatch, graders="same=B", measures="Own=B")
    with pytest.raises(exampp.InputError, match=r"'same' is declared by several packages: .* and"):
        GRADERS.get("same")
    assert GRADERS.get("draft") is GRADERS.built_in["draft"]
    faults = {one.name: one.fault for one in GRADERS.plugins()}
    assert "cannot be added: the name is built in" in faults["draft"]
    with pytest.raises(exampp.InputError, match="'Own' cannot be added: the package two"):
        exampp.measure("Own")(lambda _: 1)


def test_a_format_that_fails_changes_nothing(exam: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = """
import exampp
from exampp.records import Query
def read(path, how):
    yield Query("q9", "new")
    raise KeyError("x")
def odd(path, how):
    yield "q9"
def write(path, records):
    path.write_text("half"); raise ValueError("no room")
BAD = exampp.Format("queries", read, write)
ODD = exampp.Format("queries", odd)
"""
    package(exam / "site", "bad", code, monkeypatch, formats="bad=BAD\nodd=ODD")
    with exampp.create("my.exam", exist_ok=True) as collection:
        before = exams.tables(collection.path)
        with pytest.raises(exampp.InputError, match="failed after record 1: KeyError: 'x'"):
            collection.import_files("two.csv", kind="bad")
        with pytest.raises(
            exampp.InputError, match=r"record 1 .* is a str, not an exampp\.records\.Query"
        ):
            collection.import_files("two.csv", kind="odd")
        assert exams.tables(collection.path) == before
        Path("kept.x").write_text("kept")
        with pytest.raises(exampp.InputError, match="failed to write: ValueError: no room"):
            collection.export("kept.x", "bad")
        with pytest.raises(exampp.InputError, match="'odd'"):
            collection.export("kept.x", "odd")
    assert Path("kept.x").read_text() == "kept"


def test_a_grader_that_crashes_is_named_with_its_package(
    exam: Path, monkeypatch: pytest.MonkeyPatch, exampp_command: Commands
) -> None:
    code = """
import exampp
class Crash(exampp.Grader):
    settings = {"name": "crash"}
    def answer(self, requests):
        raise KeyError("no field")
CRASH = exampp.Backend(lambda options, prompt: Crash())
"""
    package(exam / "site", "crashing", code, monkeypatch, graders="crash=CRASH")
    ran = exampp_command("grade", "my.exam", "--grader", "crash")
    assert ran.code == 1
    assert "Crash.answer of the package crashing (" in ran.err
    assert "KeyError: 'no field'" in ran.err
    assert "Finished work is stored" in ran.err
    assert "defect of exampp" not in ran.err


def test_the_page_shows_the_sample_as_it_is() -> None:
    page = (ROOT / "docs" / "how-to" / "extending.md").read_text()
    for file in (SAMPLE / "pyproject.toml", *(SAMPLE / "exampp_sample").glob("[!_]*.py")):
        assert file.read_text().rstrip() in page, file


def test_nothing_is_looked_for_where_names_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    def look(**_: object) -> None:
        raise AssertionError

    monkeypatch.setattr("importlib.metadata.entry_points", look)
    for registry, name in zip(
        REGISTRIES, ("draft", "thomas", "bank", "ragas", "nDCG"), strict=True
    ):
        assert registry.get(name) is not None
    assert find_prompt("car-questions").name == "car-questions"
