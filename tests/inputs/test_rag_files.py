"""Files of other programs for RAG systems: one made by hand of each, imported and looked at."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.forms import (
    ASKED,
    CATS,
    DEEPEVAL,
    FORMS,
    LIGHT,
    PROMPTFOO_RAG,
    RAGAS,
    RETRIEVER,
    ROOT,
    SAID,
    digest,
    events,
    lines,
)

import exampp
from exampp.errors import InputError
from exampp.formats import tables
from exampp.formats.preset import presets


def runs(exam: exampp.Collection, folder: Path) -> dict[str, list[str]]:
    exam.export(folder / "out.run", "runs")
    found: dict[str, list[str]] = {}
    for line in (folder / "out.run").read_text().splitlines():
        _, _, passage, _, _, system = line.split()
        found.setdefault(system, []).append(passage)
    return found


@pytest.mark.parametrize("name", ["ragas", "Langfuse, observations"])
def test_answers_and_contexts_are_graded(
    tmp_path: Path, empty_exam: exampp.Collection, name: str
) -> None:
    """The reference makes an item; without one the queries are graded."""
    (tmp_path / "log.jsonl").write_text(FORMS[name].content)
    empty_exam.import_files(tmp_path / "log.jsonl")
    has_items = bool(FORMS[name].expected.references)
    empty_exam.grade(
        lambda _, passage: 5 if "ight" in passage.text else 0,
        name="mine",
        kind=None if has_items else "query",
    )
    board = empty_exam.grades().evaluate(["Cover@2"] if has_items else ["Success@2"])
    assert {row.system: row.mean for row in board.rows} == {"log": 1, "log:contexts": 1}


def test_contexts_of_a_reference_are_relevant_passages(
    tmp_path: Path, empty_exam: exampp.Collection
) -> None:
    (tmp_path / "rag.jsonl").write_text(lines(RAGAS))
    empty_exam.import_files(tmp_path / "rag.jsonl", system="mine")
    empty_exam.export(tmp_path / "out.qrels", "judgments")
    assert (tmp_path / "out.qrels").read_text().split()[2:] == [digest(LIGHT), "1"]
    assert set(runs(empty_exam, tmp_path)) == {"mine", "mine:contexts"}


def test_parquet_has_the_columns_of_json(tmp_path: Path, empty_exam: exampp.Collection) -> None:
    polars = pytest.importorskip("polars")
    polars.DataFrame([RAGAS]).write_parquet(tmp_path / "rag.parquet")
    empty_exam.import_files(tmp_path / "rag.parquet")
    assert runs(empty_exam, tmp_path) == {
        "rag:contexts": [digest(CATS), digest(LIGHT)],
        "rag": [digest(SAID)],
    }
    polars.DataFrame({"x": [1]}).write_parquet(tmp_path / "other.parquet")
    with pytest.raises(InputError, match="fields found: x; unknown file type"):
        empty_exam.import_files(tmp_path / "other.parquet")
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "rag.parquet").read_bytes()[:40])
    with pytest.raises(InputError, match="is a damaged Parquet file"):
        empty_exam.import_files(tmp_path / "cut.parquet")


def test_a_reranker_decides_what_was_retrieved(
    tmp_path: Path, empty_exam: exampp.Collection
) -> None:
    reranker = {
        "context": {"trace_id": "t", "span_id": "c"},
        "span_kind": "RERANKER",
        "parent_id": "a",
        "name": "rerank",
        "attributes": {"reranker.output_documents.0.document.content": LIGHT},
    }
    (tmp_path / "rag.jsonl").write_text(lines(ROOT, RETRIEVER, reranker))
    empty_exam.import_files(tmp_path / "rag.jsonl")
    assert runs(empty_exam, tmp_path)["rag:contexts"] == [digest(LIGHT)]


@pytest.mark.parametrize("documents", ['document_text = ["body"]', 'contexts = ["output.body"]'])
def test_a_preset_of_traces_says_where_documents_have_their_text(
    tmp_path: Path, empty_exam: exampp.Collection, documents: str
) -> None:
    contexts = documents if "output" in documents else 'contexts = ["output"]'
    text = "" if "output" in documents else documents
    (tmp_path / "p.toml").write_text(
        f'{text}\n[fields]\nquery = ["input"]\nresponse = ["output"]\n{contexts}\n'
        '[spans]\ntrace = ["trace"]\nparent = ["parent"]\nkind = ["kind"]\nretriever = "SEARCH"\n'
    )
    root = {"trace": "t", "kind": "chain", "input": ASKED, "output": SAID}
    found = [{"nr": 1, "body": CATS}, {"nr": 2, "body": LIGHT}]
    search = {"trace": "t", "parent": "a", "kind": "search", "input": ASKED, "output": found}
    (tmp_path / "log.jsonl").write_text(lines(root, search))
    empty_exam.import_files(tmp_path / "log.jsonl", kind=str(tmp_path / "p.toml"))
    assert runs(empty_exam, tmp_path)["log:contexts"] == [digest(CATS), digest(LIGHT)]


def test_every_kind_may_be_named(tmp_path: Path, empty_exam: exampp.Collection) -> None:
    # the answers of MT-bench are to questions of the collection
    kinds = {form.kind for form in FORMS.values() if form.kind}
    assert kinds | {"mt-bench-answers"} == {*presets()}
    (tmp_path / "rag.jsonl").write_text(lines(RAGAS))
    empty_exam.import_files(tmp_path / "rag.jsonl", kind="ragas")
    assert len(empty_exam.query_texts()) == 1


HELPDESK = """
system = [["release"]]

