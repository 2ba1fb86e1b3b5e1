"""Banks that a model makes, over real HTTP: what became of each reply, going on after a stop."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from support import exams
from support.commands import Commands
from support.servers import Answer, FaultServer, Seen, called, completion, error

import exampp
from exampp.errors import InputError, Unfinished
from exampp.graders.base import Reply
from exampp.graders.scripted import ScriptedGrader
from exampp.items.generation import GenerationOutcome
from exampp.prompts.generation import UNFINISHED_THOUGHT
from exampp.records import item_id

TOPICS = {
    "well": '{"questions": ["What is a tide?", "Why do tides rise?"]}',
    "fenced": '```json\n{"questions": ["What is a reef?"]}\n```',
    "malformed": '{"questions": ["What is a "geyser"?", "Why do geysers erupt?",]}',
    "half": '{"questions": ["What is magma?", "How do volcanoes er',
    "list": "Here are some:\n1. What is a glacier?\n2. Where do glaciers calve?",
    "python": "['What is sand?', 'Why are dunes curved?']",
    "text": '{"questions": "What is loess?"}',
    "empty": "",
    "refused": "I'm sorry, but I can't help with that.",
    "prose": "Tides are interesting.",
    "echo": '{ "questions" : [question_text_1, question_text_2, ...] }',
    "twins": '{"questions": ["How do rivers carve valleys?", "How do the rivers carve a valley?"]}',
}
BECAME = {
    "well": ("made", 1, 2, 0, "json"),
    "fenced": ("made", 1, 1, 0, "fenced"),
    "malformed": ("failed", 1, 0, 0, "the reply contains no readable questions"),
    "half": ("made", 1, 1, 0, "unfinished"),
    "list": ("made", 1, 2, 0, "list"),
    "python": ("made", 1, 2, 0, "python"),
    "text": ("made", 1, 1, 0, "json"),
    "empty": ("failed", 1, 0, 0, "the reply is empty"),
    "refused": ("failed", 1, 0, 0, "the model refused"),
    "prose": ("failed", 1, 0, 0, "the reply contains no readable questions"),
    "echo": ("failed", 1, 0, 0, "the reply contains no readable questions"),
    "twins": ("made", 1, 1, 1, "json"),
}
FAILED = {f"q-{name}" for name, became in BECAME.items() if became[0] == "failed"}
SAME_VALLEYS = ("How do the rivers carve a valley?", "dropped", "nothing")


def answering(replies: Mapping[str, str]) -> Callable[[Seen], Answer]:
    def script(seen: Seen) -> Answer:
        topic = next(name for name in replies if f"'{name}'" in seen.text)
        return Answer(completion(replies[topic]))

    return script


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A collection of queries alone, each named after the reply that it gets."""
    queries = tmp_path / "queries.json"
    queries.write_text(json.dumps({f"q-{name}": name for name in TOPICS}))
    with exampp.Collection.create(tmp_path / "my.exam") as collection:
        collection.import_files(queries)
        return collection.path


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")


def options(server: FaultServer, **more: Any) -> dict[str, Any]:
    given = {"model": "m", "prompt": "dl-questions", "count": 1, "decode": "text"}
    return {**given, "base_url": server.url, "retries": 0, **more}


def texts(collection: exampp.Collection, *, bank: str = "main", **where: Any) -> list[str]:
    return [str(row[4]) for row in collection.bank(bank).show(**where).rows]


def test_what_became_of_each_reply(path: Path) -> None:
    with FaultServer(answering(TOPICS)) as server, exampp.Collection(path) as collection:
        table, dropped = collection.bank().generate("openai", **options(server))
        became = {str(row[0]).removeprefix("q-"): tuple(row[2:]) for row in table.rows}
        assert became == BECAME
        assert [row[2:5] for row in dropped.rows] == [SAME_VALLEYS]
        assert "What is magma?" in texts(collection)
        assert len(texts(collection)) == sum(one[2] for one in BECAME.values())
        rows = collection.bank().show("q-well").rows
        assert [row[2] for row in rows] == [
            item_id("q-well", text) for text in ("What is a tide?", "Why do tides rise?")
        ]
        # only the failed ones are asked for again
        good = {**TOPICS, "empty": '["Where is it empty?"]', "refused": TOPICS["prose"]}
        server.script = answering(good)
        before = len(server.requests)
        again, _ = collection.bank().generate("openai", **options(server))
        assert {str(row[0]) for row in again.rows} == FAILED
        assert len(server.requests) == before + len(FAILED)
        assert "Where is it empty?" in texts(collection)
        # another prompt, model or bank is another thing
        run = collection.bank().generation("openai", **options(server, prompt="dl-nuggets"))
        assert len(run.pending) == len(TOPICS)
        assert (
            len(collection.bank().generation("openai", **options(server, model="n")).pending) == 12
        )
        assert len(collection.bank("b").generation("openai", **options(server)).pending) == 12


