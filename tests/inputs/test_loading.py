"""Every kind of system output: imported, pooled, graded by the draft grader, evaluated."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from support import car_files, exams

import exampp
from exampp import Collection
from exampp.formats import car
from exampp.formats.fields import text_digest as passage_id
from exampp.results.result import Table

P = exams.PASSAGES


def jsonl(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def bank(folder: Path) -> Path:
    path = folder / "bank.tsv"
    path.write_text(
        "query_id\tquestion\n"
        + "".join(f"{q}\t{text}\n" for q, texts in exams.QUESTIONS.items() for text in texts)
    )
    return path


def queries(folder: Path) -> Path:
    path = folder / "queries.json"
    path.write_text(json.dumps(exams.QUERIES))
    return path


def cells(collection: exampp.Collection) -> int:
    """The cells of the questions, as the pool's table says."""
    _, banks = collection.pool()
    return next(int(str(row[3] or 0)) for row in banks.rows if row[1] == "question")


def scores(collection: exampp.Collection, cell_count: int) -> dict[str, float]:
    """Grade with the draft grader; the systems' cover at a rating of 1.

    The pool's table must have foretold the cells.
    """
    assert cells(collection) == cell_count
    assert collection.grade("draft").done == cell_count
    board = collection.grades().evaluate(["Cover@20"], min_rating=1)
    return {row["system"]: row["mean"] for row in board.to_polars().to_dicts()}


def by_system(table: Table) -> dict[str, tuple[Any, ...]]:
    return {str(row[0]): row[1:] for row in table.rows}


def runs_of(collection: exampp.Collection, folder: Path) -> list[str]:
    collection.export(folder / "out.run", "runs")
    return (folder / "out.run").read_text().splitlines()


CORPUS = [{"id": key, "text": text} for key, text in P.items()]


@pytest.fixture
def collection(tmp_path: Path) -> Iterator[exampp.Collection]:
    with exampp.Collection.create(tmp_path / "my.exam") as opened:
        opened.import_files(queries(tmp_path), bank(tmp_path))
        yield opened


# ---- runs and a corpus ---------------------------------------------------------------------------


def run_file(folder: Path) -> Path:
    path = folder / "systems.run"
    path.write_text(exams.RUN + "q2 Q0 absent 2 0.5 beta\n")
    return path


def test_runs_with_a_corpus(collection: exampp.Collection, tmp_path: Path) -> None:
    corpus = jsonl(tmp_path / "corpus.jsonl", {"id": "never", "text": "Nobody wants me."}, *CORPUS)
    report = collection.import_files(run_file(tmp_path), corpus=corpus)
    assert report.after["passages"] == 4  # and not the fifth
    assert report.missing == ("absent",)
    assert report.findings.rows == (("corpus", "passages without a text", 1, "absent"),)
    systems, _ = collection.pool()
    assert systems.caption.startswith("6 passages of 2 queries")
    # system: queries, passages, shared, without text, depths
    assert by_system(systems) == {
        "alpha": (2, 3, 0, 0, 1, 1.5, 2),
        "beta": (2, 3, 0, 1, 1, 1.5, 2),
    }
    found = scores(collection, 3 * 2 + 2 * 1)
    assert found["alpha"] > found["beta"]
    assert collection.import_files(tmp_path / "systems.run", corpus=corpus).changes == 0


def test_a_corpus_without_any_of_the_passages_is_told(
    collection: exampp.Collection, tmp_path: Path
) -> None:
    corpus = jsonl(tmp_path / "corpus.jsonl", *({**one, "id": f"x{one['id']}"} for one in CORPUS))
    with pytest.raises(exampp.InputError, match="none of the 5 passages without text, such as"):
        collection.import_files(run_file(tmp_path), corpus=corpus)
    assert runs_of(collection, tmp_path) == []