[fields]
query = ["ticket.question"]
query_id = ["ticket.number"]
contexts = ["snippets"]
ids = ["snippet_ids"]
response = ["reply", "draft"]
reference = ["expected"]
"""


@pytest.mark.parametrize("rows", ["", 'rows = ["log.entries"]'])
def test_a_preset_of_the_user_reads_the_files_of_any_program(
    tmp_path: Path, empty_exam: exampp.Collection, rows: str
) -> None:
    (tmp_path / "helpdesk.toml").write_text(rows + HELPDESK)
    row = {
        "ticket": {"number": 7, "question": ASKED},
        "snippets": [CATS, LIGHT],
        "snippet_ids": ["s1", "s2"],
        "draft": SAID,
        "expected": "light",
        "release": "v1",
    }
    other = {**row, "snippets": [LIGHT], "snippet_ids": ["s2"], "release": "v2"}
    whole = json.dumps({"version": 1, "log": {"entries": [row, other]}}, indent=1)
    (tmp_path / "log.jsonl").write_text(whole if rows else lines(row, other))
    empty_exam.import_files(tmp_path / "log.jsonl", kind=str(tmp_path / "helpdesk.toml"))
    assert empty_exam.query_texts() == {"7": ASKED}
    assert runs(empty_exam, tmp_path) == {
        "v1:contexts": ["s1", "s2"],
        "v2:contexts": ["s2"],
        "v1": [digest(SAID)],
        "v2": [digest(SAID)],
    }
    (item,) = empty_exam.bank().items("7")
    assert item.answers == ("light",)


@pytest.mark.parametrize(
    ("toml", "said"),
    [
        ("", "is not a preset of RAG files: Object missing required field `fields`"),
        ("[fields", "invalid TOML"),
        ("fields = 3", "fields: is not a preset of RAG files: Expected `object`, got `int`"),
        ('[fields]\ncontexts = ["c"]', "fields: the preset names neither the question, nor"),
        ('[fields]\nquery = []\nquery_id = ["q"]', "fields: the preset names neither the question"),
        ('[fields]\nquery = "q"', "fields.query: .*Expected `array`, got `str`"),
        ('[fields]\nquerry = ["q"]', "fields: .*unknown field `querry`"),
        ('rank = 1\n[fields]\nquery = ["q"]', "unknown field `rank`"),
        ('system = ["s"]\n[fields]\nquery = ["q"]', r"system\[0\]: .*Expected `array`, got `str`"),
        ('spans = {}\n[fields]\nquery = ["q"]', "spans: .* missing required field `trace`"),
    ],
)
def test_a_wrong_preset_is_a_sentence(
    tmp_path: Path, empty_exam: exampp.Collection, toml: str, said: str
) -> None:
    (tmp_path / "p.toml").write_text(toml)
    (tmp_path / "log.jsonl").write_text(lines({"q": ASKED, "c": [LIGHT]}))
    with pytest.raises(InputError, match=f"p.toml.*{said}"):
        empty_exam.import_files(tmp_path / "log.jsonl", kind=str(tmp_path / "p.toml"))
    with pytest.raises(InputError, match=r"none.toml: no such file"):
        empty_exam.import_files(tmp_path / "log.jsonl", kind=str(tmp_path / "none.toml"))


def test_systems_are_named_by_their_fields_or_by_variants(tmp_path: Path) -> None:
    other = {**PROMPTFOO_RAG, "provider": {"id": "local", "label": "my model"}}
    other["response"] = {"output": "Water."}
    (tmp_path / "rag.jsonl").write_text(lines(PROMPTFOO_RAG, other))
    (tmp_path / "events.jsonl").write_text(lines(*events(), *events("v2", "Water.")))
    (tmp_path / "records.csv").write_text(
        "app_name,app_version,record_id,input,output\n"
        f'rag,v1,r1,{ASKED},"{SAID}"\nrag,v2,r2,{ASKED},Water.\n'
    )
    with exampp.create(tmp_path / "my.exam") as exam:
        exam.import_files(tmp_path / "rag.jsonl")
        assert set(runs(exam, tmp_path)) == {
            *("my_model", "my_model:contexts"),
            *("openai:gpt-4o", "openai:gpt-4o:contexts"),
        }
    with exampp.create(tmp_path / "two.exam") as exam:
        exam.import_files(tmp_path / "events.jsonl")
        assert set(runs(exam, tmp_path)) == {
            *("rag/v1", "rag/v1:contexts"),
            *("rag/v2", "rag/v2:contexts"),
        }
    with exampp.create(tmp_path / "three.exam") as exam:
        exam.import_files(tmp_path / "records.csv")
        assert set(runs(exam, tmp_path)) == {"rag/v1", "rag/v2"}


def test_a_system_has_one_name_in_all_files(tmp_path: Path, empty_exam: exampp.Collection) -> None:
    one = {"query_id": "1", "question": ASKED, "system": "alpha", "contexts": [CATS]}
    other = {**one, "query_id": "2", "question": "Why?", "contexts": [LIGHT]}
    (tmp_path / "one.jsonl").write_text(lines(one))
    (tmp_path / "two.jsonl").write_text(lines(other, {**other, "system": "beta"}))
    empty_exam.import_files(tmp_path / "one.jsonl", tmp_path / "two.jsonl", kind="answers")
    assert runs(empty_exam, tmp_path) == {
        "alpha": [digest(CATS), digest(LIGHT)],
        "beta": [digest(LIGHT)],
    }
    # --system names the only system of a file
    (tmp_path / "new.jsonl").write_text(lines({**one, "contexts": [LIGHT]}))
    with pytest.raises(InputError, match=r"system 'alpha' already has results for .*one\.jsonl"):
        empty_exam.import_files(tmp_path / "one.jsonl", tmp_path / "new.jsonl", kind="answers")
    empty_exam.import_files(tmp_path / "new.jsonl", kind="answers", system="next")
    assert runs(empty_exam, tmp_path)["next"] == [digest(LIGHT)]
    assert runs(empty_exam, tmp_path)["alpha"] == [digest(CATS), digest(LIGHT)]


def test_a_name_of_a_system_that_is_a_list_is_refused(
    tmp_path: Path, empty_exam: exampp.Collection
) -> None:
    row = {"question": ASKED, "system": ["alpha"], "contexts": [CATS]}
    (tmp_path / "one.jsonl").write_text(lines(row))
    with pytest.raises(
        InputError, match=r"one\.jsonl:1, system: is a list instead of the name of a"
    ):
        empty_exam.import_files(tmp_path / "one.jsonl", kind="answers")


PLACES = """
[fields]
query = ["ask"]
contexts = [CONTEXTS]
ids = ["retrieved.nr"]
response = ["reply"]
"""
HIT = {"nr": 1, "text": " ", "body": CATS}
OTHER_HIT = {"nr": 2, "text": " ", "body": LIGHT}


@pytest.mark.parametrize(
    ("toml", "retrieved", "expected"),
    [
        (
            'document_text = ["text", "body"]\n'
            '[fields]\nquery = ["ask"]\ncontexts = ["retrieved"]\nresponse = ["reply"]',
            [{"nr": 1, "body": CATS}, {"id": "d", "body": {"content": LIGHT}, "content": "page 2"}],
            [digest(CATS), "d"],
        ),
        (PLACES.replace("CONTEXTS", '"retrieved.body"'), [HIT, OTHER_HIT], ["1", "2"]),
        (PLACES.replace("CONTEXTS", '"other", "retrieved.body"'), [HIT, {"nr": 2}], ["1"]),
        (
            PLACES.replace("CONTEXTS", '"retrieved.pages.body"').replace("nr", "pages.nr"),
            [{"pages": [HIT]}, {"pages": []}, {"pages": [OTHER_HIT]}],
            ["1", "2"],
        ),
        (PLACES.replace("CONTEXTS", '"retrieved.body"'), [], []),
        (PLACES.replace("CONTEXTS", '"retrieved.body"'), {"body": [], "nr": None}, []),
        (PLACES.replace("CONTEXTS", '"retrieved.body"'), None, []),
    ],
)
def test_contexts_are_found_in_lists_of_objects(
    tmp_path: Path, empty_exam: exampp.Collection, toml: str, retrieved: Any, expected: list[str]
) -> None:
    (tmp_path / "p.toml").write_text(toml)
    (tmp_path / "log.jsonl").write_text(
        lines({"ask": ASKED, "retrieved": retrieved, "reply": SAID})
    )
    empty_exam.import_files(tmp_path / "log.jsonl", kind=str(tmp_path / "p.toml"))
    assert runs(empty_exam, tmp_path).get("log:contexts", []) == expected


@pytest.mark.parametrize(
    ("path", "retrieved", "said"),
    [
        (
            "retrieved.text",
            [{"nr": 1, "body": CATS}, {"nr": 2, "body": LIGHT}],
            "retrieved: has no field 'text'; fields found: nr, body. Use retrieved.nr or another "
            "field instead of retrieved.text",
        ),
        (
            "retrieved.text",
            {"nr": 1, "body": CATS},
            "retrieved: has no field 'text'; fields found: nr",
        ),
        (
            "retrieved.hits.text",
            [{"hits": [{"body": CATS}]}],
            "retrieved.hits: has no field 'text'; fields found: body. Use retrieved.hits.body",
        ),
        (
            "retrieved.text",
            [CATS, LIGHT],
            "retrieved: has no field 'text'. Use retrieved instead of retrieved.text, in a "
            "preset or with --columns",
        ),
        ("retrieved.text", CATS, "retrieved: has no field 'text'. Use retrieved instead"),
    ],
)
def test_a_path_that_ends_before_its_field_is_an_error(
    tmp_path: Path, empty_exam: exampp.Collection, path: str, retrieved: Any, said: str
) -> None:
    toml = PLACES.replace("CONTEXTS", f'"{path}"').replace('ids = ["retrieved.nr"]', "")
    (tmp_path / "p.toml").write_text(toml)
    row = {"ask": ASKED, "retrieved": retrieved, "reply": SAID}
    fine = {"ask": "Why?", "reply": SAID}
    (tmp_path / "log.jsonl").write_text(lines(fine, row))
    with pytest.raises(InputError, match=re.escape(f"log.jsonl:2, {said}")):
        empty_exam.import_files(tmp_path / "log.jsonl", kind=str(tmp_path / "p.toml"))
    assert empty_exam.query_texts() == {}


def test_a_system_is_named_by_a_field_that_is_there(
    tmp_path: Path, empty_exam: exampp.Collection
) -> None:
    (tmp_path / "p.toml").write_text(
        'system = [["engine.name"]]\n[fields]\nquery = ["ask"]\nresponse = ["reply.text"]\n'
    )
    row = {"ask": ASKED, "engine": "alpha", "reply": [{"text": SAID}]}
    (tmp_path / "log.jsonl").write_text(lines(row))
    with pytest.raises(InputError, match=r"log\.jsonl:1, engine: has no field 'name'"):
        empty_exam.import_files(tmp_path / "log.jsonl", kind=str(tmp_path / "p.toml"))
    (tmp_path / "log.jsonl").write_text(lines({**row, "engine": {"name": "alpha"}}))
    empty_exam.import_files(tmp_path / "log.jsonl", kind=str(tmp_path / "p.toml"))
    assert runs(empty_exam, tmp_path) == {"alpha": [digest(SAID)]}


FAULTS: dict[str, tuple[Any, str]] = {
    "a number for a question": ({"user_input": 7}, "user_input: must be a text, not '7'"),
    "a list for an answer": ({"response": ["a", "b"]}, "response: has 2 texts instead"),
    "a number for an answer": ({"response": 4.5}, "response: must be a text, not '4.5'"),
    "true for an answer": ({"response": True}, "response: must be a text, not 'True'"),
    "an object without a text": ({"response": {"x": 1}}, "response: is an object with the fields"),
    "a number for a context": (
        {"retrieved_contexts": [CATS, 3]},
        r"retrieved_contexts\[1\]: must be a text",
    ),
    "fewer ids than contexts": (
        {"retrieved_context_ids": ["a"]},
        "retrieved_contexts: 2 texts, but 1 ids",
    ),
    "an id that is a fraction": (
        {"retrieved_context_ids": [1.5, 2]},
        r"retrieved_contexts\[0\]: an id must be a text or a whole number, not '1.5'",
    ),
    "an id of two texts": (
        {"retrieved_context_ids": [1, 1]},
        r"retrieved_contexts\[1\]: the id '1' has two different texts",
    ),
    "nothing returned": (
        {"retrieved_contexts": [], "response": None},
        "response: the system returned nothing: response is empty. --on-error skip",
    ),
    "a blank question": ({"user_input": " "}, r".*user_input: the question is empty"),
    "no question": ({"user_input": None}, r".*missing question"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_names_its_line_and_field_and_takes_nothing(
    tmp_path: Path, empty_exam: exampp.Collection, name: str
) -> None:
    changed, said = FAULTS[name]
    other = {**RAGAS, "user_input": "Another?", **changed}
    (tmp_path / "rag.jsonl").write_text(lines(RAGAS, other))
    with pytest.raises(InputError, match=rf"rag.jsonl:2, {said}"):
        empty_exam.import_files(tmp_path / "rag.jsonl")
    assert empty_exam.query_texts() == {}
    report = empty_exam.import_files(tmp_path / "rag.jsonl", on_error="skip")
    assert len(empty_exam.query_texts()) == 1
    assert report.skipped == 1


def test_what_is_no_fault_is_read(tmp_path: Path, empty_exam: exampp.Collection) -> None:
    row = {
        "user_input": ASKED,
        "retrieved_contexts": [CATS, None, " ", f"NaN: NaN {'x' * 1_000_000}"],
        "retrieved_context_ids": [1, 2, 3, 4],
        "response": f"\ufeff{SAID} \ud800",
        "reference": None,
        "score": float("nan"),
    }
    (tmp_path / "rag.jsonl").write_bytes(b"\xef\xbb\xbf" + lines(row).encode())
    report = empty_exam.import_files(tmp_path / "rag.jsonl")
    assert [*runs(empty_exam, tmp_path)["rag:contexts"]] == ["1", "4"]
    assert [*empty_exam.query_texts().values()] == [ASKED]
    assert any("rag.jsonl:1: skipped 2 contexts without text" in one for one in report.remarks)
    empty_exam.export(tmp_path / "out.jsonl", "passages")
    passages = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    texts = {one["passage_id"]: one["text"] for one in passages}
    assert texts["4"].startswith("NaN: NaN xxx")


@pytest.mark.parametrize("name", ["promptfoo", "Langfuse, a trace", "ragas, as an array"])
def test_a_file_that_is_cut_off_says_on_which_line(
    tmp_path: Path, empty_exam: exampp.Collection, name: str
) -> None:
    form = FORMS[name]
    (tmp_path / form.name).write_text(form.content[: len(form.content) * 2 // 3])
    with pytest.raises(InputError, match=rf"{form.name}:\d+: broken JSON"):
        empty_exam.import_files(tmp_path / form.name, kind=form.kind)
    assert empty_exam.query_texts() == {}


def test_references_of_several_files_are_all_right_answers(
    tmp_path: Path, empty_exam: exampp.Collection
) -> None:
    (tmp_path / "one.jsonl").write_text(lines({**RAGAS, "reference": "light | water"}))
    (tmp_path / "two.jsonl").write_text(lines({**RAGAS, "reference": "sun"}))
    empty_exam.import_files(tmp_path / "one.jsonl", tmp_path / "two.jsonl")
    (entry,) = empty_exam.bank().texts().entries
    assert [item.answers for item in entry.items] == [("light | water", "sun")]
    assert set(runs(empty_exam, tmp_path)) == {"one", "one:contexts", "two", "two:contexts"}


def test_a_column_with_an_endless_number_is_no_context(
    tmp_path: Path, empty_exam: exampp.Collection
) -> None:
    name = f"Context {'9' * 5000}"
    (tmp_path / "a.csv").write_text(f'question,response,{name}\n{ASKED},"{SAID}",{CATS}\n')
    empty_exam.import_files(tmp_path / "a.csv", kind="answers")
    assert runs(empty_exam, tmp_path) == {"a": [digest(SAID)]}


def test_answers_that_nobody_gave_are_keys(tmp_path: Path) -> None:
    (tmp_path / "qa.csv").write_text(f'question,answer\n{ASKED},"{SAID}"\n')
    with exampp.create(tmp_path / "my.exam") as exam:
        report = exam.import_files(tmp_path / "qa.csv")
        assert "'answer' is read as correct answers" in report.remarks[0]
        assert ("systems", 0) in [row[:2] for row in exam.contents().rows]
        exam.import_files(tmp_path / "qa.csv", kind="answers")
        assert runs(exam, tmp_path) == {"qa": [digest(SAID)]}
    (tmp_path / "bank.csv").write_text(f'query_id,question,answer\nq1,{ASKED},"{SAID}"\n')
    with exampp.create(tmp_path / "two.exam") as exam:
        report = exam.import_files(tmp_path / "bank.csv")
        assert [one.kind for one in report.files] == ["plain-bank"]


def test_a_question_that_is_asked_twice_is_named_by_its_text(
    tmp_path: Path, empty_exam: exampp.Collection
) -> None:
    path = tmp_path / "twice.jsonl"
    path.write_text((json.dumps(RAGAS) + "\n") * 2)
    with pytest.raises(InputError, match=r"twice.jsonl:2: the question 'What do plants need\?'"):
        empty_exam.import_files(path)
    assert empty_exam.import_files(path, on_error="skip").skipped == 1


def test_a_bank_names_the_questions_of_such_files_by_their_text(
    tmp_path: Path, empty_exam: exampp.Collection
) -> None:
    ragas, own = tmp_path / "ragas.jsonl", tmp_path / "bank.csv"
    ragas.write_text(json.dumps(RAGAS) + "\n")
    own.write_text(f"query,question\n{ASKED},What gives plants energy?\n")
    empty_exam.import_files(own, ragas)
    empty_exam.export(tmp_path / "out.csv", "bank")
    own.write_text("query,question\nAnother?,What gives plants energy?\n")
    with pytest.raises(InputError, match=r"no query has the text 'Another\?'"):
        empty_exam.import_files(own)
    of_query = hashlib.md5(ASKED.encode()).hexdigest()
    assert [line.split(",")[0] for line in (tmp_path / "out.csv").read_text().splitlines()[1:]] == [
        of_query,
        of_query,
    ]


def test_a_file_at_which_polars_panics_is_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    polars = pytest.importorskip("polars")
    path = tmp_path / "answers.parquet"
    polars.DataFrame({"question": ["why?"], "answer": ["so"]}).write_parquet(path)

    def panic(*_: object) -> None:
        raise polars.exceptions.PanicException("assertion failed: offset + length <= self.length")

    monkeypatch.setattr(polars.LazyFrame, "collect", panic)
    with pytest.raises(InputError, match=r"is a damaged Parquet file \(assertion failed"):
        list(tables.read_rows(path))


# ---- silent misreadings --------------------------------------------------------------------------


QUESTION, NEED, ANSWER = (
    "What do plants need?",
    "Plants need light.",
    "Light.",
)


def span(value: Any, mime: str = "application/json") -> dict[str, Any]:
    said = {"output.value": '{"answer": "Light."}', "output.mime_type": "application/json"}
    asked = {"input.value": value, "input.mime_type": mime}
    place = {"trace_id": "t", "span_id": "a"}
    return {"context": place, "span_kind": "CHAIN", "name": "x", "attributes": asked | said}


def texts(exam: exampp.Collection, folder: Path) -> dict[str, str]:
    exam.export(folder / "texts.jsonl", "passages")
    rows = map(json.loads, (folder / "texts.jsonl").read_text().splitlines())
    return {row["passage_id"]: row["text"] for row in rows}


@pytest.mark.parametrize(
    "value",
    [
        json.dumps({"question": QUESTION}),
        json.dumps({"input": {"query": QUESTION}}),
        json.dumps(QUESTION),
        json.dumps(
            {"messages": [{"role": "system", "content": "Be brief."},
                          {"role": "user", "content": QUESTION}]}
        ),
    ],
)  # fmt: skip
def test_json_in_a_span_is_opened(
    tmp_path: Path, empty_exam: exampp.Collection, value: str
) -> None:
    (tmp_path / "a.jsonl").write_text(lines(span(value)))
    empty_exam.import_files(tmp_path / "a.jsonl")
    assert empty_exam.query_texts() == {digest(QUESTION): QUESTION}
    assert [*texts(empty_exam, tmp_path).values()] == [ANSWER]


TALK = [
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": "Hello"},
    {"role": "user", "content": QUESTION},
]
REFUSED: dict[str, tuple[Any, str]] = {
    "fields of no kind": (
        {"vars": {}, "provider": "x", "verdict": 1},
        r"fields found: vars, provider, verdict; unknown file type",
    ),
    "unknown fields": (span('{"a": "x", "b": "y"}'), "object with the fields a, b.*no known"),
    "two questions": (span('{"question": "A", "query": "B"}'), "different texts under question"),
    "JSON that is cut off": (span('{"question": "A'), "broken or truncated JSON"),
    "messages for contexts": (
        {
            "user_input": QUESTION,
            "retrieved_contexts": [{"role": "system", "content": "Be brief."}],
        },
        r"retrieved_contexts\[0\]: is a chat message \(system\)",
    ),
    "gold contexts": (
        {
            "question": QUESTION,
            "context": NEED,
            "answers": {"text": ["light"]},
        },
        "'context' may be a system's results, or gold",
    ),
    "gold contexts and answers": (
        {
            "question": QUESTION,
            "context": NEED,
            "answer": "light",
        },
        "reference_contexts=context --columns reference=answer",
    ),
    "an object of fields": ({"conversation_id": "c", "task": "t"}, "unknown file type"),
    "averages": ({"average_scores": {"recall": 0.5}}, "unknown file type"),
    "assignments without a text": (
        {"qid": "q", "query": "x", "nuggets": [{"text": "a", "assignment": "support"}]},
        "the line has no text",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_be_misread_is_refused(
    tmp_path: Path, empty_exam: exampp.Collection, name: str
) -> None:
    row, said = REFUSED[name]
    (tmp_path / "a.jsonl").write_text(lines(row))
    with pytest.raises(InputError, match=said):
        empty_exam.import_files(tmp_path / "a.jsonl")
    assert empty_exam.query_texts() == {}


@pytest.mark.parametrize(
    ("row", "kind", "columns", "said"),
    [
        (
            {"question": QUESTION, "prediction": "", "answer": "light"},
            "answers",
            {},
            "the system returned nothing: prediction is empty",
        ),
        (DEEPEVAL, "deepeval", {"reference": "input"}, "missing question; fields found: input"),
    ],
)
def test_nothing_takes_the_place_of_an_empty_field(
    tmp_path: Path, empty_exam: exampp.Collection, row: Any, kind: str, columns: Any, said: str
) -> None:
    (tmp_path / "a.jsonl").write_text(lines(row))
    with pytest.raises(InputError, match=said):
        empty_exam.import_files(tmp_path / "a.jsonl", kind=kind, columns=columns)


def test_an_empty_list_of_contexts_without_an_answer_retrieved_nothing(
    tmp_path: Path, empty_exam: exampp.Collection
) -> None:
    rows = [
        {"task_id": "1", "input": [{"speaker": "user", "text": "Why?"}], "contexts": []},
        {
            "task_id": "2",
            "input": [{"speaker": "user", "text": "How?"}],
            "contexts": [{"document_id": "d", "text": "So."}],
        },
    ]
    rows[0] |= {"targets": [{"text": "I do not know."}], "answerability": ["UNANSWERABLE"]}
    (tmp_path / "a.jsonl").write_text(lines(*rows))
    report = empty_exam.import_files(tmp_path / "a.jsonl")
    assert empty_exam.query_texts() == {"1": "Why?", "2": "How?"}
    assert ("all systems", "queries without results", 1, "1") in report.findings.rows


def test_columns_name_the_system_of_answers(tmp_path: Path, empty_exam: exampp.Collection) -> None:
    (tmp_path / "a.csv").write_text("question,variant,answer\nWhy?,a,Because.\nWhy?,b,So.\n")
    empty_exam.import_files(tmp_path / "a.csv", kind="answers", columns={"system": "variant"})
    empty_exam.export(tmp_path / "out.run", "runs")
    assert (tmp_path / "out.run").read_text().split()[5::6] == ["a", "b"]


CHUNKS = [{"chunk_id": "c1", "content": NEED}, {"chunk_id": "c2", "content": "Soil."}]


@pytest.mark.parametrize("value", [CHUNKS, {"chunks": CHUNKS, "took_ms": 3}, [NEED, "Soil."]])
@pytest.mark.parametrize("column", ["retrieval", "retrieved_chunks"])
@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_every_column_of_contexts_is_read_as_json(
    tmp_path: Path, empty_exam: exampp.Collection, value: Any, column: str, name: str
) -> None:
    row = {"question": QUESTION, "system": "a", column: json.dumps(value)}
    quoted = ('"' + cell.replace('"', '""') + '"' for cell in row.values())
    table = f"{','.join(row)}\n{','.join(quoted)}\n"
    (tmp_path / name).write_text(table if name == "a.csv" else lines(row))
    empty_exam.import_files(tmp_path / name, kind="answers", columns={"contexts": column})
    assert ("passages", 2) in [row[:2] for row in empty_exam.contents().rows]


@pytest.mark.parametrize("cell", ['[{"content": "cut o', '{"a": [{"text": "x"}], "b": ["y"]}'])
def test_contexts_that_cannot_be_told_are_refused(
    tmp_path: Path, empty_exam: exampp.Collection, cell: str
) -> None:
    (tmp_path / "a.jsonl").write_text(lines({"question": QUESTION, "system": "a", "found": cell}))
    with pytest.raises(InputError, match=r"jsonl:1, found.*: is (broken|an object)"):
        empty_exam.import_files(tmp_path / "a.jsonl", kind="answers", columns={"contexts": "found"})


def test_answers_in_an_unknown_column_are_named(
    tmp_path: Path, empty_exam: exampp.Collection
) -> None:
    row = {"question": QUESTION, "system": "a", "contexts": [NEED], "words": "light " * 20}
    (tmp_path / "a.jsonl").write_text(lines(row | {"note": "short"}))
    report = empty_exam.import_files(tmp_path / "a.jsonl")
    expected = "no answers were read. If 'words' has them, add --columns answer=words"
    assert f"{tmp_path / 'a.jsonl'}: {expected}" in report.remarks


def test_logs_and_facts_of_a_help_desk_need_no_names(
    tmp_path: Path, empty_exam: exampp.Collection
) -> None:
    (tmp_path / "a.csv").write_text("ticket,user_message,variant,bot_reply\nT-1,Why?,a,So.\n")
    (tmp_path / "b.csv").write_text("ticket,key_fact\nT-1,Light is needed\n")
    empty_exam.import_files(tmp_path / "a.csv", tmp_path / "b.csv")
    assert empty_exam.query_texts() == {"T-1": "Why?"}
    (entry,) = empty_exam.bank().texts().entries
    assert [(one.kind, one.text) for one in entry.items] == [("nugget", "Light is needed")]


def test_the_example_of_an_unknown_table_is_its_column_of_texts(
    tmp_path: Path, empty_exam: exampp.Collection
) -> None:
    (tmp_path / "a.csv").write_text(
        'case,query,variant,words,found\n7,Why?,a,"So it, is","[""x y z a b c""]"\n'
    )
    with pytest.raises(InputError, match=r"answer=words \(one of .*nugget\)[^-]*--queries a.csv\n"):
        empty_exam.import_files(tmp_path / "a.csv")


def test_gold_contexts_are_judgments_and_answers_keys(
    tmp_path: Path, empty_exam: exampp.Collection
) -> None:
    row = {
        "question": QUESTION,
        "context": NEED,
        "answer": "light",
    }
    (tmp_path / "a.jsonl").write_text(lines(row))
    named = {"reference_contexts": "context", "reference": "answer"}
    empty_exam.import_files(tmp_path / "a.jsonl", kind="answers", columns=named)
    (entry,) = empty_exam.bank().texts().entries
    assert [(one.text, one.answers) for one in entry.items] == [(QUESTION, ("light",))]
    empty_exam.export(tmp_path / "out.qrels", "judgments")
    assert (tmp_path / "out.qrels").read_text().split()[2:] == [
        digest(NEED),
        "1",
    ]
    assert ("systems", 0) in [row[:2] for row in empty_exam.contents().rows]


def test_passages_with_assignments_are_graded(
    tmp_path: Path, empty_exam: exampp.Collection
) -> None:
    nuggets = [
        {"text": "light", "importance": "vital", "assignment": "support"},
        {"text": "soil", "importance": "okay", "assignment": "not_support"},
    ]
    row = {
        "text": QUESTION,
        "qid": "q",
        "candidate_text": NEED,
        "docid": "d",
        "nuggets": nuggets,
    }
    (tmp_path / "a.jsonl").write_text(lines(row))
    empty_exam.import_files(tmp_path / "a.jsonl")
    assert empty_exam.query_texts() == {"q": QUESTION}
    assert texts(empty_exam, tmp_path) == {"d": NEED}
    assert ("grades", 2) in [row[:2] for row in empty_exam.contents().rows]


@pytest.mark.parametrize("topics_first", [True, False])
def test_equal_questions_are_one_query_in_either_order(
    tmp_path: Path, empty_exam: exampp.Collection, topics_first: bool
) -> None:
    (tmp_path / "topics.tsv").write_text(f"query_id\ttext\n7\t{QUESTION}\n")
    record = {
        "user_input": QUESTION,
        "retrieved_contexts": [NEED],
        "reference": "light",
    }
    (tmp_path / "rag.jsonl").write_text(lines(record))
    files = [tmp_path / "topics.tsv", tmp_path / "rag.jsonl"]
    for file in files if topics_first else reversed(files):
        empty_exam.import_files(file)
    assert empty_exam.query_texts() == {"7": QUESTION}
    empty_exam.export(tmp_path / "out.run", "runs")
    assert (tmp_path / "out.run").read_text().split()[:3] == [
        "7",
        "Q0",
        digest(NEED),
    ]
    (entry,) = empty_exam.bank().texts().entries
    assert [one.item_id for one in entry.items] == [f"7/{digest(QUESTION)}"]
    assert empty_exam.import_files(*files).changes == 0


def test_unused_fields_are_counted_and_named_once(
    tmp_path: Path, empty_exam: exampp.Collection
) -> None:
    row = {
        "user_input": QUESTION,
        "response": ANSWER,
        "expected_ids": ["d"],
        "grading_notes": "x",
    }
    path = tmp_path / "a.jsonl"
    path.write_text(lines(row, {**row, "user_input": "Why?", "grading_notes": None}))
    report = empty_exam.import_files(path)
    assert report.remarks == (
        f"{path}: 2 fields not read: expected_ids (2 records), grading_notes (1 record)",
    )
    unread = json.loads(report.to_json())["unread"]
    assert unread == {str(path): {"expected_ids": 2, "grading_notes": 1}}


def test_responses_are_counted_and_not_their_passages(
    tmp_path: Path, empty_exam: exampp.Collection
) -> None:
    long = " ".join(f"Sentence {number} about light." for number in range(40))
    row = {"query_id": "1", "query": QUESTION, "system": "a", "text": long}
    (tmp_path / "a.jsonl").write_text(lines(row))
    report = empty_exam.import_files(tmp_path / "a.jsonl", passage_tokens=0)
    assert [one.records for one in report.files] == [1]


@pytest.mark.parametrize("mark", [",", ";", "|", "\t"])
@pytest.mark.parametrize("header", ["query_id{}text", "qid{}query", "id{}question"])
def test_tables_of_queries_have_any_separator(
    tmp_path: Path, empty_exam: exampp.Collection, mark: str, header: str
) -> None:
    (tmp_path / "queries.csv").write_text(f"{header.format(mark)}\n7{mark}{QUESTION}\n")
    empty_exam.import_files(tmp_path / "queries.csv")
    assert empty_exam.query_texts() == {"7": QUESTION}


POOL = [("1", "p1", "Reefs."), ("2", "p1", "Reefs."), ("1", "p2", "Bread.")]
POOL_FILES = {
    "a.csv": "query_id,passage_id,text\n" + "".join(",".join(row) + "\n" for row in POOL),
    "a.tsv": "qid\tdocid\ttext\n" + "".join("\t".join(row) + "\n" for row in POOL),
    "a.jsonl": lines(*(dict(zip(("query_id", "pid", "passage"), r, strict=True)) for r in POOL)),
}


@pytest.mark.parametrize("name", POOL_FILES)
def test_passages_with_their_query_are_graded_for_it(
    tmp_path: Path, empty_exam: exampp.Collection, name: str
) -> None:
    (tmp_path / name).write_text(POOL_FILES[name])
    empty_exam.add(queries={"1": "reefs", "2": "bread"}, bank={"1": ["A?", "B?"], "2": ["C?"]})
    report = empty_exam.import_files(tmp_path / name)
    assert [(one.kind, one.records) for one in report.files] == [("pool", 3)]
    asked: list[tuple[str, str]] = []

    def grade(item: exampp.Item, passage: exampp.Passage) -> int:
        asked.append((item.text, passage.text))
        return 5

    empty_exam.grade(grade, name="mine")
    assert sorted(asked) == [
        *(("A?", "Bread."), ("A?", "Reefs."), ("B?", "Bread."), ("B?", "Reefs.")),
        ("C?", "Reefs."),
    ]
    assert empty_exam.import_files(tmp_path / name).changes == 0


def test_a_passage_id_with_two_texts_names_both_lines(
    tmp_path: Path, empty_exam: exampp.Collection
) -> None:
    (tmp_path / "a.csv").write_text("query_id,passage_id,text\n1,p,A.\n1,p,B.\n")
    empty_exam.add(queries={"1": "reefs"})
    with pytest.raises(InputError, match=r"a\.csv:3, text: passage 'p' has another text on l"):
        empty_exam.import_files(tmp_path / "a.csv")