def test_provenance_is_kept_and_exported(path: Path, tmp_path: Path) -> None:
    with FaultServer(answering(TOPICS)) as server, exampp.Collection(path) as collection:
        collection.bank().generate("openai", **options(server, query_id="q-well", author="ann"))
        log = collection.bank().log()
        assert [row[2:4] for row in log.rows] == [("ann", "generate")] * 2
        assert log.rows[0][7] == "m with dl-questions"
        collection.bank().export(tmp_path / "bank.jsonl")
        collection.bank().export(tmp_path / "bank.csv")
    item = json.loads((tmp_path / "bank.jsonl").read_text().splitlines()[0])["items"][0]
    assert item["question_text"] == "What is a tide?"
    origin = item["generated"]
    assert origin["machine_made"] is True
    assert (origin["model"], origin["prompt"]) == ("m", "dl-questions")
    assert origin["at"].endswith("+00:00")
    assert "answers_machine_made" not in origin


def test_a_killed_run_goes_on_with_the_rest(path: Path) -> None:
    good = {name: f'["What is {name} of {n}?"]' for n, name in enumerate(TOPICS)}
    with FaultServer(answering(good)) as server, exampp.Collection(path) as collection:

        def die(settled: GenerationOutcome) -> None:
            seen.append(settled.subject.query_id)
            if len(seen) == 5:
                raise KeyboardInterrupt

        seen: list[str] = []
        with pytest.raises(KeyboardInterrupt):
            collection.bank().generate("openai", on_reply=die, **options(server, concurrency=1))
    with FaultServer(answering(good)) as server, exampp.Collection(path) as collection:
        # the reply that was on its way when the run was killed may have come in
        kept = len(texts(collection))
        assert kept in (5, 6)
        table, _ = collection.bank().generate("openai", **options(server))
        asked = {str(row[0]) for row in table.rows}
        assert len(server.requests) == len(TOPICS) - kept
        assert not asked & set(seen)
        assert len(texts(collection)) == len(TOPICS)
        assert collection.bank().generate("openai", **options(server))["replies"].rows == ()
        assert len(server.requests) == len(TOPICS) - kept


def test_a_server_that_fails_over_and_over_stops_the_run(tmp_path: Path) -> None:
    queries = tmp_path / "queries.json"
    queries.write_text(json.dumps({str(n): f"topic {n}" for n in range(30)}))
    with (
        FaultServer(lambda _: error(400, "too long")) as server,
        exampp.Collection.create(tmp_path / "my.exam") as collection,
    ):
        collection.import_files(queries)
        with pytest.raises(Unfinished, match="20 failures in a row"):
            collection.bank().generate("openai", **options(server))
        assert len(collection.bank().generation("openai", **options(server)).pending) == 30


def test_other_items_of_the_bank_stay(tmp_path: Path) -> None:
    """Also a question that a person retired is not brought back by a model that makes it again."""
    said = '{"questions": ["Why are sunsets red?", "What do the air scatter?", "What is air?"]}'
    with exams.make(tmp_path) as collection:
        sunset = item_id("q1", "Why are sunsets red?")
        collection.bank().edit("retire", sunset)
        before = collection.bank().show().rows
        grader = ScriptedGrader(said)
        table, dropped = collection.bank().generate(
            grader, prompt="dl-questions", query_id="q1", count=1
        )
        assert [row[2:6] for row in table.rows] == [("made", 1, 1, 2)]
        assert [row[3:5] for row in dropped.rows] == [("dropped", "nothing")] * 2
        after = collection.bank().show().rows
        assert set(before) < set(after)
        assert {row[4] for row in set(after) - set(before)} == {"What is air?"}
        # an import of the same bank leaves the generated item alone
        collection.import_files(*exams.write_files(tmp_path / "files"))
        assert set(collection.bank().show().rows) == set(after)