@pytest.mark.parametrize("layout", ["folder", "tsv", "late id", "escaped id", "gz"])
def test_corpora_of_any_layout(layout: str, collection: exampp.Collection, tmp_path: Path) -> None:
    import gzip

    corpus = tmp_path / "corpus"
    if layout == "folder":
        (corpus / "b").mkdir(parents=True)
        jsonl(corpus / "a.jsonl", *CORPUS[:2])
        (corpus / "b" / "c.tsv").write_text("".join(f"{r['id']}\t{r['text']}\n" for r in CORPUS))
        (corpus / "README.md").write_text("not a corpus file")
    elif layout == "tsv":
        corpus.write_text("".join(f"{row['id']}\t{row['text']}\n" for row in CORPUS))
    elif layout == "late id":
        nested = ({"meta": {"_id": "x"}, "text": r["text"], "_id": r["id"]} for r in CORPUS)
        jsonl(corpus, *nested)
    elif layout == "escaped id":
        corpus.write_text("".join(json.dumps(r).replace("p", "\\u0070") + "\n" for r in CORPUS))
    else:
        corpus.write_bytes(gzip.compress("".join(json.dumps(r) + "\n" for r in CORPUS).encode()))
    report = collection.import_files(run_file(tmp_path), corpus=corpus)
    assert report.missing == ("absent",)
    assert report.after["passages"] == 4


def test_only_the_top_of_each_run_is_taken(collection: exampp.Collection, tmp_path: Path) -> None:
    lines = [f"q1 Q0 d{n} {n} {100 - n} s" for n in range(1, 50)]
    lines += ["q1 Q0 tie-b 3 97.0 s", "q1 Q0 tie-a 3 97.0 s"]
    (tmp_path / "s.run").write_text("\n".join(reversed(lines)) + "\n")
    corpus = jsonl(
        tmp_path / "c.jsonl", *({"id": f"d{n}", "text": f"Text {n}."} for n in range(50))
    )
    report = collection.import_files(tmp_path / "s.run", corpus=corpus, depth=4)
    # by rank, then score, then id: d3 comes before tie-a, which comes before tie-b
    assert [line.split()[2] for line in runs_of(collection, tmp_path)] == [
        "d1",
        "d2",
        "d3",
        "tie-a",
    ]
    assert report.missing == ("tie-a",)


def test_a_dataset_of_ir_datasets(tmp_path: Path, empty_exam: exampp.Collection) -> None:
    ir_datasets = pytest.importorskip("ir_datasets")
    from ir_datasets.formats import TrecQrels, TsvDocs, TsvQueries
    from ir_datasets.util import LocalDownload

    def local(name: str, content: str) -> Any:
        path = tmp_path / name
        path.write_text(content)
        return LocalDownload(path)

    docs = local("docs.tsv", "".join(f"{key}\t{text}\n" for key, text in P.items()))
    topics = local("topics.tsv", "".join(f"{key}\t{text}\n" for key, text in exams.QUERIES.items()))
    dataset = ir_datasets.Dataset(
        TsvDocs(docs, namespace="tiny", lang="en"),
        TsvQueries(topics, lang="en"),
        TrecQrels(local("qrels", exams.QRELS), {0: "no", 1: "some", 2: "more", 3: "yes"}),
    )
    name = f"tiny-{tmp_path.name}"
    ir_datasets.registry.register(name, dataset)
    report = empty_exam.import_files(f"irds:{name}", run_file(tmp_path), bank(tmp_path))
    assert report.after["queries"] == 2
    assert report.after["judgments"] == 4
    assert report.missing == ("absent",)
    found = scores(empty_exam, 3 * 2 + 2 * 1)
    assert found["alpha"] > found["beta"]


# ---- TREC CAR ------------------------------------------------------------------------------------


