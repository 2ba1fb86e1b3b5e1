"""Scores of texts equal those of the same texts imported, graded and evaluated."""

from __future__ import annotations

import asyncio
import json
import math
import pickle
import random
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from support import exams, servers
from support.forked import forked

import exampp
from exampp.errors import InputError, Unfinished
from exampp.graders.base import Grader, Reply, Request
from exampp.graders.scripted import ScriptedGrader
from exampp.measures.text_scores import Scores
from exampp.prompts.words import stopwords

WORDS = ("air", "blue", "copper", "delta", "echo", "field", "green", "hill", "iron", "jet")


def reply_to(request: Request) -> Reply:
    """A rating, an unreadable reply or no reply, by the texts of the cell."""
    chance = random.Random(f"{request.item}|{request.passage}")
    kind = chance.random()
    if kind < 0.08:
        return Reply("Rating: 17")
    if kind < 0.16:
        return Reply("", fault="no answer within 60 s")
    rating = chance.randint(0, 5)
    if kind < 0.5:
        return Reply(str(rating))
    weights = [chance.random() + 5 * (label == rating) for label in range(6)]
    scores = {str(label): weight / sum(weights) for label, weight in enumerate(weights)}
    return Reply(str(rating), scores=scores)


def grader() -> ScriptedGrader:
    return ScriptedGrader(reply_to, name="by-texts")


def random_bank(chance: random.Random, kind: str) -> dict[str, list[dict[str, Any]]]:
    importances = ("vital", "okay", "avoid", None)
    bank: dict[str, list[dict[str, Any]]] = {}
    for query in ("q1", "q2"):
        bank[query] = []
        for number in range(chance.randint(1, 6)):
            words = " ".join(chance.choices(WORDS, k=3))
            one: dict[str, Any] = {kind: f"{words} {number}?", "id": f"{query}-{number}"}
            if kind == "nugget":
                one["importance"] = chance.choice(importances)
            else:
                one["weight"] = chance.choice([1, 1, 2.5, 0.5, 0, -1, -3])
                if chance.random() < 0.5:
                    one["answers"] = chance.choices(WORDS, k=2)
            bank[query].append({name: value for name, value in one.items() if value is not None})
    return bank


def random_text(chance: random.Random) -> str:
    paragraphs = [
        ". ".join(" ".join(chance.choices(WORDS, k=chance.randint(1, 9))) for _ in range(3))
        for _ in range(chance.choice([1, 1, 2, 5, 30]))
    ]
    return chance.choice(["", "\n", "\0", "caf\u00e9 \ud800 "]) + "\n\n".join(paragraphs)


def evaluated(
    exam: exampp.Collection,
    texts: Sequence[str],
    measure: str,
    part: str | None,
    **options: Any,
) -> list[tuple[float, ...] | None]:
    """Import texts as systems, grade and evaluate them; None where the measure is undefined."""
    systems = {f"s{number:03}": {"q1": text} for number, text in enumerate(texts)}
    exam.add(responses=systems, passage_tokens=12)
    exam.grade(grader(), depth=20, **{k: v for k, v in options.items() if k == "prompt"})
    board = exam.grades(part=part).evaluate(
        [measure], missing="bounds", min_rating=options.get("min_rating")
    )
    (column,) = board.columns
    if "q1" not in column.query_ids:
        return [None] * len(texts)
    at = column.query_ids.index("q1")
    rows = [list(board.column_systems).index(name) for name in systems]
    sides = (column.values, column.low, column.high)
    return [
        tuple(float(side.values[row, at]) for side in sides if side)
        if column.values.counts[row, at]
        else None
        for row in rows
    ]


