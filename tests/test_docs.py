"""Every command and every piece of Python in the documentation runs as written."""

from __future__ import annotations

import ast
import csv
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import servers, tiny_models
from support.commands import Commands

import exampp
from exampp.demo import demo_files, write_tour

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)

pytest_plugins = ("support.tiny_models",)
pytestmark = pytest.mark.usefixtures("encoded_by_words")


@pytest.fixture
def folder(template: Path, tmp_path: Path) -> Path:
    """The files that the documentation speaks of, fresh for each page."""
    return shutil.copytree(template, tmp_path / "docs")


@pytest.fixture(scope="module")
def template(built: tiny_models.Build, demo_exam: Path, t5_taught: Path) -> Path:
    """The files that the documentation speaks of."""
    return built("docs", lambda folder: write_template(folder, demo_exam, t5_taught))


def write_template(folder: Path, graded: Path, model: Path) -> None:
    """Make them from the bundled example, `graded` being its collection, and a tiny `model`."""
    files = {path.name: path for path in demo_files()}
    (folder / "runs").mkdir()
    for name in ("bm25", "dense"):
        # two passages a query: fewer cells to be graded by a model
        lines = files[f"{name}.run"].read_text().splitlines(keepends=True)
        top = "".join(line for line in lines if int(line.split()[3]) <= 2)
        (folder / f"{name}.run").write_text(top)
        (folder / "runs" / f"{name}.run").write_text(top)
    shutil.copy(files["passages.jsonl"], folder)
    write_judged(folder / "judged.qrels", files)
    # the bank that made.exam is graded on; bank.csv has no subtopics, and so other items
    shutil.copy(files["questions.tsv"], folder)
    queries = [json.loads(line) for line in files["queries.jsonl"].read_text().splitlines()]
    rows = [f"{query['query_id']}\t{query['text']}\n" for query in queries]
    (folder / "queries.tsv").write_text("".join(rows))
    topics = (
        f"<top>\n<num> Number: {query['query_id']}\n<title> {query['text']}\n</top>\n"
        for query in queries
    )
    (folder / "topics.trec").write_text("".join(topics))
    questions = csv.DictReader(files["questions.tsv"].read_text().splitlines(), delimiter="\t")
    with (folder / "bank.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["query_id", "question"])
        writer.writerows([row["query_id"], row["question"]] for row in questions)
    renamed = (folder / "bank.csv").read_text().replace("query_id,question", "topic,Gold question")
    (folder / "gold.csv").write_text(renamed)
    with (folder / "topics.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["topic", "narrative"])
        writer.writerows([query["query_id"], query["text"]] for query in queries)
    (folder / "leaderboard.json").write_text(json.dumps({"dense": 1, "bm25": 2}))
    texts = [json.loads(row)["text"] for row in files["passages.jsonl"].read_text().splitlines()]
    (folder / "answers" / "notes").mkdir(parents=True)
    answers = []
    for query, text in zip(queries, texts, strict=False):
        answers.append({"query_id": query["query_id"], "system": "chat", "text": text})
        (folder / "answers" / "notes" / f"{query['query_id']}.md").write_text(f"**{text}**")
    rows = [json.dumps(answer) + "\n" for answer in answers]
    ids = [json.loads(row)["id"] for row in files["passages.jsonl"].read_text().splitlines()]
    cited = [
        {
            "query_id": one["query_id"],
            "system": "chat",
            "answer": [{"text": "So.", "citations": [p]}],
        }
        for one, p in zip(answers, ids, strict=False)
    ]
    (folder / "cited.jsonl").write_text("".join(json.dumps(one) + "\n" for one in cited))
    (folder / "answers.jsonl").write_text("".join(rows))
    ragas = [
        {
            "user_input": query["text"],
            "retrieved_contexts": [text, texts[0]],
            "response": text,
            "reference": text,
        }
        for query, text in zip(queries, texts, strict=False)
    ]
    (folder / "ragas.jsonl").write_text("".join(json.dumps(one) + "\n" for one in ragas))
    asked = [
        {"ticket": {"number": query["query_id"], "question": query["text"]}, "snippets": [text]}
        for query, text in zip(queries, texts, strict=False)
    ]
    (folder / "helpdesk.jsonl").write_text("".join(json.dumps(one) + "\n" for one in asked))
    preset = next(code for code in blocks(ROOT / "docs" / "reference" / "formats.md", "toml"))
    (folder / "helpdesk.toml").write_text(preset)
    shutil.copy(graded, folder / "made.exam")
    with exampp.Collection(folder / "made.exam") as collection:
        collection.export(folder / "graded.jsonl.gz")
    write_tour(folder / "tour")
    shutil.copy(folder / "graded.jsonl.gz", folder / "tour")
    with exampp.Collection.create(folder / "my.exam") as collection:
        collection.import_files(*(folder / name for name in STARTING))
    shutil.copy(folder / "my.exam", folder / "ada.exam")
    with exampp.Collection.create(folder / "keyed.exam") as collection:
        collection.import_files(*write_keyed(folder / "keyed"))
    shutil.copytree(model, folder / "google" / "flan-t5-large")


def write_judged(path: Path, files: dict[str, Path]) -> None:
    """Judgments of every ranked passage that has none."""
    judgments = files["judgments.qrels"].read_text()
    known = {tuple(line.split()[0:3:2]) for line in judgments.splitlines()}
    ranked = {
        tuple(line.split()[0:3:2])
        for name, file in files.items()
        if name.endswith(".run")
        for line in file.read_text().splitlines()
    }
    rows = (f"{query} 0 {passage} 0\n" for query, passage in sorted(ranked - known))
    path.write_text("".join(rows))


STARTING = ("queries.tsv", "passages.jsonl", "bank.csv", "bm25.run")


def write_keyed(folder: Path) -> list[Path]:
    """One query, one question with an answer key, one passage."""
    contents = {
        "bank.tsv": "query_id\tquestion\tanswer\nq\tWhat does yeast make?\tgas\n",
        "passages.jsonl": '{"passage_id": "p", "text": "Yeast turns sugar into gas."}\n',
        "one.run": "q Q0 p 1 1.0 one\n",
    }
    folder.mkdir()
    for name, content in contents.items():
        (folder / name).write_text(content)
    return [folder / name for name in contents]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """An OpenAI-compatible server on this machine, its address."""
    with servers.FaultServer() as started:
        yield started.url


def blocks(page: Path, language: str) -> list[str]:
    return [code for found, code in BLOCK.findall(page.read_text()) if found == language]


@pytest.fixture
def local_models(folder: Path, server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a command finds: the files, a server for every model, and no network."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("OPENAI_BASE_URL", server)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
@pytest.mark.usefixtures("local_models")
def test_commands(page: Path, exampp_command: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    if page.name in ("README.md", "first-exam.md"):
        # these run as they are printed on what `exampp demo --files` writes
        monkeypatch.chdir("tour")
    for block in blocks(page, "console"):
        for line in block.splitlines():
            assert line.startswith("$ exampp "), f"not a command: {line}"
            ran = exampp_command.line(line.removeprefix("$ "))
            assert ran.code == 0, f"{line}\n{ran.err}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python(page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    names: dict[str, object] = {}
    for code in blocks(page, "python"):
        exec(compile(code, str(page), "exec"), names)
    for left_open in names.values():
        if isinstance(left_open, exampp.Collection):
            left_open.close()


def test_the_tour_as_a_notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is kept without outputs; what each cell shows in the end is a table or a sentence."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    shown = run_notebook(ROOT / "docs" / "notebooks" / "tour.ipynb")
    imported, systems, function, draft, board, panel, measured, compared, *trusted, _ = shown
    assert '<th scope="row">passages</th>' in imported
    assert '<th scope="row">rerank</th>' in systems
    assert function == draft
    assert re.fullmatch(r"(\d+) of \1 cells done", draft)
    assert "graded by draft, bank main" in board
    assert "overlap-v1" in panel
    assert "FirstAnswer@5" in measured
    assert "dense compared with bm25" in compared
    assert all("<table" in one for one in trusted)


SHOWN = {
    "teaching": ("15 of 15 cells done", "(1.0, 0.667)", "repeating compared with careful"),
    "track": ("Cells to grade", "graded by overlap-v1", "leaderboard.json"),
    "weeks": ("18 of 18 cells done", "this week compared with last week", "cannot be told"),
}
"""What cells of the notebooks show, in their order."""


def test_every_notebook_is_run() -> None:
    found = (ROOT / "docs" / "notebooks").glob("*.ipynb")
    assert {path.stem for path in found} == {"tour", *SHOWN}


@pytest.mark.parametrize("name", SHOWN)
def test_a_notebook_tells_its_story(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is kept without outputs, and runs from top to bottom on what it brings along."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    whole = "\n".join(run_notebook(ROOT / "docs" / "notebooks" / f"{name}.ipynb"))
    places = [whole.find(text) for text in SHOWN[name]]
    assert -1 not in places
    assert places == sorted(places)


def run_notebook(path: Path) -> list[str]:
    """What each cell of code shows; a notebook is kept without outputs."""
    names: dict[str, Any] = {}
    shown = []
    for cell in json.loads(path.read_text())["cells"]:
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)
            shown.append(run_cell("".join(cell["source"]), names))
    return shown


def run_cell(source: str, names: dict[str, Any]) -> str:
    """Run a cell as a notebook does; what its last line shows, if it is an expression."""
    cell = ast.parse(source)
    last = cell.body[-1]
    if not isinstance(last, ast.Expr):
        exec(compile(cell, "cell", "exec"), names)
        return ""
    cell.body.pop()
    exec(compile(cell, "cell", "exec"), names)
    value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    return value._repr_html_() if hasattr(value, "_repr_html_") else repr(value)


SECTIONS = {
    "EXAM++": "1 2.1 2.2 3 4 4.1.1 4.1.2 4.2 4.2.1 4.2.2 4.3.1 4.3.2 5.1 5.2 5.3 5.4 5.5 5.6 A",
    "Autograding Workbench": "1 2.1 2.2 2.3 2.4 2.5 3 3.1 3.2 3.3 3.4 3.5 4 4.1 4.2 4.3 4.4 4.5 5"
    " 6",
    "FLAN-T5-EXAM": "1 2.1 2.2 2.4 2.5 3 3.1.1 3.1.2 3.1.3 3.2.1 3.2.2 3.2.3 3.3.1 3.3.2 4.1 4.2"
    " 4.3 4.4 4.5",
}
"""The sections of the papers that describe what a program does."""


def paper_rows() -> Iterator[tuple[str, str, str, str]]:
    """(paper, section, what the paper does, what stands for it here) of docs/appendix/papers.md."""
    paper = ""
    for line in (ROOT / "docs" / "appendix" / "papers.md").read_text().splitlines():
        if line.startswith("## "):
            paper = line.removeprefix("## ")
        elif paper in SECTIONS and line.startswith("| ") and not line.startswith("| section"):
            section, does, here = line.strip("| ").split(" | ")
            yield paper, section, does, here


def test_every_section_of_the_papers_has_a_row() -> None:
    rows = list(paper_rows())
    for paper, sections in SECTIONS.items():
        told = {section.split(",")[0] for of, section, _, _ in rows if of == paper}
        assert told == set(sections.split())
    for *_, here in rows:
        # a command, a place where there is one, or the reason why not
        assert re.search(r"`exampp|EXAM\+\+, \d|the same|not here: |\]\(", here), here


def test_every_departure_has_its_reason() -> None:
    text = (ROOT / "docs" / "reference" / "definitions.md").read_text()
    rows = text.partition("## Where we differ")[2].partition("\n## ")[0].splitlines()
    told = [row.strip("|").split("|") for row in rows if row.startswith("| ")]
    assert len(told) > 30
    for what, ours, _, why in told:
        assert what.strip(), what
        assert ours.strip(), what
        assert why.strip(), what


@pytest.mark.usefixtures("local_models")
def test_the_commands_of_the_papers_page(folder: Path, exampp_command: Commands) -> None:
    """From top to bottom."""
    write_for_papers(folder)
    wrong = []
    for paper, section, _, here in paper_rows():
        for command in re.findall(r"`exampp ([^`]+)`", here):
            if command == "serve":
                continue
            # a folder stands in for the model of the hub, and is called by its own name alone
            command = re.sub(r"\S+/(flan-t5-large[\w-]*:)", r"\1", command)
            ran = exampp_command.line(command)
            if ran.code:
                wrong.append(f"{paper} {section}: exampp {command}\n{ran.err}")
    assert not wrong, "\n".join(wrong)


def write_for_papers(folder: Path) -> None:
    """What the page of the papers speaks of besides: TQA, SQuAD, nuggets, qrels, a reader."""
    question = {
        "globalID": "NDQ_1",
        "questionType": "Multiple Choice",
        "beingAsked": {"processedText": "Outer layer of the skin?", "rawText": ""},
        "answerChoices": {
            "a": {"processedText": "dermis", "rawText": ""},
            "b": {"processedText": "epidermis", "rawText": ""},
        },
        "correctAnswer": {"processedText": "b", "rawText": ""},
    }
    lesson = {
        "globalID": "L_0384",
        "lessonName": "the integumentary system",
        "questions": {"nonDiagramQuestions": {"NDQ_1": question}, "diagramQuestions": {}},
    }
    (folder / "tqa.json").write_text(json.dumps([lesson]))
    answer = {"text": "gas", "answer_start": 23}
    asked = {"id": "1", "question": "What does yeast make?", "is_impossible": False}
    paragraph = {"context": "Yeast turns sugar into gas.", "qas": [{**asked, "answers": [answer]}]}
    squad = {"version": "v2.0", "data": [{"title": "t", "paragraphs": [paragraph]}]}
    (folder / "squad.json").write_text(json.dumps(squad))
    (folder / "nuggets.tsv").write_text("query_id\tnugget\nvolcanoes\tash is tephra\n")
    (folder / "judged.qrels").write_text("volcanoes 0 volcanoes-001 1\n")
    tiny_models.build_t5_reader(folder / "sjrhuschlee" / "flan-t5-large-squad2")


def test_every_command_is_documented() -> None:
    from exampp.cli.main import app

    text = "".join(page.read_text() for page in PAGES)
    for name, command in app.commands.items():
        assert f"exampp {name}" in text, f"no page mentions exampp {name}"
        assert command.help


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_changelog_knows_this_version() -> None:
    assert f"## {exampp.__version__} - " in (ROOT / "CHANGELOG.md").read_text()
