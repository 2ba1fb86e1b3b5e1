"""The matrix of files: a sample of every kind, made by hand, is read, written and compared."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, get_args

import pytest
from support import car_files, exams, forms

import exampp
from exampp.cli.collection import ExportFormat
from exampp.exports.stored import RESULT_KINDS, exported
from exampp.exports.table import RESULT_EXPORTS
from exampp.formats import leaderboards
from exampp.formats.format import built_in_formats
from exampp.formats.preset import presets
from exampp.inputs.loading import LOADERS

DOCS = Path(__file__).parents[2] / "docs" / "reference" / "formats.md"


class Layout(NamedTuple):
    """One row of the documented table."""

    kind: str
    looks: str
    source: str
    read: str
    written: str
    lossless: str


def layouts() -> Iterator[Layout]:
    for one in built_in_formats().values():
        if one.looks:
            read = "import" if one.holds in LOADERS else "`--official`, `--scores`"
            written = (one.exports or one.name) if one.lossless else ""
            yield Layout(one.name, one.looks, one.source, read, written, one.lossless)
    for preset in presets().values():
        looks = " ".join(preset.looks.split())
        yield Layout(preset.name, looks, preset.source, "import", "", "")


MATRIX = tuple(layouts())
BY_KIND = {layout.kind: layout for layout in MATRIX}
IMPORTED = [layout for layout in MATRIX if layout.read == "import"]


def markdown() -> str:
    """The table of the documentation; print it to bring the page up to date."""
    head = "| kind (`--as`) | what it looks like | source | read | `export --format` | lossless |"
    lines = [head, "|---|---|---|---|---|---|"]
    for one in MATRIX:
        written = f"`{one.written}`" if one.written else ""
        cells = (f"`{one.kind}`", one.looks, one.source, one.read, written, one.lossless)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


Q1 = exams.QUERIES["q1"]
P1 = exams.PASSAGES["p1"]


def lines(*rows: Any) -> str:
    return "".join(
        json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in rows
    )


HEAD = {"query_id": "q1", "query_text": Q1}
NUGGETS = [
    {"text": "air scatters", "importance": "vital", "reasoning": "r"},
    {"text": "red is long", "importance": "okay"},
]
GRADES = [
    {
        "correctAnswered": ["q1/a"],
        "wrongAnswered": [],
        "answers": [["q1/a", "4"]],
        "llm": "flan-t5",
        "llm_options": {"prompt_template": "generate_prompt"},
        "exam_ratio": 1.0,
        "prompt_info": {"prompt_class": "QuestionSelfRatedUnanswerablePromptWithChoices"},
        "self_ratings": [{"question_id": "q1/a", "self_rating": 4}],
    }
]
PASSAGE = {
    "paragraph_id": "p1",
    "text": P1,
    "paragraph": None,
    "paragraph_data": {
        "judgments": [{"paragraphId": "p1", "query": "q1", "relevance": 2}],
        "rankings": [
            {"method": "bm25", "paragraphId": "p1", "queryId": "q1", "rank": 1, "score": 2.5}
        ],
    },
    "exam_grades": GRADES,
}
SAMPLES: dict[str, tuple[str, str]] = {
    "queries": (
        "f",
        lines(
            {"query_id": "q1", "text": "a\tb ☃", "subtopics": [{"subtopic_id": "s", "text": "t"}]},
            {"query_id": "q2", "text": "", "subtopics": []},
        ),
    ),
    "passages": (
        "f",
        lines(
            {"passage_id": "p1", "text": " Air.\n", "title": "Sky", "url": "x", "n": [1, None]},
            {"passage_id": "p2", "text": "More."},
        ),
    ),
    "pool": ("f", lines({"query_id": "q1", "query": Q1, "passage_id": "p1", "text": "Air."})),
    "plain-bank": (
        "bank.csv",
        "query_id,query_text,subtopic_id,question,nugget,answer,weight\n"
        'q1,sky,,,Air scatters,,\nq1,sky,s,"Why, so?",,air | light,0.5\n',
    ),
    "questions": (
        "f",
        lines(
            {**HEAD, "qid": "q1/a", "question": "Why?", "correct": "air", "choices": {"A": "air"}},
            {**HEAD, "qid": "q1/b", "question": "How?", "gold_answers": ["x", "y"], "weight": 0.5},
            {"query_id": "q2", "query_text": "m", "qid": "n", "nugget": "N", "facet_id": "s"},
        ),
    ),
    "bank": (
        "f",
        lines(
            {
                "query_id": "q1",
                "facet_id": "s",
                "facet_text": "t",
                "test_collection": "tc",
                "query_text": Q1,
                "info": None,
                "items": [
                    {
                        "query_id": "q1",
                        "facet_id": "s",
                        "question_id": "q1/s/1",
                        "question_text": "Why?",
                        "gold_answers": ["air"],
                    }
                ],
            }
        ),
    ),
    "nuggetizer": ("f", lines({"query": Q1, "qid": "q1", "nuggets": NUGGETS, "more": 1})),
    "assignments": (
        "f",
        lines(
            {
                "query": Q1,
                "qid": "q1",
                "answer_text": "Air scatters.",
                "response_length": 2,
                "run_id": "alpha",
                "nuggets": [
                    {"text": "air scatters", "importance": "vital", "assignment": "support"},
                    {"text": "red", "importance": "okay", "assignment": "partial_support"},
                    {"text": "sea", "importance": "okay", "assignment": "not_support"},
                    {"text": "odd", "importance": "okay", "assignment": "failed"},
                ],
            }
        ),
    ),
    "argue": (
        "f",
        lines(
            {
                "query_id": "q1",
                "title_query": "sky",
                "format_version": "v3",
                "creator": [{"is_human": True}],
                "nugget_bank": {
                    "Why?": {
                        "question": "Why?",
                        "question_id": "1",
                        "query_id": "q1",
                        "importance": "okay",
                        "aggregator_type": "OR",
                        "answers": {"air": {"answer": "air", "references": ["d1"]}},
                        "sub_nuggets": [
                            {"question": "How?", "question_id": "2", "query_id": "q1"}
                        ],
                    }
                },
                "claim_bank": {"Old.": {"claim": "Old.", "claim_id": "3", "query_id": "q1"}},
            }
        ),
    ),
    "trec-nuggets": ("f", "q1\t1\tvital\tAir scatters\nq1\t2\tokay\tRed is long\n"),
    "ranked-questions": ("f", "q1\tt\tr\t1\tWhat scatters?\nq1\tt\tr\t2\tHow far?\n"),
    "workbench": ("f", lines(["q1", [PASSAGE]])),
    "run": ("f", "q1 Q0 p1 1 2.5 alpha\nq1 Q0 p2 2 -1.0 alpha\nq2 Q0 p3 7 0.5 beta\n"),
    "ranx": ("mine.json", lines({"q1": {"p2": 2.5, "p1": 0.25}, "q2": {"p3": 1.0}})),
    "candidates": (
        "f",
        lines(
            {
                "query": {"text": "new", "qid": "q7"},
                "candidates": [
                    {"docid": "d1", "score": 2.5, "doc": {"title": "T", "contents": "Air."}},
                    {"docid": "d2", "score": 0.5, "doc": {"contents": "Sea."}},
                ],
                "run_id": "rank_llm",
            }
        ),
    ),
    "qrels": ("f", "q1 0 p1 2\nq1 0 p2 -1\nq2 0 p3 0\n"),
    "ranx-qrels": ("qrels.json", lines({"q1": {"p1": 2}, "q2": {"p3": 0}})),
    "decisions": (
        "f",
        "decision\tat\tauthor\tquery\tbank\tkind\titem\titem_text\tpassage\tpassage_hash\tscale\t"
        "rating\tblind\tadjudicates\treason\n"
        "1\t2026-01-01T00:00:00+00:00\tann\tq1\tmain\tquestion\t"
        "q1/b5bb4d2d8d0e6a7c\tWhat does air scatter?\tp1\tHASH\tratings\t4\tyes\t\tclear\n",
    ),
    "report-decisions": (
        "decisions.json",
        lines(
            {
                "format": "exampp report decisions 1",
                "author": "ann",
                "grader": "GRADER",
                "bank": "main",
                "decisions": [
                    {
                        "query": "q1",
                        "item": "q1/b5bb4d2d8d0e6a7c",
                        "item_text": "What does air scatter?",
                        "passage": "p1",
                        "passage_hash": "HASH",
                        "rating": 4,
                        "at": "2026-01-01T00:00:00+00:00",
                    }
                ],
                "retire": [],
            }
        ),
    ),
    "responses": (
        "f",
        lines({"run_id": "a", "topic_id": "q1", "references": ["d"], "answer": [{"text": P1}]}),
    ),
    "umbrela": ("f", lines({"query": Q1, "passage": P1, "judgment": 3, "result_status": 1})),
    **{
        form.kind: (form.name, form.content)
        for form in (*reversed(forms.FORMS.values()), forms.FORMS["usual names"])
        if form.kind
    },
    "mt-bench-answers": ("f", lines({"question_id": "q1", "model_id": "alpha", "choices": [
        {"index": 0, "turns": ["Reefs."]}]})),
    "tqa": ("f", json.dumps([{"globalID": "L_1", "lessonName": "rocks", "questions": {
        "nonDiagramQuestions": {"NDQ_1": {
            "beingAsked": {"processedText": "Geologists study"},
            "answerChoices": {"a": {"processedText": "rocks"}},
            "correctAnswer": {"processedText": "a"},
        }}, "diagramQuestions": {}}}])),
    "leaderboard": ("f", "run1\tall\tCOVER\t0.25\nrun2\tall\tCOVER\t0.5\n"),
}  # fmt: skip


def _beir(folder: Path) -> Path:
    (folder / "qrels").mkdir(parents=True)
    (folder / "queries.jsonl").write_text(lines({"_id": "q1", "text": Q1}))
    (folder / "corpus.jsonl").write_text(lines({"_id": "p1", "title": "", "text": P1}))
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\tp1\t1\n")
    return folder


def _texts(folder: Path) -> Path:
    (folder / "alpha").mkdir(parents=True)
    (folder / "alpha" / "q1.txt").write_text(P1)
    return folder


def _dataset(folder: Path) -> Path:
    ir_datasets = pytest.importorskip("ir_datasets")
    from ir_datasets.formats import TrecQrels, TsvQueries
    from ir_datasets.util import LocalDownload

    folder.mkdir()
    (folder / "topics").write_text("q1\tblue\n")
    (folder / "qrels").write_text("q1 0 p1 1\n")
    dataset = ir_datasets.Dataset(
        TsvQueries(LocalDownload(folder / "topics"), lang="en"),
        TrecQrels(LocalDownload(folder / "qrels"), {0: "no", 1: "yes"}),
    )
    name = f"matrix-{folder.parent.name}"
    ir_datasets.registry.register(name, dataset)
    return Path(f"irds:{name}")


def _car(kind: int, items: list[Any]) -> Callable[[Path], Path]:
    return lambda path: car_files.write(path, kind, items)


MADE: dict[str, Callable[[Path], Path]] = {
    "beir": _beir,
    "texts": _texts,
    "dataset": _dataset,
    "car-topics": _car(1, car_files.TOPICS),
    "car-paragraphs": _car(2, car_files.PARAGRAPHS),
}
ON_THE_EXAM = (
    *("run", "ranx", "qrels", "ranx-qrels", "decisions", "responses", "texts", "umbrela"),
    *("report-decisions", "mt-bench-answers"),
)
"""Kinds that name queries, passages and items that must be there."""


def sample(kind: str, folder: Path) -> Path:
    if kind in MADE:
        return MADE[kind](folder / "sample")
    name, content = SAMPLES[kind]
    (folder / name).write_text(content, encoding="utf-8")
    return folder / name


def collection(kind: str, path: Path) -> exampp.Collection:
    """Return the collection that a sample is imported into: the small exam if it builds on one."""
    made = exampp.Collection.create(path)
    if kind in ON_THE_EXAM:
        queries, passages, questions, *_ = exams.write_files(path.parent / "files")
        made.import_files(queries, passages, questions)
    if kind == "report-decisions":
        made.add(runs={"alpha": {"q1": ["p1"]}})
        made.grade("draft")
    return made


def rows(path: Path) -> list[Any]:
    """The lines of a file as what they say: JSON values, or texts; of BEIR's folder those of its
    three files.
    """
    if path.is_dir():
        inside = (rows(path / one) for one in ("queries.jsonl", "corpus.jsonl", "qrels/test.tsv"))
        return [line for lines_of in inside for line in lines_of]
    content = path.read_text(encoding="utf-8").splitlines()
    return [json.loads(one) if one.startswith(("{", "[")) else one for one in content]


def test_the_documented_programs_are_the_forms() -> None:
    assert forms.markdown() in DOCS.with_name("programs.md").read_text(encoding="utf-8")


def test_the_documented_table_is_the_matrix() -> None:
    assert markdown() in DOCS.read_text(encoding="utf-8")
    assert len(BY_KIND) == len(MATRIX)


def test_the_matrix_is_what_the_code_reads_and_writes() -> None:
    written = {layout.written for layout in MATRIX if layout.written}
    # croissant is the folder of beir with one more file
    assert written | {"croissant"} == set(exported())
    assert {*exported(), *RESULT_EXPORTS} == set(get_args(ExportFormat))
    assert tuple(RESULT_EXPORTS) == RESULT_KINDS
    assert SAMPLES.keys() | MADE.keys() == set(BY_KIND)


@pytest.mark.parametrize("layout", IMPORTED, ids=lambda layout: layout.kind)
def test_a_sample_is_read_written_and_read_again(layout: Layout, tmp_path: Path) -> None:
    path = sample(layout.kind, tmp_path)
    with collection(layout.kind, tmp_path / "one.exam") as opened:
        if layout.kind in ("decisions", "report-decisions"):
            _complete(opened, path)
        report = opened.import_files(path)
        if layout.kind in presets():
            holds = {
                "healthbench": {"queries", "plain-bank"},
                "langsmith-examples": {"queries", "plain-bank"},
                "judgment-lists": {"queries", "qrels"},
                "dragun": {"plain-bank"},
                "mt-bench": {"queries"},
                "mtrag-questions": {"queries"},
                "mt-bench-answers": {"responses"},
            }.get(layout.kind, {"queries", "responses"})
            assert holds <= {file.kind for file in report.files}
        else:
            assert [file.kind for file in report.files] == [layout.kind]
        assert report.changes > 0
        if layout.kind not in presets():
            # the sample of queries has one without text; a run names its bank
            remarks = {
                "queries": [f"{path}: 1 query without text, the first is 'q2'"],
                "ranked-questions": [f"{path}: read as the bank r"],
            }
            assert list(report.remarks) == remarks.get(layout.kind, [])
        if not layout.written:
            return
        out = tmp_path / f"out{path.suffix}"
        opened.export(out, layout.written)
    assert layout.lossless.startswith("yes")
    assert rows(out) == rows(path)
    again = tmp_path / path.name if layout.kind == "ranx" else out
    if layout.kind == "ranx":
        again.write_bytes(out.read_bytes())
    with collection(layout.kind, tmp_path / "two.exam") as second:
        told = second.import_files(again)
        assert [file.kind for file in told.files] == [layout.kind]
        second.export(tmp_path / "second", layout.written) if not path.suffix else None
    if not path.suffix:
        content = rows if out.is_dir() else Path.read_bytes
        assert content(tmp_path / "second") == content(out)


def _complete(opened: exampp.Collection, path: Path) -> None:
    """Put the item's id and the passage's hash into the sample, which are made from the texts."""
    out = opened.path.parent / "bank.jsonl"
    opened.export(out, "bank")
    items = [item for row in rows(out) for item in row["items"]]
    (item_id,) = [i["question_id"] for i in items if i["question_text"] == "What does air scatter?"]
    from exampp.records.ids import text_hash

    content = path.read_text().replace("HASH", text_hash("", P1).hex())
    content = content.replace("GRADER", next((one.key for one in opened.graders), ""))
    path.write_text(re.sub(r"q1/b5bb4d2d8d0e6a7c", item_id, content))


def test_the_sample_of_a_leaderboard_is_read_where_the_matrix_says(tmp_path: Path) -> None:
    path = sample("leaderboard", tmp_path)
    assert BY_KIND["leaderboard"].read == "`--official`, `--scores`"
    assert leaderboards.read(path) == {"run1": 2.0, "run2": 1.0}
    with (
        exampp.Collection.create(tmp_path / "my.exam") as opened,
        pytest.raises(exampp.InputError, match="leaderboard files cannot be imported"),
    ):
        opened.import_files(path)