def subtopics(tmp_path: Path) -> exampp.Collection:
    bank = tmp_path / "seed.jsonl"
    lines = [
        {"query_id": "q", "query_text": "Seas", "items": []},
        *(
            {
                "query_id": "q",
                "facet_id": name.lower(),
                "facet_text": name,
                "query_text": f"Seas / {name}",
                "items": [
                    {
                        "question_id": item_id("q", f"Who maps {name}?", name.lower()),
                        "question_text": f"Who maps {name}?",
                    }
                ],
            }
            for name in ("Tides", "Salt")
        ),
    ]
    bank.write_text("".join(json.dumps(line) + "\n" for line in lines))
    queries = tmp_path / "queries.json"
    queries.write_text(json.dumps({"q": "Seas"}))
    collection = exampp.Collection.create(tmp_path / "sub.exam")
    collection.import_files(queries, bank, bank="seed")
    return collection


def test_one_request_per_subtopic(tmp_path: Path) -> None:
    replies = {"Tides": '["What is a spring tide?"]', "Salt": '["Why is the Dead Sea salty?"]'}
    with FaultServer(answering(replies)) as server, subtopics(tmp_path) as collection:
        chosen = options(server, prompt="car-questions")
        collection.bank().generate("openai", **chosen)
        assert all("between 'Seas' with" in seen.text for seen in server.requests)
        assert [row[2] for row in collection.bank().show().rows] == [
            item_id("q", "What is a spring tide?", "tides"),
            item_id("q", "Why is the Dead Sea salty?", "salt"),
        ]
        with pytest.raises(InputError, match="is for subtopics"):
            collection.bank().generation(
                "openai", **options(server, prompt="car-nuggets", per="query")
            )
        run = collection.bank().generation("openai", **options(server, per="subtopic"))
        assert "Break the query 'Seas / Tides' into" in run.preview().prompts[0]


def test_keys_are_marked_as_machine_made(tmp_path: Path) -> None:
    said = '{"questions": [{"question": "What is air?", "answer": "a gas"}]}'
    grader = ScriptedGrader(said)
    with exams.make(tmp_path) as collection:
        collection.bank("k").generate(
            grader, prompt="dl-questions", keys=True, query_id="q1", count=1
        )
        assert [row[4:6] for row in collection.bank("k").show().rows] == [("What is air?", "a gas")]
        collection.bank("k").export(tmp_path / "k.jsonl")
    assert '"answers_machine_made":true' in (tmp_path / "k.jsonl").read_text()
    assert '"answer" : answer_text_1' in grader.calls[0].user


def test_more_of_one_query_tells_what_there_is(tmp_path: Path) -> None:
    grader = ScriptedGrader(['["What is air?"]', '["What is haze?"]'])
    with exams.make(tmp_path) as collection:
        for _ in range(2):
            collection.bank().generate(grader, prompt="dl-questions", query_id="q1", more=1)
        assert "already:\n- What does air scatter?\n- Why are sunsets red?\nGive exactly 1" in (
            grader.calls[0].user
        )
        assert "- What is air?\nGive exactly 1 new questions" in grader.calls[1].user
        assert texts(collection, query_id="q1")[2:] == ["What is air?", "What is haze?"]
        with pytest.raises(InputError, match="--more needs a query"):
            collection.bank().generation(grader, prompt="dl-questions", more=1)


def test_grounded_in_the_best_passages(collection: exampp.Collection) -> None:
    """Of q1 by relevance: p1 (3), p2 (1), never p4 (0)."""
    grader = ScriptedGrader('["What is air?"]')
    collection.bank().generate(grader, prompt="dl-questions", query_id="q1", grounded=3, count=1)
    sent = grader.calls[0].user
    assert f"Passage 1: {exams.PASSAGES['p1']}\nPassage 2: {exams.PASSAGES['p2']}\n" in sent
    assert exams.PASSAGES["p4"] not in sent