@pytest.mark.parametrize("seed", range(24))
def test_scores_equal_those_of_imported_texts(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    kind = chance.choice(["question", "nugget"])
    measures = ("Cover@20", "Cover@1", "Points@20", "Avoided@3", "NuggetAll", "NuggetVital@2")
    measure = chance.choice(measures)
    options: dict[str, Any] = {"min_rating": chance.choice([None, 1, 3, 5])}
    texts = [random_text(chance) for _ in range(5)]
    with exampp.create(tmp_path / "my.exam") as exam:
        exam.add(queries={"q1": "why?", "q2": "how?"}, bank=random_bank(chance, kind))
        part = None
        if chance.random() < 0.4:
            exam.bank().split(0.5, seed=seed, author="ada")
            part = chance.choice(["public", "sealed"])
        scorer = exam.scorer(grader(), measure=measure, passage_tokens=12, **options)
        found = []
        with suppress(InputError):
            scores = scorer.score("q1", texts, part=part)
            found = [(one.score, one.low, one.high) for one in scores]
        expected = evaluated(exam, texts, measure, part, **options)
    if not found:
        assert expected == [None] * len(texts)
        return
    for mine, theirs in zip(found, expected, strict=True):
        assert theirs is not None
        assert mine == pytest.approx(theirs, abs=1e-12)


def test_answer_keys_verify_extracted_answers(tmp_path: Path) -> None:
    bank = {"q1": [{"question": "colour?", "answers": ["blue"]}, {"question": "metal?"}]}
    replies: dict[str | tuple[str, str], str | Reply] = {
        ("colour?", "the sky is blue"): "blue",
        ("colour?", "the sky is red"): "red",
        "metal?": "iron",
    }
    with exampp.create(tmp_path / "my.exam") as exam:
        exam.add(queries={"q1": "why?"}, bank=bank)
        extracting = ScriptedGrader(replies)
        scorer = exam.scorer(extracting, prompt="question-answering")
        scores = scorer.score("q1", ["the sky is blue", "the sky is red"])
        exam.add(responses={"a": {"q1": "the sky is blue"}, "b": {"q1": "the sky is red"}})
        exam.grade(ScriptedGrader(replies), prompt="question-answering")
        board = exam.grades().evaluate(["Cover@20"])
    assert scores.values == board.columns[0].values.values[:, 0].tolist()
    assert scores.values[0] > scores.values[1]


def test_expected_score_by_hand(tmp_path: Path) -> None:
    # P(rating >= 4) = .5 + .25 and .1; weights 3 and 1
    chances = {
        "easy?": {"3": 0.25, "4": 0.5, "5": 0.25},
        "hard?": {"0": 0.9, "5": 0.1},
    }
    script = {item: Reply(max(p, key=p.__getitem__), scores=p) for item, p in chances.items()}
    bank = {"q1": [{"question": "easy?", "weight": 3}, {"question": "hard?", "weight": 1}]}
    with exampp.create(tmp_path / "my.exam") as exam:
        exam.add(queries={"q1": "why?"}, bank=bank)
        one, two = exam.scorer(ScriptedGrader(script), passage_tokens=6).score(
            "q1", ["Copper is a metal.", "Copper is a metal.\n\nIron is a metal."]
        )
    assert one.score == 0.75
    assert one.expected == pytest.approx(0.75 * 0.75 + 0.25 * 0.1)
    assert one.deviation == pytest.approx(
        math.sqrt((0.75**2) * 0.75 * 0.25 + (0.25**2) * 0.1 * 0.9)
    )
    # two passages: an item is covered unless both fail
    assert two.passages == 2
    assert two.expected == pytest.approx(0.75 * (1 - 0.25**2) + 0.25 * (1 - 0.9**2))


def test_cells_without_a_grade_are_counted_and_bound_the_score(tmp_path: Path) -> None:
    script = {"a?": Reply("5"), "b?": Reply("17"), "c?": Reply("", fault="server down")}
    bank = {"q1": [{"question": one} for one in script]}
    with exampp.create(tmp_path / "my.exam") as exam:
        exam.add(queries={"q1": "why?"}, bank=bank)
        (one,) = scores = exam.scorer(ScriptedGrader(script)).score("q1", ["some text"])
    assert (one.score, one.low, one.high) == pytest.approx((1 / 3, 1 / 3, 1))
    assert (one.unparsed, one.failed) == (1, 1)
    assert sorted(one.ratings.values(), key=str) == [5, None, None]
    assert one.expected is None
    assert "2 cells without a grade" in str(scores)
    assert json.loads(scores.to_json())["scores"]["rows"][0]["high"] == 1


def test_each_distinct_cell_is_requested_once(small_exam: exampp.Collection) -> None:
    asked = ScriptedGrader("4")
    scorer = small_exam.scorer(asked)
    first = scorer.score("q1", ["one text", "another", "one text", " one text "])
    assert len(asked.calls) == 2 * 2
    again = scorer.score("q1", ["another", "one text"])
    assert len(asked.calls) == 4
    assert first.values == [1.0] * 4
    assert again.values == [1.0] * 2
    # in one batch, with the cells of a passage side by side
    assert [one.passage for one in asked.calls] == ["one text"] * 2 + ["another"] * 2


def test_nothing_is_stored(small_exam: exampp.Collection) -> None:
    before = exams.tables(small_exam.path)
    small_exam.scorer("draft").score("q1", ["Air scatters blue light."])
    assert exams.tables(small_exam.path) == before


def test_the_cache_is_bounded_and_may_be_off(small_exam: exampp.Collection) -> None:
    asked = ScriptedGrader("4")
    scorer = small_exam.scorer(asked, cached=3)
    for _ in range(2):
        scorer.score("q1", [f"text {number}" for number in range(10)])
    # the three newest of twenty cells are still there
    assert len(asked.calls) == 20 + 17
    off = small_exam.scorer(asked, cached=0)
    assert off.score("q1", ["x", "y"]).values == [1.0, 1.0]


class Fails(ScriptedGrader):
    """Fails every second batch."""

    batches = 0

    def answer(self, requests: Any) -> Any:
        self.batches += 1
        if self.batches % 2:
            list(zip(range(1), requests, strict=False))
            raise OSError("connection refused")
        return super().answer(requests)


def test_a_failed_batch_raises_and_is_requested_again(small_exam: exampp.Collection) -> None:
    scorer = small_exam.scorer(Fails("4"))
    with pytest.raises(OSError, match="connection refused"):
        scorer.score("q1", ["x"])
    assert scorer.score("q1", ["x"]).values == [1.0]


class Stops(Grader):
    """Answers one request, and then stops because its budget is spent."""

    stopped = ""

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"name": "stops"}

    def answer(self, requests: Any) -> Any:
        for request in requests:
            self.stopped = "the budget of 1 is spent"
            yield request, Reply("5")
            return