@pytest.mark.parametrize("headed", [True, False])
@pytest.mark.parametrize("as_corpus", [True, False])
def test_trec_car(
    headed: bool, as_corpus: bool, tmp_path: Path, empty_exam: exampp.Collection
) -> None:
    kinds = (1, 2) if headed else (None, None)
    outlines = car_files.write(tmp_path / "outlines.cbor", kinds[0], car_files.TOPICS)
    paragraphs = car_files.write(tmp_path / "paragraphs.cbor", kinds[1], car_files.PARAGRAPHS)
    (tmp_path / "car.run").write_text(car_files.RUN)
    (tmp_path / "car.qrels").write_text(car_files.QRELS)
    (tmp_path / "bank.tsv").write_text(car_files.BANK)
    files = [outlines, tmp_path / "car.run", tmp_path / "car.qrels", tmp_path / "bank.tsv"]
    if as_corpus:
        report = empty_exam.import_files(*files, corpus=paragraphs)
    else:
        report = empty_exam.import_files(*files, paragraphs)
    assert report.after["subtopics"] == 4
    assert report.after["passages"] == (3 if as_corpus else 4)
    found = scores(empty_exam, 2 * 2 + 1)
    assert found["alpha"] > found["beta"]
    written = [line.split()[0] for line in runs_of(empty_exam, tmp_path)]
    assert "tqa2:L_0002/T_0016/T_0016a" in written
    if as_corpus:
        assert empty_exam.import_files(*files, corpus=paragraphs).changes == 0