def test_without_passages_nothing_is_grounded(path: Path) -> None:
    with exampp.Collection(path) as collection:
        run = collection.bank().generation(ScriptedGrader(""), prompt="dl-questions", grounded=1)
        assert run.pending == []
        assert run.notes == ("12 queries have no passages and are left out",)


def test_a_reply_cut_by_the_model_or_refused_by_the_server(tmp_path: Path) -> None:
    replies = [
        Reply("1. What is air?\n2. What is ha", truncated=True),
        Reply("no", detail={"refusal": True}),
    ]
    with exams.make(tmp_path) as collection:
        table, _ = collection.bank("b").generate(
            ScriptedGrader(replies), prompt="dl-questions", count=1
        )
        assert [row[2:] for row in table.rows] == [
            ("made", 1, 1, 0, "list"),
            ("failed", 1, 0, 0, "the model refused"),
        ]


def test_a_published_bank_is_made_again(shared_data: Path, tmp_path: Path) -> None:
    """From replies with the published nuggets come their ids; 5 that say the same are dropped."""
    source = shared_data / "car-y3" / "nuggets.jsonl.gz"
    lines = list(map(json.loads, gzip.decompress(source.read_bytes()).splitlines()[:200]))
    published = {item["nugget_id"] for line in lines for item in line["items"]}
    titles, replies = {}, {}
    for line in lines:
        titles[line["query_id"]], _, line["facet_text"] = line["query_text"].partition(" / ")
        said = json.dumps({"nuggets": [item["nugget_text"] for item in line["items"]]})
        replies[line["query_id"], line["facet_id"]] = said
    queries, bank = tmp_path / "queries.json", tmp_path / "bank.jsonl"
    queries.write_text(json.dumps(titles))
    bank.write_text("".join(json.dumps(line) + "\n" for line in lines))

    with exampp.Collection.create(tmp_path / "car.exam") as collection:
        collection.import_files(queries, bank, bank="published")
        chosen: dict[str, Any] = {"prompt": "car-nuggets"}
        due = collection.bank("made").generation(ScriptedGrader(""), **chosen).pending
        queue = [replies[one.query_id, one.subtopic_id] for one in due]
        table, twins = collection.bank("made").generate(
            ScriptedGrader(queue, record=False), **chosen
        )
        assert [row[2] for row in table.rows] == ["made"] * len(lines)
        ids = {str(row[2]) for row in collection.bank("made").show().rows}
    assert len(ids) == 859
    assert ids <= published
    assert sum(row[3] == "dropped" for row in twins.rows) == 5
    assert len(twins.rows) > 5


NEAR = [
    "Which animals eat plants?",
    "Which plants eat animals?",
    "Which animals eat the plants?",
    "Which animals do not eat plants?",
    "Which animals eat 2 plants?",
    "When were the walls of Rome built?",
    "When were the walls of Oslo built?",
    "In what year were the walls of Rome built?",
]


def test_paraphrases_are_kept_and_marked(tmp_path: Path) -> None:
    said = json.dumps({"questions": NEAR})
    ids = [item_id("q1", text) for text in NEAR]
    with exams.make(tmp_path) as collection:
        chosen: dict[str, Any] = {"prompt": "dl-questions", "query_id": "q1", "count": 6}
        table, near = collection.bank("made").generate(ScriptedGrader(said), **chosen)
        assert [row[2:6] for row in table.rows] == [("made", 6, 7, 1)]
        assert table.verdict.startswith("7 of 6 questions added to the bank 'made' (1 paraphrase)")
        assert [row[2:] for row in near.rows] == [
            (NEAR[2], "dropped", "nothing", f"{ids[0]}: {NEAR[0]}"),
            (NEAR[7], "kept", "the wording", f"{ids[5]}: {NEAR[5]}"),
        ]
        assert near.notes[0].startswith("1 dropped as duplicates: 'Which")
        assert near.notes[1].startswith("1 marked as paraphrases")

        findings = {row[2]: row[4] for row in collection.bank("made").lint().rows if row[2]}
        later, earlier = sorted([ids[5], ids[7]], reverse=True)
        texts = {ids[5]: NEAR[5], ids[7]: NEAR[7]}
        assert findings == {later: f"like {earlier}: {texts[earlier]}"}