def test_a_grader_that_stops_raises_and_what_it_said_is_cached(
    small_exam: exampp.Collection,
) -> None:
    scorer = small_exam.scorer(Stops())
    with pytest.raises(Unfinished, match=r"the budget of 1 is spent; 1 of 2 cells have no grade"):
        scorer.score("q1", ["x"])
    assert scorer.score("q1", ["x"]).values == [1.0]


class Varies(ScriptedGrader):
    varies = True


def test_an_unreadable_reply_of_a_grader_that_varies_is_requested_once_more(
    small_exam: exampp.Collection,
) -> None:
    replies = iter(["17", "17", "5", "17", "4", "4"])
    asked = Varies(lambda _: next(replies))
    scorer = small_exam.scorer(asked)
    (one,) = scorer.score("q1", ["x"])
    assert sorted(one.ratings.values(), key=str) == [5, None]
    assert one.unparsed == 1
    # it may get a grade the next time
    assert scorer.score("q1", ["x"]).values == [1.0]
    assert len(asked.calls) == 5


class Slow(ScriptedGrader):
    """Lets other threads queue their cells; records how many cells each batch has."""

    def __init__(self, started: threading.Event, go: threading.Event) -> None:
        super().__init__(reply_to)
        self.started, self.go, self.batches = started, go, list[int]()

    def answer(self, requests: Any) -> Any:
        batch = list(requests)
        self.batches.append(len(batch))
        self.started.set()
        assert self.go.wait(30)
        yield from super().answer(batch)


def test_threads_share_batches_and_cells(small_exam: exampp.Collection) -> None:
    started, go = threading.Event(), threading.Event()
    slow = Slow(started, go)
    scorer = small_exam.scorer(slow)
    texts = [f"text {number % 5}" for number in range(20)]
    alone = small_exam.scorer(grader()).score("q1", texts).values
    with ThreadPoolExecutor(21) as pool:
        first = pool.submit(scorer.score, "q1", ["the first text"])
        assert started.wait(30)
        rest = [pool.submit(scorer.score, "q1", [text]) for text in texts]
        while len(scorer._queue._waiting) < 10:
            assert not first.done()
        go.set()
        assert [one.result().values[0] for one in rest] == alone
    # failed cells are not cached, so that a late thread may ask for them again
    assert slow.batches[0] == 2
    assert slow.batches[1] == 10
    failed = sum(one.failed for one in scorer.score("q1", sorted(set(texts))))
    assert sum(slow.batches[2:]) <= failed * (len(texts) + 1)