def test_the_track_s_own_reader_reads_the_same(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        read_data = pytest.importorskip("trec_car.read_data")
    outlines = car_files.write(tmp_path / "o.cbor", 1, car_files.TOPICS)
    paragraphs = car_files.write(tmp_path / "p.cbor", 2, car_files.PARAGRAPHS)
    with outlines.open("rb") as stream:
        theirs = [
            (
                page.page_id,
                ["/".join(s.headingId for s in path) for path in page.flat_headings_list()],
            )
            for page in read_data.iter_outlines(stream)
        ]
    ours = [(q.query_id, [f.subtopic_id for f in q.subtopics]) for q in car.read_topics(outlines)]
    assert ours == theirs
    with paragraphs.open("rb") as stream:
        texts = [(p.para_id, p.get_text()) for p in read_data.iter_paragraphs(stream)]
    assert [(p.passage_id, p.text) for p in car.read_paragraphs(paragraphs)] == texts


# ---- generated -----------------------------------------------------------------------------------

SENTENCES = {"q1": [P["p1"], P["p2"]], "q2": [P["p3"]]}


def rag_24(query: str, system: str, texts: list[str]) -> dict[str, Any]:
    return {
        "run_id": system,
        "topic_id": query,
        "topic": exams.QUERIES.get(query, query),
        "references": ["doc#1", "doc#2"],
        "response_length": 9,
        "answer": [{"text": text, "citations": [number]} for number, text in enumerate(texts)],
    }


def rag_25(query: str, system: str, texts: list[str]) -> dict[str, Any]:
    old = rag_24(query, system, texts)
    metadata = {"team_id": "t", "run_id": system, "type": "automatic", "narrative_id": query}
    return {"metadata": metadata, "references": old["references"], "answer": old["answer"]}


def ragtime(query: str, system: str, texts: list[str]) -> dict[str, Any]:
    metadata = {"team_id": "t", "run_id": system, "topic_id": query, "use_starter_kit": 1}
    responses = [{"text": text, "citations": {f"doc#{n + 1}": 0.5}} for n, text in enumerate(texts)]
    return {"metadata": metadata, "responses": responses, "references": ["doc#1", "doc#2"]}


def plain(query: str, system: str, texts: list[str]) -> dict[str, Any]:
    return {"query_id": query, "system": system, "text": " ".join(texts)}


@pytest.mark.parametrize("form", [rag_24, rag_25, ragtime, plain])
def test_generated_responses(form: Any, collection: exampp.Collection, tmp_path: Path) -> None:
    rows = [form(query, "alpha", texts) for query, texts in SENTENCES.items()]
    rows += [form("q1", "beta", [P["p4"]]), form("q2", "beta", [P["p3"]])]
    path = jsonl(tmp_path / "generated.jsonl", *rows)
    report = collection.import_files(path)
    assert [one.kind for one in report.files] == ["responses"]
    # alpha's two short sentences are one passage; both systems' answer to q2 is one passage
    assert report.after["passages"] == 3
    systems, _ = collection.pool()
    assert by_system(systems)["alpha"][:3] == (2, 2, 1)
    joined = f"{P['p1']} {P['p2']}"
    assert f"q1 Q0 {passage_id(joined)} 1 1.0 alpha" in runs_of(collection, tmp_path)
    found = scores(collection, 2 * 2 + 1)
    assert found["alpha"] > found["beta"]
    assert collection.import_files(path).changes == 0
    if form is not plain:
        collection.export(tmp_path / "graded.jsonl")
        line = json.loads((tmp_path / "graded.jsonl").read_text().splitlines()[0])
        cited = [r for p in line[1] for r in p["paragraph_data"]["rankings"]]
        assert [r["citations"] for r in cited if r["method"] == "alpha"] == [["doc#1", "doc#2"]]


@pytest.mark.parametrize(
    ("form", "where", "key"),
    [(rag_24, "", "topic"), (rag_25, "metadata", "narrative"), (plain, "", "query")],
)
def test_a_response_says_what_was_asked(
    form: Any, where: str, key: str, collection: exampp.Collection, tmp_path: Path
) -> None:
    rows = [form(query, "alpha", [P["p3"]]) for query in ("q1", "q9")]
    for row in rows:
        (row[where] if where else row)[key] = "what do compasses do?"
    collection.import_files(jsonl(tmp_path / "generated.jsonl", *rows))
    collection.export(tmp_path / "out.json", "queries")
    texts = json.loads((tmp_path / "out.json").read_text())
    assert texts["q9"] == "what do compasses do?"
    # a text that the collection has stays
    assert texts["q1"] != texts["q9"]
    # an id in its place is none
    rows[1] = form("q10", "alpha", [P["p3"]])
    (rows[1][where] if where else rows[1])[key] = "q10"
    with pytest.raises(exampp.InputError, match="query 'q10' is not in the collection"):
        collection.import_files(jsonl(tmp_path / "ids.jsonl", *rows))


def test_a_passage_for_every_sentence(collection: exampp.Collection, tmp_path: Path) -> None:
    path = jsonl(tmp_path / "generated.jsonl", rag_24("q1", "alpha", [P["p2"], P["p1"], P["p2"]]))
    collection.import_files(path, passage_tokens=0)
    # ids as the reference makes them, MD5 of the text; a repeated sentence keeps its first place
    assert runs_of(collection, tmp_path) == [
        f"q1 Q0 {passage_id(P['p2'])} 1 1.0 alpha",
        f"q1 Q0 {passage_id(P['p1'])} 2 0.5 alpha",
    ]
    assert passage_id("Compasses point north.") == "30f7932055a0eeee8e414db30bba6395"


def test_a_folder_of_texts(collection: exampp.Collection, tmp_path: Path) -> None:
    folder = tmp_path / "answers"
    (folder / "alpha").mkdir(parents=True)
    (folder / "beta").mkdir()
    (folder / "alpha" / "q1.md").write_text(f"# Why?\n\n**{P['p1'][:-1]}**.\n\n- {P['p2']}\n")
    (folder / "alpha" / "q2.html").write_text(
        f"<script>var p = '{P['p4']}'</script><p>Aligned <b>electron</b> spins make a magnet.</p>"
    )
    (folder / "beta" / "q2.txt").write_text(P["p3"] + "\n")
    report = collection.import_files(folder)
    assert report.after["passages"] == 2
    collection.export(tmp_path / "passages.jsonl", "passages")
    rows = [json.loads(line) for line in (tmp_path / "passages.jsonl").read_text().splitlines()]
    assert [row["text"] for row in rows] == [
        f"# Why?\n\n**{P['p1'][:-1]}**.\n\n- {P['p2']}",
        P["p3"],
    ]
    found = scores(collection, 2 + 1)
    assert found["alpha"] > found["beta"]
    assert collection.import_files(folder).changes == 0
    collection.import_files(folder / "alpha", system="mine")
    assert any(line.endswith(" 1 1.0 mine") for line in runs_of(collection, tmp_path))


# ---- what is odd ---------------------------------------------------------------------------------


def test_oddities_are_told_in_one_table(collection: exampp.Collection, tmp_path: Path) -> None:
    passages = jsonl(tmp_path / "passages.jsonl", *CORPUS)
    (tmp_path / "a.run").write_text("q1 Q0 p1 1 2 s\nq1 Q0 p1 2 1 s\n")
    (tmp_path / "b.run").write_text("q2 Q0 p3 1 2 s\nq1 Q0 p2 1 2 other\n")
    report = collection.import_files(
        passages, tmp_path / "a.run", tmp_path / "b.run", on_error="skip"
    )
    assert report.findings.rows == (
        ("s", "several files", 2, "a.run, b.run"),
        ("a.run", "repeated lines skipped", 1, ""),
        ("other", "queries without results", 1, "q2"),
    )


def test_two_runs_of_one_name_for_one_query_are_refused(
    collection: exampp.Collection, tmp_path: Path
) -> None:
    passages = jsonl(tmp_path / "passages.jsonl", *CORPUS)
    (tmp_path / "a.run").write_text("q1 Q0 p1 1 2 s\n")
    (tmp_path / "b.run").write_text("q1 Q0 p2 1 2 s\n")
    with pytest.raises(exampp.InputError, match=r"b\.run:1, system: .* already .* in a\.run"):
        collection.import_files(passages, tmp_path / "a.run", tmp_path / "b.run")
    assert collection.pool()["pool"].rows == ()


# ---- assignments ---------------------------------------------------------------------------------


LABELS = ["s", "s", "p", "p", "p", "s", "p", "n", "s", "s", "n"]
NAMES = {"s": "support", "p": "partial_support", "n": "not_support"}


def line(run: str, answer: str, labels: list[str], query: str = "q1") -> dict[str, Any]:
    nuggets = [
        {"text": f"fact {n}", "importance": "vital" if n < 8 else "okay", "assignment": label}
        for n, label in enumerate(labels)
    ]
    texts = {"query": "why", "qid": query, "answer_text": answer, "response_length": 2}
    return {**texts, "run_id": run, "nuggets": nuggets}


ROWS = [
    line("alpha", "Air scatters.", [NAMES[one] for one in LABELS]),
    line("beta", "Nothing.", ["not_support"] * 11),
    line("gamma", "It is odd.", ["failed", *["support"] * 10]),
]


def written(folder: Path, rows: list[dict[str, Any]]) -> Path:
    path = folder / "assign.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_assignments_are_grades(tmp_path: Path, empty_exam: exampp.Collection) -> None:
    """The labels are those of a published topic, 2024-105741, whose scores are published, too."""
    report = empty_exam.import_files(written(tmp_path, ROWS))
    assert [one.kind for one in report.files] == ["assignments"]
    (grader,) = empty_exam.graders
    assert (grader.name, grader.kind) == ("nuggetizer:assignment", "nugget")
    assert (grader.lowest, grader.highest) == (0, 2)
    # strict_weighted_score: support alone, vital weighs 1 and okay one half
    board = empty_exam.grades().evaluate(["Cover@1"], min_rating=2)
    scores = {row.system: row.mean for row in board.rows}
    assert scores["alpha"] == pytest.approx(0.42105263157894735)
    assert scores["beta"] == 0
    assert any("1 unparsed" in str(note) for note in board.notes)
    partly = empty_exam.grades().evaluate(["Cover@1"], min_rating=1)
    # 7 of 8 vital and 2 of 3 okay nuggets: (7 + 1) / 9.5
    assert {row.system: row.mean for row in partly.rows}["alpha"] == pytest.approx(8 / 9.5)
    # the default is full support
    assert empty_exam.grades().evaluate(["Cover@1"]).rows[0].min_rating == 2
    assert empty_exam.import_files(tmp_path / "assign.jsonl").changes == 0


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"run_id": None}, "run_id"),
        ({"answer_text": " "}, "answer_text: the text is blank"),
        ({"run_id": "alpha"}, "run 'alpha' with query 'q1' was already on line 1"),
        ({"answer_text": "Air scatters."}, "has the same answer as another run to query 'q1'"),
    ],
)
def test_what_is_no_assignment_is_refused(
    tmp_path: Path, empty_exam: exampp.Collection, change: dict[str, Any], what: str
) -> None:
    path = written(tmp_path, [ROWS[0], {**ROWS[1], **change}])
    with pytest.raises(exampp.InputError, match=what):
        empty_exam.import_files(path)
    assert all(row[1] == 0 for row in empty_exam.contents().rows)