def test_a_stored_reply_that_can_be_read_now_is_not_requested_again(path: Path) -> None:
    with FaultServer(answering(TOPICS)) as server, exampp.Collection(path) as collection:
        collection.bank().generate("openai", **options(server))
        before = len(server.requests)
        # as if an earlier version had not been able to read it
        with collection.connection as connection:
            connection.execute(
                "UPDATE generation SET reply = ? WHERE reply = ?",
                (TOPICS["python"], TOPICS["prose"]),
            )
        run = collection.bank().generation("openai", **options(server))
        assert {one.query_id for one in run.pending} == FAILED - {"q-prose"}
        assert "1 queries have a stored reply that can be read now" in run.notes
        first = next(run.steps())
        assert (first.subject.query_id, first.reason, len(first.items)) == ("q-prose", "python", 2)
        collection.bank().generate("openai", **options(server))
        assert {seen.text.split("'")[1] for seen in server.requests[before:]} == {
            name.removeprefix("q-") for name in FAILED - {"q-prose"}
        }


def test_the_estimate_is_that_of_the_first_requests(path: Path) -> None:
    """One token of four characters; 25 tokens for each of the items."""
    grader = ScriptedGrader("")
    with exampp.Collection(path) as collection:
        for prompt, count, items in (("dl-questions", 0, 10), ("dl-questions", 4, 4)):
            run = collection.bank().generation(grader, prompt=prompt, count=count)
            found = run.preview(2.0, 8.0)
            assert (found.requests, found.again) == (12, True)
            assert found.cost == pytest.approx((2 * found.tokens + 8 * 12 * 25 * items) / 1e6)


FIVE = {
    "first": '{"questions": ["What is a tide?", "Why do tides rise?", "What is a tide?"]}',
    "again": '{"questions": ["Why do tides rise?", "Who maps tides?"]}',
}


def test_a_query_with_too_few_items_is_asked_once_more(path: Path) -> None:
    def script(seen: Seen) -> Answer:
        return Answer(completion(FIVE["again" if "already" in seen.text else "first"]))

    with FaultServer(script) as server, exampp.Collection(path) as collection:
        chosen = options(server, count=5, query_id="q-well")
        table, _ = collection.bank().generate("openai", **chosen)
        first, second = (seen.text for seen in server.requests)
        assert "Generate 5 concise" in first
        assert "- What is a tide?\n- Why do tides rise?\nGive exactly 3 new questions" in second
        assert [row[2:] for row in table.rows] == [
            ("made", 5, 2, 1, "json"),
            ("made", 3, 1, 1, "json"),
        ]
        assert table.verdict == (
            "3 of 5 questions added to the bank 'main' by 2 requests; 2 duplicates dropped, "
            "0 failed. 1 query has fewer questions than requested."
        )
        # nothing is asked a third time
        assert not collection.bank().generation("openai", **chosen).pending
        collection.bank().generate("openai", **chosen)
        assert len(server.requests) == 2


def test_limits_hold_for_the_second_requests_too(path: Path) -> None:
    with FaultServer(answering(TOPICS)) as server, exampp.Collection(path) as collection:
        chosen = options(server, count=3, concurrency=1, max_requests=len(TOPICS) + 2)
        table, _ = collection.bank().generate("openai", **chosen)
        assert len(server.requests) == len(table.rows) == len(TOPICS) + 2
        made = [name for name, became in BECAME.items() if became[0] == "made"]
        again = [row[0] for row in table.rows[len(TOPICS) :]]
        assert again == [f"q-{name}" for name in made[:2]]
        # a failed reply is not repeated at once: the same request would fail again
        assert "have fewer questions than requested" in table.verdict
        # the second requests that were not sent follow, with those that failed
        del chosen["max_requests"]
        run = collection.bank().generation("openai", **chosen)
        assert f"{len(made) - 2} queries have fewer items than requested" in " ".join(run.notes)
        before = len(server.requests)
        table, _ = collection.bank().generate("openai", **chosen)
        rest = [row[0] for row in table.rows if row[0] not in FAILED]
        assert rest == [f"q-{name}" for name in made[2:]]
        assert len(server.requests) == before + len(rest) + len(FAILED)


OBEYS = json.dumps({"number": [7531, 7531]})