def test_the_event_loop_is_not_blocked(small_exam: exampp.Collection) -> None:
    started, go = threading.Event(), threading.Event()
    slow = Slow(started, go)
    scorer = small_exam.scorer(slow)

    async def run() -> list[list[float]]:
        calls = [
            asyncio.create_task(scorer.score_async("q1", [f"text {number}"]))
            for number in range(40)
        ]
        while not started.is_set():
            await asyncio.sleep(0.001)
        # the loop turns while the grader works
        assert not any(call.done() for call in calls)
        go.set()
        return [scores.values for scores in await asyncio.gather(*calls)]

    found = asyncio.run(run())
    texts = [f"text {number}" for number in range(40)]
    assert [one for (one,) in found] == small_exam.scorer(grader()).score("q1", texts).values
    assert len(slow.batches) < 40


def test_errors_reach_every_waiting_caller(small_exam: exampp.Collection) -> None:
    scorer = small_exam.scorer(Fails("4"))

    async def run() -> list[Any]:
        calls = [scorer.score_async("q1", ["x"]) for _ in range(3)]
        return await asyncio.gather(*calls, return_exceptions=True)

    found = asyncio.run(run())
    assert any(isinstance(one, OSError) for one in found)
    assert all(isinstance(one, OSError) or one.values == [1.0] for one in found)


def test_a_pickled_scorer_opens_its_grader_again(small_exam: exampp.Collection) -> None:
    scorer = small_exam.scorer("draft", min_rating=3)
    texts = ["Air scatters blue light.", "Nothing of the kind."]
    copy = pickle.loads(pickle.dumps(scorer))
    assert copy.score("q1", texts).values == scorer.score("q1", texts).values
    assert (copy.min_rating, copy.grader) == (3, scorer.grader)