# ---- item ids ------------------------------------------------------------------------------------


QUERIES = ("q1", "q2", "q3")
PASSAGES = tuple(f"p{number}" for number in range(6))
TEXTS = {(query, place): f"What of {query}, {place}?" for query in QUERIES for place in (1, 2, 3)}
NUMBERED = {key: str(key[1]) for key in TEXTS}
NAMED = {key: "{}/{}".format(*key) for key in TEXTS}


Ids = Mapping[tuple[str, int], str]


def rows(ids: Ids) -> list[dict[str, Any]]:
    return [
        {"query_id": query, "item_id": ids[query, place], "question": text}
        for (query, place), text in TEXTS.items()
        if ids
    ]


def made(path: Path, ids: Ids) -> Collection:
    exam = exampp.create(path)
    ranked = [
        {"query_id": query, "passage_id": passage, "rank": rank, "score": -rank, "system": system}
        for query in QUERIES
        for system, order in (("up", 1), ("down", -1))
        for rank, passage in enumerate(PASSAGES[::order][:4], 1)
    ]
    exam.add(
        queries=[{"query_id": query, "text": f"Of {query}?"} for query in QUERIES],
        passages=[{"passage_id": passage, "text": f"Text {passage}."} for passage in PASSAGES],
        bank=rows(ids) or None,
        runs=ranked,
    )
    return exam