def obedient(seen: Seen) -> Answer:
    """Keep to the schema of a request as llama.cpp does, and repeat one item as long as it may."""
    form = seen.body.get("response_format")
    if form is None:
        return Answer(completion("Question: What is a tide?\n\n" * 40 + "Question: Wh", "length"))
    ((name, value),) = form["json_schema"]["schema"]["properties"].items()
    if name == "number":
        return Answer(completion(OBEYS))
    return Answer(completion(json.dumps({name: ["What is a tide?"] * value["maxItems"]})))


def test_a_server_is_made_to_keep_to_the_schema_where_the_prompt_asks_for_json(
    path: Path,
) -> None:
    with FaultServer(obedient) as server, exampp.Collection(path) as collection:
        chosen = options(server, decode=None, count=4, query_id="q-well")
        table, _ = collection.bank().generate("openai", **chosen)
        probe, first, _ = server.requests
        schema = first.body["response_format"]["json_schema"]["schema"]
        assert schema == {
            "type": "object",
            "properties": {
                "questions": {
                    "type": "array",
                    "items": {"type": "string"},
                    "minItems": 1,
                    "maxItems": 4,
                }
            },
            "required": ["questions"],
            "additionalProperties": False,
        }
        assert probe.text == "Say hello."
        assert [row[3:] for row in table.rows] == [(4, 1, 3, "json"), (3, 0, 4, "json")]
        keyed = options(server, decode="json", keys=True, count=4, query_id="q-half")
        collection.bank().generate("openai", **keyed)
        items = server.requests[-1].body["response_format"]["json_schema"]["schema"]
        assert items["properties"]["questions"]["items"]["required"] == ["question", "answer"]
        # a list in Python needs no schema, and no probe
        before = len(server.requests)
        listed = options(
            server, decode=None, prompt="dl-questions-list", query_id="q-list", count=1
        )
        table, _ = collection.bank().generate("openai", **listed)
        assert len(server.requests) == before + 1
        assert table.rows[0][2:] == ("made", 1, 1, 39, "list")


def test_a_server_without_schemas_writes_text(path: Path) -> None:
    reply = Answer(completion(TOPICS["fenced"]))
    with FaultServer(lambda _: reply) as server, exampp.Collection(path) as collection:
        chosen = options(server, decode=None, query_id="q-well")
        table, _ = collection.bank().generate("openai", **chosen)
        assert table.rows[0][2:] == ("made", 1, 1, 0, "fenced")
        assert "response_format" not in server.requests[-1].body
        with pytest.raises(InputError, match=r"does not obey JSON schemas.* Use decode 'text'"):
            collection.bank("b").generate("openai", **{**chosen, "decode": "json"})
        with pytest.raises(InputError, match="needs decode 'auto' or 'text' or 'json'"):
            collection.bank("b").generation("openai", **{**chosen, "decode": "labels"})


@pytest.mark.parametrize("shape", called("{}"))
def test_items_in_a_tool_call_are_read(path: Path, shape: str) -> None:
    message = called('{"questions": ["What is a tide?", "Why do tides rise?"]}')[shape]
    answer = Answer(completion(None, "tool_calls", message=message))
    with FaultServer(lambda _: answer) as server, exampp.Collection(path) as collection:
        table, _ = collection.bank().generate("openai", **options(server, query_id="q-well"))
        assert table.rows[0][2:] == ("made", 1, 2, 0, "json")
        (reply,) = collection.connection.execute("SELECT reply FROM generation").fetchone()
    assert json.loads(reply)["questions"][0] == "What is a tide?"


def test_a_thought_without_a_reply_is_stored(path: Path) -> None:
    answer = Answer(completion(None, message={"reasoning_content": "What to ask?"}))
    with FaultServer(lambda _: answer) as server, exampp.Collection(path) as collection:
        table, _ = collection.bank().generate("openai", **options(server, query_id="q-well"))
        assert table.rows[0][2:] == ("failed", 1, 0, 0, UNFINISHED_THOUGHT)
        (reply,) = collection.connection.execute("SELECT reply FROM generation").fetchone()
    assert reply == "<think>What to ask?"


