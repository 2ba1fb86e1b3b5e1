"""A folder in which every option of every command has something to change."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from support import attacked

import exampp
from exampp import bank_matches
from exampp.analysis.attacks.battery import BatterySettings
from exampp.citations import collect
from exampp.graders.base import Grader, Reply, Request
from exampp.graders.scripted import ScriptedGrader
from exampp.records import item_id
from exampp.service import ExamService

FEW, MANY = 6, 15
"""Numbers of queries; of many there are more resamples than can all be drawn."""
SUBTOPICS = ("a", "b")
PASSAGES = {
    f"p{number}": f"Passage {number} says what is known. It goes on." for number in range(9)
}
RANKED = {"alpha": "0123456", "beta": "3517", "gamma": "86420"}


def items_of(query: str) -> list[str]:
    return [f"What of {query}, part {number}?" for number in range(4)]


ITEM = item_id("q1", items_of("q1")[0], "a")


def chance(*parts: str) -> int:
    """A number from 0 to 5 that looks random."""
    return hashlib.sha256("|".join(parts).encode()).digest()[0] % 6


def rate(ask: Request) -> str:
    return str(chance("judge", ask.item, ask.passage))


def differ(ask: Request) -> str:
    return str(chance("other", ask.item, ask.passage))


def write(folder: Path, number_of_queries: int) -> None:
    """The files that the example is made from, and some to be imported or compared with."""
    texts = {f"q{n}": f"what of subject {n}" for n in range(1, number_of_queries + 1)}
    queries: list[dict[str, object]] = [
        {
            "query_id": query,
            "text": text,
            "subtopics": [{"subtopic_id": s, "text": f"part {s}"} for s in SUBTOPICS],
        }
        for query, text in texts.items()
    ]
    lines: dict[str, list[dict[str, object]]] = {
        "queries.jsonl": queries,
        "passages.jsonl": [{"id": name, "text": text} for name, text in PASSAGES.items()],
        "corpus.jsonl": [{"id": f"c{n}", "text": f"Corpus {n}."} for n in range(30)],
        "bad.jsonl": [{"id": "x1", "text": "One."}, {"id": "x2"}],
        "answers.jsonl": [
            {
                "query_id": "q1",
                "answer": [{"text": "One sentence. Another sentence.", "citations": ["p1"]}],
            }
        ],
        "named.jsonl": [
            {
                "query_id": "q1",
                "system": "chat",
                "answer": [{"text": "One here. Two here.", "citations": ["p1"]}],
            }
        ],
        "reworded.jsonl": [{"query_id": "q1", "title": "another text"}],
        "squad.json": [{"data": []}],
    }
    for name, objects in lines.items():
        (folder / name).write_text("".join(json.dumps(one) + "\n" for one in objects))
    columns = "query_id\tsubtopic_id\tquestion\tanswer\n"
    rows = [
        f"{query}\t{SUBTOPICS[number > 0]}\t{text}\tkey {number}\n"
        for query in texts
        for number, text in enumerate(items_of(query))
    ]
    (folder / "bank.tsv").write_text(columns + "".join(rows))
    (folder / "smaller.tsv").write_text(columns + "".join(rows[:6]))
    (folder / "foreign.tsv").write_text("topic\tgold\n" + "q1\tWhat of it?\n")
    (folder / "doubtful.tsv").write_text("query_id\tquestion\nq1\tIs the tide a kind of wave?\n")
    nuggets = [row.replace("What", "Fact").replace("?", "") for row in rows]
    heads = "query_id\tsubtopic_id\tnugget\n"
    nuggets = [row.rsplit("\t", 1)[0] + "\n" for row in nuggets]
    (folder / "nuggets.tsv").write_text(heads + "".join(nuggets))
    (folder / "few.tsv").write_text(heads + "".join(nuggets[:5]))
    (folder / "systems.run").write_text("".join(ranked(RANKED, texts)))
    (folder / "judged.qrels").write_text("q1 0 p1 1\n")
    (folder / "turned.run").write_text("".join(ranked({"alpha": "753", "beta": "024"}, texts)))
    (folder / "late.run").write_text("".join(ranked({"late": "75310"}, texts)))
    eight = {f"system{number}": "".join(turned(number)) for number in range(8)}
    of_queries = (line for line in ranked(eight, texts) if "/" not in line)
    (folder / "eight.run").write_text("".join(of_queries))
    (folder / "eight.json").write_text(json.dumps({name: n for n, name in enumerate(eight, 1)}))
    twelve = {f"system{number}": "".join(turned(number)) for number in range(12)}
    (folder / "twelve.run").write_text("".join(ranked(twelve, texts)))
    (folder / "twelve.json").write_text(json.dumps({name: n for n, name in enumerate(twelve, 1)}))
    (folder / "corpus.run").write_text(
        "".join(f"q1 Q0 c{n} {n + 1} {30 - n} deep\n" for n in range(30))
    )
    (folder / "unknown.run").write_text("q1 Q0 nowhere 1 1 lost\nq1 Q0 p0 2 0.5 lost\n")
    judged = [
        # p5 comes into the pool by its ranks alone
        f"{q} 0 p{n} {chance('judged', q, str(n)) % 4}\n"
        for q in ("q1", "q2")
        for n in range(9)
        if n != 5
    ]
    (folder / "few.qrels").write_text("".join(judged[:3]))
    (folder / "judgments.qrels").write_text("".join(judged))
    made = [f"{q} 0 p{n} {chance('made', q, str(n))}\n" for q in texts for n in range(9)]
    (folder / "made.qrels").write_text("".join(made))
    memory = [f"{query}\tAll that is known of {query} is this.\n" for query in texts]
    (folder / "memory.tsv").write_text("".join(memory))
    (folder / "official.json").write_text(json.dumps({"alpha": 1, "beta": 2, "gamma": 3}))
    (folder / "other.json").write_text(json.dumps({"gamma": 1, "alpha": 2, "beta": 3}))


def turned(seed: int) -> list[str]:
    return sorted("012345678", key=lambda number: (chance("order", str(seed), number), number))


def ranked(runs: dict[str, str], queries: Iterable[str]) -> Iterator[str]:
    """Rankings of each query and of its subtopics; ranks count from 0, and not all are answered."""
    for system, order in runs.items():
        for query in queries:
            if (system, query) == ("gamma", "q3"):
                continue
            for place, subtopic in (("", ""), ("/a", "a"), ("/b", "b")):
                turned = order[len(subtopic) * 2 :] + order[: len(subtopic) * 2]
                for rank, number in enumerate(turned):
                    yield f"{query}{place} Q0 p{number} {rank} {100 - rank} {system}\n"


def grade(opened: exampp.Collection, script: Any, model: str, **options: Any) -> None:
    opened.grade(ScriptedGrader(script, name=model), model=model, **options)


def make(folder: Path, queries: int) -> None:
    """The files, and collections with one and with several graders and banks."""
    write(folder, queries)
    inputs = ("queries.jsonl", "passages.jsonl", "systems.run", "judgments.qrels")
    with exampp.Collection.create(folder / "bare.exam") as opened:
        few = (*inputs[:-1], "few.qrels", "smaller.tsv", "few.tsv")
        opened.import_files(*(folder / name for name in few))
    with exampp.Collection.create(folder / "named.exam") as opened:
        opened.import_files(folder / "queries.jsonl", folder / "bank.tsv")
        for query in ("q1", "q2"):
            opened.bank().add(query, f"Why of {query}?", item_id="i1")
    with exampp.Collection.create(folder / "my.exam") as opened:
        opened.import_files(*(folder / name for name in (*inputs, "bank.tsv")))
        grade(opened, rate, "judge", depth=1, pool="all")
        decide(opened)
        opened.export(folder / "graded.jsonl.gz")
        opened.grades().calibration().save(folder / "my.calibration")
        opened.export(folder / "bank.jsonl.gz", "bank")
    shutil.copy(folder / "my.exam", folder / "learn.exam")
    cite(folder)
    match(folder)
    abstain(folder)
    draw_from(folder)
    with exampp.Collection(folder / "learn.exam") as opened:
        opened.import_files(folder / "made.qrels", update=True)
    lines = lines_of(folder / "graded.jsonl.gz")
    (folder / "bad.graded.jsonl").write_text("".join([*lines, '["q9", {"broken": 1}]\n']))
    (folder / "labels.graded.jsonl").write_text("".join(map(by_unknown, lines)))
    with exampp.Collection.create(folder / "graders.exam") as opened:
        opened.import_files(*(folder / name for name in (*inputs, "bank.tsv")))
        grade(opened, rate, "judge")
        grade(opened, differ, "other")
        opened.import_files(folder / "nuggets.tsv")
        grade(opened, differ, "finder", prompt="nugget-self-rating")
        grade(opened, lambda ask: str(chance("reader", ask.passage) % 4), "reader", prompt="thomas")
        opened.export(folder / "graders.jsonl.gz")
    with exampp.Collection.create(folder / "banks.exam") as opened:
        opened.import_files(*(folder / name for name in (*inputs, "bank.tsv")))
        opened.import_files(folder / "smaller.tsv", bank="small")
        grade(opened, rate, "judge", bank="main")
        grade(opened, rate, "judge", bank="small")
        opened.bank().export(folder / "stale.csv")
        opened.bank().edit("reword", ITEM, "Reworded?")
        opened.bank("small").edit("weight", ITEM, "2")
        opened.bank().export(folder / "edited.csv")
        opened.bank("small").export(folder / "small.csv")
        same = ScriptedGrader(json.dumps(items_of("q1")[1:3]), record=False)
        opened.bank("main").generate(same, prompt="dl-questions", query_id="q1")
    for name in ("my", "graders", "banks"):
        shutil.copy(folder / f"{name}.exam", folder / f"judged-{name}.exam")
        with exampp.Collection(folder / f"judged-{name}.exam") as opened:
            opened.import_files(folder / "made.qrels", update=True)
            if name == "my":
                opened.export(folder / "judged.graded.jsonl.gz")
                opened.grades().decisions.plan(60, "P@5", design="uniform", seed=1)
                opened.grades().decisions.plan(60, "P@5", seed=2)
    with attacked.make(folder / "gamed.exam") as opened:
        opened.grade(by_chance, name="judge")
        opened.bank().build_battery(settings=BatterySettings(attacks=("A4", "A9")))
    with exampp.Collection(folder / "gamed.attacks.exam") as opened:
        opened.grade(by_chance, name="judge")
    judged = lines_of(folder / "judged.graded.jsonl.gz")
    (folder / "bad.judged.jsonl").write_text("".join([*judged, '["q9", {"broken": 1}]\n']))
    (folder / "labels.judged.jsonl").write_text("".join(map(by_unknown, judged)))
    for name, before, after in (
        ("stale.csv", "part 0", "section 0"),
        ("edited.csv", "part 1", "section 1"),
        ("small.csv", "part 1", "section 1"),
    ):
        text = (folder / name).read_text()
        (folder / name).write_text(text.replace(before, after))
    rows = (folder / "edited.csv").read_text().splitlines(keepends=True)
    (folder / "fewer.csv").write_text("".join([*rows[:-2], rows[-1]]))
    for source, name in (("my", "split"), ("graders", "graders-split"), ("banks", "banks-split")):
        shutil.copy(folder / f"{source}.exam", folder / f"{name}.exam")
        with exampp.Collection(folder / f"{name}.exam") as opened:
            for (bank,) in {row[:1] for row in opened.banks().rows}:
                opened.bank(str(bank)).split(0.5)
            opened.bank().export(folder / f"{name}.jsonl", part="sealed")


def by_chance(item: Any, passage: Any) -> int:
    return chance("judge", item.text, passage.text) % 6


def cite(folder: Path) -> None:
    """A collection of sentences and what they cite, graded twice."""
    said = [{"text": f"Sentence {n}.", "citations": [f"p{n}", f"p{n + 1}"]} for n in range(6)]
    line = {"query_id": "q1", "system": "chat", "answer": said}
    (folder / "cited.jsonl").write_text(json.dumps(line))
    with collect(
        folder / "cited.exam", folder / "cited.jsonl", corpus=folder / "passages.jsonl"
    ) as it:
        it.grade(
            lambda item, one: chance("judge", item.text, one.text) % 3, name="judge", scale=(0, 2)
        )
        it.grade(
            lambda item, one: chance("other", item.text, one.text) % 3, name="other", scale=(0, 2)
        )


def draw_from(folder: Path) -> None:
    """A collection with a passage that says what an answer does not cite."""
    with exampp.Collection.create(folder / "sources.exam") as opened:
        opened.add(
            queries={"q1": "what of it"},
            passages={"s1": "Two are here."},
            runs={"bm25": {"q1": ["s1"]}},
        )


def abstain(folder: Path) -> None:
    """Collections of responses that answer or abstain, graded twice, and once for abstention."""
    said = {"q1": "It is a.", "q2": "I do not know.", "q3": "It is c, surely."}
    with exampp.Collection.create(folder / "replies.exam") as opened:
        opened.add(
            queries=[
                {"query_id": query, "text": f"topic {query}", "answerable": query != "q3"}
                for query in said
            ],
            responses={"chat": said, "mute": dict.fromkeys(said, "I cannot say.")},
            bank={"q1": ["What is a?", "What is b?"], "q2": ["What is a?"]},
        )
        for name in ("judge", "other"):
            opened.grade(lambda item, one, of=name: chance(of, item.text, one.text) % 6, name=name)
        opened.grade(ScriptedGrader(lambda _: "Yes"), prompt="abstention")
        grades = opened.grades("judge")
        query = grades.gradebook.queries[0]
        for item in query.item_ids:
            grades.decisions.decide("q1", item, query.passage_ids[0], 5, author="ann")
        (folder / "replies.run").write_text(f"q1 Q0 {query.passage_ids[0]} 1 1.0 late\n")
    shutil.copy(folder / "replies.exam", folder / "replies-banks.exam")
    with exampp.Collection(folder / "replies-banks.exam") as opened:
        opened.add(bank={"q1": ["What is c?"]}, bank_name="small")
        opened.grade(lambda *_: 5, name="judge", bank="small")


def match(folder: Path) -> None:
    """A collection of three banks, and their matches, graded by a text rule and by scales."""
    key = {"What is a?": "a", "Define a.": "a", "What about a?": "a", "What is zero?": "0"}
    banks = {
        "manual": ["What is a?", "What is b?", "What is zero?"],
        "first": ["Define a.", "What about a?", "What is zero, and one?"],
        "second": ["What is zero?", "Who?"],
    }
    with exampp.Collection.create(folder / "teams.exam") as opened:
        opened.add(queries={query: f"topic {query}" for query in ("q1", "q2", "q3", "q4")})
        for name, texts in banks.items():
            rows = [
                {"query_id": query, "question": text, "answer": key.get(text, "")}
                for query in ("q1", "q2", "q3", *(["q4"] * (name == "manual")))
                for text in texts
            ]
            opened.add(bank=rows, bank_name=name)
        with bank_matches.collect_matches(folder / "matches.exam", opened, "manual") as it:
            it.grade(lambda item, one: chance("judge", item.text, one.text) % 6, name="judge")
            it.grade(
                lambda item, one: chance("other", item.text, one.text) % 4,
                name="other",
                scale=(0, 3),
            )


def lines_of(path: Path) -> list[str]:
    import gzip

    with gzip.open(path, "rt") as stream:
        return stream.readlines()


def decide(opened: exampp.Collection) -> None:
    """Two people decide cells: agreeing, disagreeing, blind."""
    book = opened.grades().gradebook
    for query in book.queries[:2]:
        for number in range(3):
            item, passage = query.item_ids[number], query.passage_ids[number]
            opened.grades().decisions.decide(
                query.query_id, item, passage, number, author="ann", blind=number == 0
            )
            opened.grades().decisions.decide(
                query.query_id, item, passage, number + 2, author="bob"
            )
    third = book.queries[2]
    for passage in third.passage_ids[: third.pool_size]:
        for item in third.item_ids:
            opened.grades().decisions.decide(third.query_id, item, passage, 0, author="ann")


class Recorded(Grader):
    """A grader that writes down how it was made and says 4."""

    settings: Mapping[str, Any]

    def __init__(self, *arguments: Any, **options: Any) -> None:
        said = json.dumps([arguments, options], default=str, sort_keys=True)
        Path("asked.json").write_text(said)
        self.settings = {"made": said}

    def answer(self, asks: Any) -> Iterator[tuple[Request, Reply]]:
        """Rate every passage 4, and list two questions for a request without one."""
        for ask in asks:
            yield (
                ask,
                Reply("4" if ask.item and ask.passage else '["What is new?", "What is the new?"]'),
            )


def served(service: ExamService, *arguments: Any, **options: Any) -> None:
    """In place of a server: grades an answer, and writes down what is asked for."""
    client = service.local_client()
    query = service.list_queries(client).queries[0].query_id
    graded = asdict(service.grade_answer(client, query, "An answer."))
    asked = [list(map(str, arguments[:2])), options, graded]
    Path("served.json").write_text(json.dumps(asked, default=str, sort_keys=True))


def finetuned(*arguments: Any, **options: Any) -> int:
    """In place of a training: writes down what is asked for."""
    asked = {name: value for name, value in options.items() if not callable(value)}
    asked["prompt"] = options["prompt"]("Why?", "So.")
    Path("asked.json").write_text(json.dumps([arguments, asked], default=str, sort_keys=True))
    return 1


def by_unknown(line: str) -> str:
    """A line of graded passages, rated from 0 to 2 by a prompt that exampp does not know."""
    query_id, passages = json.loads(line)
    for passage in passages:
        for entry in passage["exam_grades"]:
            entry |= {"llm_options": {}, "prompt_info": {"prompt_class": "Labels"}}
            for rating in entry["self_ratings"]:
                rating["self_rating"] = min(2, rating["self_rating"])
    return json.dumps([query_id, passages]) + "\n"
