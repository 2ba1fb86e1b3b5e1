"""The files of other programs are read rightly: each form, and the files of other people."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support.forms import (
    ASKED,
    CATS,
    DRAGUN,
    EVENTS,
    FORMS,
    HEALTHBENCH,
    KEY,
    LIGHT,
    MLFLOW,
    RUNS,
    SAID,
    SAMPLE,
    Contents,
    contents,
    csv_table,
    digest,
    lines,
    table,
    whole,
)

import exampp
from exampp.errors import InputError
from exampp.inputs.explaining import explain_files

DOORS = Path(__file__).parents[3] / "shared" / "data" / "doors"


@pytest.mark.parametrize("name", FORMS)
def test_a_form_is_read_rightly(tmp_path: Path, empty_exam: exampp.Collection, name: str) -> None:
    form = FORMS[name]
    (tmp_path / form.name).write_text(form.content)
    report = empty_exam.import_files(tmp_path / form.name)
    assert contents(empty_exam, tmp_path) == form.expected
    assert not form.query_id or [*empty_exam.query_texts()] == [form.query_id]
    ranked = (
        [line.split()[2] for line in (tmp_path / "out.run").read_text().splitlines()]
        if form.ids
        else []
    )
    assert ranked[: len(form.ids)] == [*form.ids]
    unread = [field for fields in report.unread.values() for field in fields]
    assert unread == [*form.unread]
    # the preset that was detected is the one that can be named
    (explained,) = explain_files(tmp_path / form.name).files
    assert explained.kind.split(" ")[0] == (form.kind or explained.kind.split(" ")[0])
    assert (
        not form.kind or empty_exam.import_files(tmp_path / form.name, kind=form.kind).changes == 0
    )


@pytest.mark.parametrize("key", ["source", "doc_id"])
def test_an_id_of_several_texts_is_the_source_of_passages(
    tmp_path: Path, empty_exam: exampp.Collection, key: str
) -> None:
    """Passages of one file, in one record or over several, and one text of two files."""

    def record(question: str, *passages: tuple[str, str]) -> dict[str, Any]:
        contexts = [{"content": text, key: name} for name, text in passages]
        return {"question": question, "answer": SAID, "contexts": contexts}

    (tmp_path / "log.jsonl").write_text(
        lines(record(ASKED, ("a.pdf", CATS)), record("Why?", ("a.pdf", LIGHT), ("b.pdf", CATS)))
    )
    report = empty_exam.import_files(tmp_path / "log.jsonl")
    assert [one.split(": ")[1] for one in report.remarks] == [f"{key} 'a.pdf' has several texts"]
    assert contents(empty_exam, tmp_path).contexts == {"log:contexts": (CATS, LIGHT, CATS)}
    rows = map(json.loads, (tmp_path / "texts.jsonl").read_text().splitlines())
    found = {row["passage_id"]: row.get("source") for row in rows}
    assert found == {digest(CATS): "a.pdf", digest(LIGHT): "a.pdf", digest(SAID): None}


def test_passages_have_the_first_id_that_is_theirs(
    tmp_path: Path, empty_exam: exampp.Collection
) -> None:
    contexts = [
        {"document_id": 7, "chunk_id": f"7-{at}", "text": text, "source": "a.pdf"}
        for at, text in enumerate((CATS, LIGHT))
    ]
    (tmp_path / "log.jsonl").write_text(lines({"question": ASKED, "retrieved_contexts": contexts}))
    empty_exam.import_files(tmp_path / "log.jsonl")
    empty_exam.export(tmp_path / "out.jsonl", "passages")
    rows = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    assert [(row["passage_id"], row["source"]) for row in rows] == [("7-0", "7"), ("7-1", "7")]


REEFS = "What builds reefs?"
CORAL, BUILT = "Coral animals build reefs.", "Reefs are built by animals."


def _of_reefs(
    file: str, contexts: Sequence[str] = (), answer: str = CORAL, key: str = "", system: str = ""
) -> Contents:
    name = system or file.partition(".")[0]
    return Contents(
        (REEFS,),
        {**({f"{name}:contexts": tuple(contexts)} if contexts else {}), name: (answer,)},
        references=(key,) if key else (),
    )


IN_DOORS: dict[str, Contents] = {
    "braintrust.jsonl": _of_reefs("braintrust", key="corals"),
    "deepeval-latest_test_run.json": Contents(
        ("What was the amount of the unrecognized charge?", "What did the merchant say?"),
        {
            "deepeval-latest_test_run:contexts": (
                "The charge was $300.",
                "It posted on the third.",
                "An order was placed and delivered.",
            ),
            "deepeval-latest_test_run": ("Three hundred dollars even.", "No purchase."),
        },
        references=("$300, posted on the third.", "An order was placed."),
    ),
    "flashrag-intermediate_data.json": _of_reefs(
        "flashrag-intermediate_data", ['"Reef"\nReefs are built by animals.'], key="corals"
    ),
    "healthbench.jsonl": Contents(
        (REEFS,),
        nuggets=(
            ("States that animals build reefs", 7.0),
            ("Claims that plants build reefs", -5.0),
        ),
    ),
    "inspect-log.json": _of_reefs("", key="corals", system="openai/gpt"),
    "langfuse-traces-table.json": _of_reefs("langfuse-traces-table"),
    "langsmith-runs.jsonl": _of_reefs("langsmith-runs", [BUILT]),
    "langsmith-ui.csv": _of_reefs("langsmith-ui", [BUILT], key="Corals"),
    "mlflow-eval_results_table.json": _of_reefs("mlflow-eval_results_table", [BUILT], key="Corals"),
    "mlflow-traces.json": _of_reefs("mlflow-traces", [BUILT]),
    "nuggetizer-retrieval-assignments.jsonl": Contents(
        ("What is Python?",),
        nuggets=(
            ("Python is a programming language", 1.0),
            ("Python supports multithreading", 0.5),
        ),
    ),
    "otlp.json": _of_reefs("otlp", [BUILT, "Fish live on reefs."]),
    "phoenix-mime0.json": _of_reefs("phoenix-mime0", [BUILT], "Corals build reefs."),
    "phoenix-msg.json": _of_reefs("phoenix-msg", [BUILT], "Corals build."),
    "phoenix-spans.csv": _of_reefs("phoenix-spans"),
    "quepid.csv": Contents(("what builds reefs",), judgments=(("a", 3), ("b", 0))),
}


@pytest.mark.skipif(not DOORS.is_dir(), reason="no shared data")
@pytest.mark.parametrize("name", IN_DOORS)
def test_files_of_other_people_are_read_rightly(
    tmp_path: Path, empty_exam: exampp.Collection, name: str
) -> None:
    empty_exam.import_files(DOORS / name)
    assert contents(empty_exam, tmp_path) == IN_DOORS[name]
    assert IN_DOORS.keys() | {"README.md"} == {one.name for one in DOORS.iterdir()}


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({**HEALTHBENCH, "rubrics": [{"criterion": "x", "points": "7"}]}, "points: must be a num"),
        ({**HEALTHBENCH, "rubrics": [{"points": 7}]}, r"rubrics\[0\]: is an object without text"),
        ({**MLFLOW, "request": {"a": "x", "b": "y"}}, "is an object with the fields a, b"),
    ],
)
def test_a_fault_in_a_record_is_named_by_line_and_field(
    tmp_path: Path, empty_exam: exampp.Collection, row: Any, said: str
) -> None:
    first = {**HEALTHBENCH, "prompt_id": "p0"} if "rubrics" in row else {**MLFLOW, "trace_id": "0"}
    if "rubrics" not in row:
        first["request"] = "Why?"
    (tmp_path / "log.jsonl").write_text(lines(first, row))
    with pytest.raises(InputError, match=rf"log\.jsonl:2.*{said}"):
        empty_exam.import_files(tmp_path / "log.jsonl")
    report = empty_exam.import_files(tmp_path / "log.jsonl", on_error="skip")
    assert (report.skipped, len(empty_exam.query_texts())) == (1, 1)


def test_the_id_of_a_request_is_not_its_query(
    tmp_path: Path, empty_exam: exampp.Collection
) -> None:
    rated = {"id": "q1", "ratings": [{"_id": "a", "rating": 3}]}
    requests = [{**rated, "request": {"query": {"match": {"text": ASKED}}}}]
    (tmp_path / "log.json").write_text(whole({"requests": requests}))
    with pytest.raises(InputError, match=r"log\.json:.*missing question \(any of query, "):
        empty_exam.import_files(tmp_path / "log.json")
    columns = {"question": "request.query.match.text"}
    empty_exam.import_files(tmp_path / "log.json", columns=columns)
    assert contents(empty_exam, tmp_path) == Contents(judgments=(("a", 3),))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("queries.jsonl", lines({"query_id": "1", "text": " "}, {"query_id": "2", "text": "Why?"})),
        ("queries.csv", "query_id,text\n1,\n2,Why?\n"),
        ("queries.json", '{"1": "", "2": "Why?"}'),
    ],
)
def test_queries_without_text_are_counted(
    tmp_path: Path, empty_exam: exampp.Collection, name: str, content: str
) -> None:
    (tmp_path / name).write_text(content)
    report = empty_exam.import_files(tmp_path / name)
    assert [one.partition(": ")[2] for one in report.remarks] == [
        "1 query without text, the first is '1'"
    ]


def test_a_line_break_in_a_header_is_a_sentence(
    tmp_path: Path, empty_exam: exampp.Collection
) -> None:
    (tmp_path / "log.csv").write_bytes(b'input,actual_output,"expected_output\rWhat?,,light,')
    with pytest.raises(InputError, match=r"log\.csv"):
        empty_exam.import_files(tmp_path / "log.csv")


def test_words_are_ids_of_passages(tmp_path: Path, empty_exam: exampp.Collection) -> None:
    rows = [
        {"query": ASKED, "retrieved_ids": ["a", "b"], "expected_ids": ["b"]},
        {"query": "Why?", "retrieved_ids": ["b"], "expected_ids": ["b"]},
    ]
    (tmp_path / "log.jsonl").write_text(lines(*rows))
    (tmp_path / "corpus.jsonl").write_text(
        lines({"id": "a", "text": CATS}, {"id": "b", "text": LIGHT})
    )
    with pytest.raises(InputError, match="passage 'a' is not in the collection"):
        empty_exam.import_files(tmp_path / "log.jsonl")
    empty_exam.import_files(tmp_path / "corpus.jsonl", tmp_path / "log.jsonl")
    held = Contents((ASKED, "Why?"), {"log": (CATS, LIGHT, LIGHT)}, judgments=(("b", 1), ("b", 1)))
    assert contents(empty_exam, tmp_path) == held
    texts = [{**row, "contexts": row.pop("retrieved_ids")} for row in rows]
    (tmp_path / "log.jsonl").write_text(lines(*texts))
    assert empty_exam.import_files(tmp_path / "log.jsonl", kind="answers").changes == 0


def test_a_line_of_settings_is_named_and_left_out(
    tmp_path: Path, empty_exam: exampp.Collection
) -> None:
    record = {"question": ASKED, "answer": SAID, "contexts": [CATS]}
    (tmp_path / "log.jsonl").write_text(lines({"run": "x", "model": "y"}, record))
    with pytest.raises(
        InputError, match=r"log\.jsonl:1.*missing question.*fields found: run, model"
    ):
        empty_exam.import_files(tmp_path / "log.jsonl")
    assert empty_exam.import_files(tmp_path / "log.jsonl", on_error="skip").skipped == 1
    assert contents(empty_exam, tmp_path).answers == {"log": (SAID,)}


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        # questions for ids, and a misspelt field
        ("log.json", json.dumps({ASKED: SAID, "Why?": SAID}), "unknown file type"),
        ("log.jsonl", lines({"queyr": ASKED, "g_answers": SAID}), "unknown file type"),
        ("log.jsonl", lines({"query": {"text": ASKED}}), "query: must be a text"),
        ("log.csv", f'question,response,contexts\n{ASKED},x,"[\'Cats"\n', "truncated list"),
        ("log.jsonl", lines({"question": ASKED, "answers": {"B": SAID}}), "is an object without"),
        (
            "log.jsonl",
            lines({"question": ASKED, "answer": KEY, "output": SAID, "docs": [CATS]}),
            "'answer' and 'output' may both be the answer",
        ),
        (
            "log.csv",
            f"question,reference\n{ASKED},{KEY}\nquestion,reference\n",
            "log.csv:3: repeats",
        ),
    ],
)
def test_what_is_unclear_is_refused(
    tmp_path: Path, empty_exam: exampp.Collection, name: str, content: str, said: str
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=said):
        empty_exam.import_files(tmp_path / name)
    assert empty_exam.query_texts() == {}


def test_long_texts_beside_references_may_be_answers(
    tmp_path: Path, empty_exam: exampp.Collection
) -> None:
    text = " ".join(["light"] * 20)
    (tmp_path / "log.csv").write_text(f"question,reference,v1,note\n{ASKED},{KEY},{text},x\n")
    report = empty_exam.import_files(tmp_path / "log.csv")
    assert [one for one in report.remarks if "--columns answer" in one] == [
        f"{tmp_path / 'log.csv'}: no answers were read. If 'v1' has them, add --columns answer=v1"
    ]


def test_a_variable_of_promptfoo_is_named_by_its_path(
    tmp_path: Path, empty_exam: exampp.Collection
) -> None:
    row = {
        "vars": {"language": "French", "body": ASKED},
        "promptIdx": 0,
        "provider": {"id": "p"},
        "response": {"output": SAID},
    }
    (tmp_path / "log.jsonl").write_text(lines(row))
    with pytest.raises(InputError, match=r"--columns question=vars\.language"):
        empty_exam.import_files(tmp_path / "log.jsonl")
    report = empty_exam.import_files(tmp_path / "log.jsonl", columns={"question": "vars.body"})
    assert contents(empty_exam, tmp_path) == Contents(answers={"log": (SAID,)})
    assert "vars.language" in str(report.remarks)


def test_the_root_of_a_part_of_a_trace_is_not_its_retriever(
    tmp_path: Path, empty_exam: exampp.Collection
) -> None:
    """The root of the whole trace is not in the file."""
    root = {**RUNS[0], "parent_run_id": "r0", "outputs": None}
    (tmp_path / "log.jsonl").write_text(lines(root, RUNS[1]))
    empty_exam.import_files(tmp_path / "log.jsonl")
    assert contents(empty_exam, tmp_path) == Contents(contexts={"log": (CATS, LIGHT)})


def test_spans_that_are_not_read_are_named(tmp_path: Path, empty_exam: exampp.Collection) -> None:
    tool = {**RUNS[1], "id": "r3", "run_type": "tool"}
    (tmp_path / "log.jsonl").write_text(lines(*RUNS, tool))
    report = empty_exam.import_files(tmp_path / "log.jsonl")
    assert [*report.unread.values()] == [{"spans: tool": 1}]


def test_conversations_of_one_question_differ_by_their_ids(
    tmp_path: Path, empty_exam: exampp.Collection
) -> None:
    """Data sets of chats repeat questions; an earlier turn with contexts is named as unread."""
    asked = {"role": "user", "content": ASKED}
    rows = [
        {"id": name, "messages": [asked, {"role": "assistant", "content": said}]}
        for name, said in (("a", SAID), ("b", LIGHT))
    ]
    earlier = {"role": "assistant", "content": CATS, "contexts": [CATS]}
    reply = {"role": "assistant", "content": SAID}
    rows.append({"id": "c", "messages": [asked, earlier, asked, reply]})
    (tmp_path / "log.jsonl").write_text(lines(*rows))
    report = empty_exam.import_files(tmp_path / "log.jsonl")
    transcript = f"user: {ASKED}\nassistant: {CATS}\nuser: {ASKED}"
    assert empty_exam.query_texts() == {"a": ASKED, "b": ASKED, "c": transcript}
    assert [*report.unread.values()] == [{"messages.contexts": 1}]
    (tmp_path / "cut.jsonl").write_text(lines({"id": "d", "messages": [asked]}))
    with pytest.raises(InputError, match=r"cut\.jsonl:1, messages: the conversation ends with"):
        empty_exam.import_files(tmp_path / "cut.jsonl")


@pytest.mark.parametrize("scores", [[[-1.5, True], [-2.5, False]], [["-1.5", "True"]]])
def test_likelihoods_of_choices_are_no_answers(
    tmp_path: Path, empty_exam: exampp.Collection, scores: Any
) -> None:
    row = {**SAMPLE, "resps": [[one] for one in scores], "filtered_resps": scores}
    (tmp_path / "log.jsonl").write_text(lines(row))
    said = r"log\.jsonl:1, filtered_resps: has log-likelihoods of given choices.*generate_until"
    with pytest.raises(InputError, match=said):
        empty_exam.import_files(tmp_path / "log.jsonl")


def test_the_answer_of_a_run_is_its_first_sampling(
    tmp_path: Path, empty_exam: exampp.Collection
) -> None:
    """A model that grades samples, too."""
    grading = {**EVENTS[2], "event_id": 7, "data": {"prompt": "Is it right?", "sampled": ["Y"]}}
    (tmp_path / "log.jsonl").write_text(lines(*EVENTS[:3], grading))
    report = empty_exam.import_files(tmp_path / "log.jsonl")
    assert contents(empty_exam, tmp_path) == Contents(answers={"log": (SAID,)})
    assert [*report.unread.values()] == [{"spec": 1, "final_report": 1, "spans: sampling": 1}]


def test_answers_of_mt_bench_join_the_questions_by_id(
    tmp_path: Path, empty_exam: exampp.Collection
) -> None:
    """All turns of a model are one answer; several samples of one model are not."""
    answers = [
        {
            "question_id": 81,
            "answer_id": "x",
            "model_id": "gpt-4",
            "choices": [{"index": 0, "turns": [SAID, LIGHT]}],
            "tstamp": 1.5,
        }
    ]
    answers.append({**answers[0], "question_id": 111, "choices": [{"index": 0, "turns": [SAID]}]})
    form = FORMS["MT-bench, questions"]
    (tmp_path / form.name).write_text(form.content)
    (tmp_path / "gpt-4.jsonl").write_text(lines(*answers))
    with pytest.raises(InputError, match=r"query '81' is not in the collection"):
        empty_exam.import_files(tmp_path / "gpt-4.jsonl")
    report = empty_exam.import_files(tmp_path / "gpt-4.jsonl", tmp_path / form.name)
    assert [*report.unread.values()] == [{"reference": 1}]
    assert contents(empty_exam, tmp_path) == form.expected._replace(
        contexts={"gpt-4": (f"{SAID}\n\n{LIGHT}", SAID)}
    )
    choices = [{"index": at, "turns": [SAID]} for at in range(2)]
    (tmp_path / "two.jsonl").write_text(lines({**answers[0], "choices": choices}))
    with pytest.raises(InputError, match=r"two\.jsonl:1, choices.turns: has 2 texts instead of"):
        empty_exam.import_files(tmp_path / "two.jsonl")


def test_rubrics_of_dragun_are_weighted_questions(
    tmp_path: Path, empty_exam: exampp.Collection
) -> None:
    (tmp_path / "t1.json").write_text(whole(DRAGUN))
    empty_exam.import_files(tmp_path / "t1.json")
    assert [(i.kind, i.text, i.weight, i.answers) for i in empty_exam.bank().items("t1")] == [
        ("question", ASKED, 4.0, (KEY, "water")),
        ("question", "Why?", 1.0, (KEY,)),
    ]
    rubric = {**DRAGUN["rubrics"][0], "importance": "D: Unknown"}
    (tmp_path / "t2.json").write_text(json.dumps({"topic_id": "t2", "rubrics": [rubric]}))
    with pytest.raises(
        InputError, match=r"rubrics\[0\].importance: must be a number, not 'D: Unknown'"
    ):
        empty_exam.import_files(tmp_path / "t2.json")


def test_files_of_ragelo_belong_together(tmp_path: Path, empty_exam: exampp.Collection) -> None:
    (tmp_path / "queries.csv").write_text(f"qid,query\n0,{ASKED}\n")
    (tmp_path / "documents.csv").write_text(f"qid,did,document_text\n0,d1, {CATS}\n0,d2, {LIGHT}\n")
    (tmp_path / "answers.csv").write_text(f'qid,agent,answer\n0, a1,"{SAID}"\n0, a2,"{SAID}"\n')
    names = ("answers.csv", "documents.csv", "queries.csv")
    empty_exam.import_files(*(tmp_path / name for name in names))
    answered = {"a1": (SAID,), "a2": (SAID,)}
    assert contents(empty_exam, tmp_path) == Contents(answers=answered)
    assert {str(thing): count for thing, count in empty_exam.contents().rows}["passages"] == 3


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        # the first turn is missing, a turn occurs twice, turn 2 is missing
        (({"turn": 2}, {"turn": 3}), ":1, turn: is turn 2 of conversation 'c'; its earlier turns"),
        (({"turn": 1}, {"turn": 1}), ":2, conversation_id: continues the conversation 'c' of line"),
        (({"turn": 1}, {"turn": 3}), ":2, conversation_id: continues the conversation 'c' of line"),
    ],
)
def test_conversations_with_missing_turns_are_refused(
    tmp_path: Path, empty_exam: exampp.Collection, rows: Sequence[dict[str, Any]], said: str
) -> None:
    turns = [
        {"conversation_id": "c", "question": f"Why {at}?", "answer": SAID, "model": "m", **row}
        for at, row in enumerate(rows)
    ]
    (tmp_path / "log.jsonl").write_text(lines(*turns))
    with pytest.raises(InputError, match=f"log.jsonl{said}"):
        empty_exam.import_files(tmp_path / "log.jsonl")


def test_turns_of_two_systems_and_of_tables(tmp_path: Path, empty_exam: exampp.Collection) -> None:
    """Each system has its own conversation; without numbers the order of the file counts."""
    header = ["conversation_id", "question", "system", "answer"]
    rows = [["c", text, name, name * 2] for text in ("Hi", ASKED) for name in "ab"]
    (tmp_path / "log.csv").write_text(csv_table(header, *rows))
    report = empty_exam.import_files(tmp_path / "log.csv")
    assert [one.split(": ", 1)[1] for one in report.remarks] == [
        "4 records are turns of conversations: each question has the turns before it"
    ]
    asked = [f"user: Hi\nassistant: {name}\nuser: {ASKED}" for name in ("aa", "bb")]
    assert sorted(empty_exam.query_texts().values()) == ["Hi", *asked]


def test_records_in_a_cell_of_a_table_are_read(
    tmp_path: Path, empty_exam: exampp.Collection
) -> None:
    """The table that `mlflow.search_traces` returns, as CSV."""
    (tmp_path / "log.csv").write_text(table(MLFLOW))
    empty_exam.import_files(tmp_path / "log.csv", kind="mlflow-traces")
    assert contents(empty_exam, tmp_path) == FORMS["MLflow, traces"].expected