def test_a_forked_process_scores_while_its_parent_does(
    small_exam: exampp.Collection, tmp_path: Path
) -> None:
    started, go = threading.Event(), threading.Event()
    slow = Slow(started, go)
    scorer = small_exam.scorer(slow)
    draft = small_exam.scorer("draft")
    values = draft.score("q1", ["Air scatters blue light."]).values
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(scorer.score, "q1", ["text 1"])
        assert started.wait(30)
        # its lock is held by a thread that the child does not have

        def score() -> None:
            slow.go = threading.Event()
            slow.go.set()
            print(scorer.score("q1", ["text 1"]).values)
            print(draft.score("q1", ["Air scatters blue light.", "Ice."]).values[:1])

        child = forked(score, tmp_path / "said")
        child.join(60)
        assert child.exitcode == 0, (tmp_path / "said").read_text()
        go.set()
        expected = call.result().values
    assert (tmp_path / "said").read_text().splitlines() == [str(expected), str(values)]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.score("q9", ["x"]), r"unknown query 'q9'"),
        (lambda s: s.score("q1", "one text"), r"texts must be a list of str"),
        (lambda s: s.score("q1", ["x", None]), r"texts must be a list of str"),
        # a generator would be empty after the check
        (lambda s: s.score("q1", (one for one in "ab")), r"texts must be a list of str"),
        (lambda s: s.score("q1", b"text"), r"texts must be a list of str"),
        (lambda s: s.score("q1", ["x"], part="sealed"), r"'main' has no sealed part"),
        (lambda s: s.score("q1", ["x"], part="secret"), r"unknown part 'secret'"),
    ],
)
def test_a_wrong_call_is_refused(small_exam: exampp.Collection, call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call(small_exam.scorer(ScriptedGrader("4")))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"measure": "nCover@20"}, "does not score a single text"),
        ({"measure": "nDCG@20"}, "does not score a single text"),
        ({"measure": "Covr"}, "unknown measure"),
        ({"min_rating": 6}, "invalid minimum rating"),
        ({"bank": "other"}, "other"),
        ({"depth": 5}, "depth has no effect on a scorer"),
        ({"passage_tokens": -1}, "passage_tokens must be 0 or more"),
        ({"cached": -1}, "cached must be 0 or more"),
    ],
)
def test_a_wrong_option_is_refused(
    small_exam: exampp.Collection, options: Mapping[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        small_exam.scorer("draft", **options)


def test_an_exam_without_items_is_refused(tmp_path: Path) -> None:
    with exampp.create(tmp_path / "my.exam") as exam:
        exam.add(queries={"q1": "why?"})
        with pytest.raises(InputError, match="no questions to grade against"):
            exam.scorer("draft")


def test_a_query_is_named_by_its_text(small_exam: exampp.Collection) -> None:
    scorer = small_exam.scorer(ScriptedGrader("4"))
    assert scorer.query_id(" why is the sky blue ") == "q1"
    assert scorer.score("why is the sky blue", ["x"]).query_id == "q1"
    unnamed: Any = 1
    with pytest.raises(InputError, match="a query is named by a str, not by int"):
        scorer.score(unnamed, ["x"])


def test_texts_without_words_score_as_no_answer(small_exam: exampp.Collection) -> None:
    asked = ScriptedGrader("5")
    scores = small_exam.scorer(asked).score("q1", ["", " \n ", "<p></p>"])
    assert scores.values == [0.0] * 3
    assert [one.passages for one in scores] == [0] * 3
    assert not asked.calls
    assert small_exam.scorer(asked).score("q1", []).values == []


def test_a_long_text_is_graded_to_the_cutoff(small_exam: exampp.Collection) -> None:
    asked = ScriptedGrader("0")
    words = sorted(stopwords())
    text = "\n\n".join(
        " ".join(random.Random(number).choices(words, k=300)) for number in range(600)
    )
    assert len(text) > 600_000
    (one,) = small_exam.scorer(asked, measure="Cover@5").score("q1", [text])
    assert one.passages == 5
    assert sorted(Counter(call.item_id for call in asked.calls).values()) == [5, 5]


def test_a_function_is_a_grader(small_exam: exampp.Collection) -> None:
    def overlap(item: Any, passage: Any) -> int:
        return 5 if set(str(item).lower().split()) & set(str(passage).lower().split()) else 0

    scorer = small_exam.scorer(overlap, name="overlap-v1")
    assert scorer.score("q1", ["does air scatter light", "zzz"]).values[1] == 0.0


def test_bank_edits_after_opening_do_not_change_a_scorer(small_exam: exampp.Collection) -> None:
    scorer = small_exam.scorer(ScriptedGrader("4"))
    before = scorer.items("q1")
    small_exam.bank().add("q1", "A new question?", author="ada")
    assert scorer.items("q1") == before
    assert len(small_exam.scorer(ScriptedGrader("4")).items("q1")) == len(before) + 1


def test_the_collection_may_be_closed(tmp_path: Path) -> None:
    with exams.make(tmp_path) as exam:
        scorer = exam.scorer("draft")
    (tmp_path / "my.exam").rename(tmp_path / "moved.exam")
    assert scorer.score("q1", ["Air scatters blue light."]).values


def test_a_stopped_scorer_grades_nothing_more(small_exam: exampp.Collection) -> None:
    scores: list[Future[Scores]] = []

    def reply(request: Request) -> Reply:
        if not scores:
            # while a batch is graded, another call waits for it
            scores.append(pool.submit(scorer.score, "q2", ["Another text."]))
            scorer.stop(0)
        return Reply("5")

    asked = ScriptedGrader(reply)
    scorer = small_exam.scorer(asked)
    with ThreadPoolExecutor(1) as pool:
        with pytest.raises(Unfinished, match="grading was interrupted"):
            scorer.score("q1", ["A text."])
        with pytest.raises(Unfinished, match="grading was interrupted"):
            scores[0].result(60)
    assert len(asked.calls) <= 2
    assert len(scorer.items("q1")) + len(scorer.items("q2")) > 2


@pytest.mark.parametrize("options", [{}, {"decode": "text"}])
def test_a_model_with_earlier_grades_scores(tmp_path: Path, options: dict[str, Any]) -> None:
    """Its mode is known, and checked on cells of the collection with the first request."""
    script = servers.Answer(servers.completion("5"))
    with servers.FaultServer(lambda _: script) as server:
        model = {"model": "m", "base_url": server.url, "api_key": "k", **options}
        with exampp.create(tmp_path / "my.exam") as exam:
            exam.add(queries={"q": "sky"}, passages={"p": "Air is blue."}, bank={"q": ["Why?"]})
            exam.add(runs={"a": {"q": ["p"]}})
            exam.grade("openai", **model)
            scorer = exam.scorer("openai", **model)
        assert scorer.score("q", ["The sky is blue."]).values == [1.0]