@pytest.mark.parametrize("count", [-1, 201])
def test_a_number_of_items_out_of_bounds(path: Path, count: int) -> None:
    why = f"count is {count}.* Use a number from 1 to 200"
    with exampp.Collection(path) as collection, pytest.raises(InputError, match=why):
        collection.bank().generation(ScriptedGrader(""), prompt="dl-questions", count=count)


def test_the_command(path: Path, exampp_command: Commands) -> None:
    with FaultServer(answering(TOPICS)) as server:
        start = ("bank", "generate", path, "--grader", "openai", "--model", "m")
        fixed = ("--prompt", "dl-questions", "--decode", "text", "--count", 1)
        line = (*start, "--base-url", server.url, *fixed)
        prices = ("--price-read", 1, "--price-written", 2)
        dry = exampp_command(*line, "--dry-run", *prices)
        assert dry.code == 0
        assert not server.requests
        assert "requests        12, one per query; a second one where items are missing" in dry.out
        assert "cost            about 0.0" in dry.out
        assert "--- prompt 2 ---\nBreak the query 'fenced'" in dry.out
        limited = exampp_command(*line, "--max-requests", 3, "--concurrency", 1)
        assert limited.code == 1
        assert "9 requests left (max_requests: 3 requests); this continues" in limited.err
        rest = exampp_command(*line, "--format", "json")
        assert rest.code == 0
        # of the first three, one failed: it is asked for again
        asked = {row["query"] for row in json.loads(rest.out)["requests"]["rows"]}
        assert asked == {f"q-{name}" for name in TOPICS} - {"q-well", "q-fenced"}
        assert "q-malformed" in FAILED
        assert len(server.requests) == 3 + 10


def test_a_command_without_any_result_fails(path: Path, exampp_command: Commands) -> None:
    with FaultServer(lambda _: Answer(completion("I would rather not."))) as server:
        options = ("--grader", "openai", "--model", "m", "--decode", "text")
        line = (path, *options, "--base-url", server.url)
        made = exampp_command("bank", "generate", *line)
        assert made.code == 1
        assert "all requests failed; this retries:\n  exampp bank generate" in made.err
        assert "the reply contains no readable questions" in made.out
        with exampp.Collection(path) as exam:
            exam.add(
                bank=[{"query_id": "q-well", "question": "Is it a topic?"}],
                passages={"p": "It is."},
                runs=[{"query_id": "q-well", "passage_id": "p", "score": 1.0, "system": "s"}],
            )
        graded = exampp_command("grade", *line)
        assert graded.code == 1
        assert "1 without a grade" in graded.out
        assert "all cells failed; this retries:\n  exampp grade" in graded.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--grader", "draft", "--prompt", "dl-questions"],
            "cannot generate text. Use hf or openai",
        ),
        (["--grader", "openai", "--prompt", "dl-questions"], "missing model"),
        (["--grader", "openai", "--prompt", "dl"], "unknown prompt 'dl'"),
        (
            ["--grader", "openai", "--model", "m", "--prompt", "dl-nuggets", "--device", "cpu"],
            "has no option --device",
        ),
        (
            ["--grader", "openai", "--model", "m", "--kind", "nugget"],
            "bank generate has no option --kind. The prompt decides the kind",
        ),
        (
            ["--grader", "openai", "--model", "m", "--prompt", "car-nuggets"],
            "the collection has no subtopics",
        ),
        (
            ["--grader", "openai", "--model", "m", "--prompt", "dl-nuggets", "--query", "x"],
            "query 'x' is not in the collection",
        ),
        (
            ["--grader", "openai", "--model", "m", "--prompt", "dl-nuggets", "--more", "3"],
            "--more needs a query. Name it with --query",
        ),
    ],
)
def test_what_cannot_be_asked(
    arguments: list[str],
    message: str,
    path: Path,
    exampp_command: Commands,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    ran = exampp_command("bank", "generate", path, *arguments)
    assert ran.code == 2
    assert message in ran.err
    assert len(ran.err.splitlines()) == 1


def test_without_a_prompt_questions_on_whole_queries_are_asked(
    path: Path, exampp_command: Commands
) -> None:
    arguments = ("bank", "generate", path, "--grader", "openai", "--model", "m", "--dry-run")
    ran = exampp_command(*arguments)
    assert (ran.code, ran.out) == (0, exampp_command(*arguments, "--prompt", "dl-questions").out)