def rate(item: Any, passage: Any) -> int:
    """A rating that depends on the query, the item and the passage, and not on ids of items."""
    place = next(place for (_, place), text in TEXTS.items() if text == item.text)
    return (7 * int(item.query_id[1:]) + 3 * place + int(passage.passage_id[1:])) % 6


def items(exam: Collection) -> list[tuple[str, str, str | None]]:
    found = [item for query in QUERIES for item in exam.bank().items(query)]
    return [(item.query_id, item.item_id, item.text) for item in found]


def means_of(grades: exampp.Grades) -> list[tuple[object, ...]]:
    board = grades.evaluate(["Cover@2", "nDCG@3"], min_rating=3).to_polars()
    return board.select("system", "measure", "mean", "queries").rows()


def graded(exam: Collection) -> exampp.Grades:
    exam.grade(rate, name="judge")
    return exam.grades("judge")


def test_scores_are_those_of_ids_that_occur_once(tmp_path: Path) -> None:
    with made(tmp_path / "a.exam", NUMBERED) as numbered, made(tmp_path / "b.exam", NAMED) as named:
        assert len(items(numbered)) == len(TEXTS)
        assert {item_id for _, item_id, _ in items(numbered)} == {"1", "2", "3"}
        found = means_of(graded(numbered))
        assert found == means_of(graded(named))
        assert {row[2] for row in found} > {1.0}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("b.jsonl", "bank"),
        ("b.csv", "bank"),
        ("b.jsonl", "questions"),
        ("b.jsonl", "nuggetizer"),
        ("b.json", "argue"),
    ],
)
def test_a_bank_comes_back_with_them(tmp_path: Path, name: str, kind: str) -> None:
    with made(tmp_path / "a.exam", NUMBERED) as exam, made(tmp_path / "b.exam", {}) as other:
        exam.export(tmp_path / name, kind)
        other.import_files(tmp_path / name)
        assert items(other) == items(exam)


def test_grades_come_back_with_them(tmp_path: Path) -> None:
    with made(tmp_path / "a.exam", NUMBERED) as exam:
        found = means_of(graded(exam))
        exam.export(tmp_path / "graded.jsonl.gz", "workbench")
    with exampp.open(tmp_path / "graded.jsonl.gz") as file:
        assert means_of(file.grades()) == found


def test_one_query_has_an_id_once(tmp_path: Path) -> None:
    twice = {key: "1" if key[0] == "q2" else name for key, name in NUMBERED.items()}
    with pytest.raises(exampp.InputError, match=r"^bank:5: item '1' was already on line 4"):
        made(tmp_path / "a.exam", twice)
