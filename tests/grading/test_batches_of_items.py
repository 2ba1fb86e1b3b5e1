"""Several items of a passage in a line of a batch: paired by number, asked alone if unclear."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
from support.batch_servers import Json, OpenAIStub, Outcome
from support.counted_tokens import SEVERAL, CountingBatches, drawn, server
from support.forked import forked

import exampp
from exampp.cli.main import main
from exampp.grading.batches import Batches, BatchGrader, Outbox
from exampp.grading.costs import estimate
from exampp.grading.run import Progress
from exampp.records.gradebook import MISSING
from exampp.store import runs as kept

MANY = "question-rating-many"
QUERIES, ITEMS, PASSAGES = 2, 12, 3
CELLS = QUERIES * ITEMS * PASSAGES
OPTIONS: dict[str, Any] = {"model": "m", "decode": "text", "prompt": MANY}
PRICES: dict[str, Any] = {"price_read": 0.15, "price_written": 0.6}
Ratings = dict[tuple[str, str], int | None]
Change = Callable[[dict[str, int]], str]


class Provider(CountingBatches):
    """A provider that changes the replies to several items, and remembers what it was sent."""

    def __init__(self, change: Change = json.dumps) -> None:
        super().__init__(drawn)
        self.change = change

    def line(self, request: str, outcome: Outcome) -> Json:
        if outcome.gone or outcome.status != 200:
            return OpenAIStub.line(self, request, outcome)
        line = super().line(request, outcome)
        message = line["response"]["body"]["choices"][0]["message"]
        said = json.loads(message["content"])
        if len(said) > 1:
            message["content"] = self.change(said)
        return line

    @property
    def sent(self) -> list[list[int]]:
        """The number of items of every request, by batch."""
        texts = [
            [self.text_of(body) for body in one.requests.values()] for one in self.batches.values()
        ]
        return [[items_of(text) for text in of_batch] for of_batch in texts]


def items_of(text: str) -> int:
    found = SEVERAL.search(text)
    return len(found[1].splitlines()) if found else 1


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "my.exam"
    with exampp.create(path) as exam:
        exam.add(
            queries={f"q{n}": f"query {n}" for n in range(QUERIES)},
            passages={
                f"q{n}-p{m}": f"passage {n} {m} " + "word " * 40
                for n in range(QUERIES)
                for m in range(PASSAGES)
            },
            runs={"s": {f"q{n}": [f"q{n}-p{m}" for m in range(PASSAGES)] for n in range(QUERIES)}},
            bank=[
                {"query_id": f"q{n}", "item_id": f"q{n}-i{m}", "question": f"What is {n} of {m}?"}
                for n in range(QUERIES)
                for m in range(ITEMS)
            ],
        )
    return path


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")


def grade(exam: exampp.Collection, provider: CountingBatches, **more: Any) -> Progress:
    options = {"batches": Batches(poll=0), **OPTIONS, **PRICES, **more}
    return exam.grade("openai", base_url=provider.url, **options)


def ratings(exam: exampp.Collection) -> Ratings:
    rows = exam.connection.execute(
        "SELECT i.text, p.text, g.rating FROM grade g "
        "JOIN item_version i ON i.version = g.item_version "
        "JOIN passage_version p ON p.version = g.passage_version"
    )
    return {(item, passage): rating for item, passage, rating in rows}


def expected(exam: exampp.Collection) -> Ratings:
    return {cell: drawn(*cell) for cell in ratings(exam)}


def is_left(exam: exampp.Collection) -> int:
    return int(exam.connection.execute("SELECT count(*) FROM batch_request").fetchone()[0])


def test_a_line_has_the_items_of_a_passage(path: Path) -> None:
    with Provider() as provider, exampp.Collection(path) as exam:
        progress = grade(exam, provider)
        assert (progress.done, len(ratings(exam))) == (CELLS, CELLS)
        assert ratings(exam) == expected(exam)
        # twelve items are a request for ten and one for two
        assert [Counter(one) for one in provider.sent] == [{10: 6, 2: 6}]
        assert progress.spent.requests == 12
        assert is_left(exam) == 0
        assert not kept.batches_of(exam.connection, None, (kept.PREPARED, kept.OPEN))


def test_direct_requests_and_batches_have_the_same_grades_and_tokens(
    path: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.exam"
    other.write_bytes(path.read_bytes())
    with Provider() as provider, exampp.Collection(path) as exam:
        by_batch = grade(exam, provider).spent
        found = exam.grades().gradebook
    with server(drawn) as plain, exampp.Collection(other) as exam:
        direct = exam.grade("openai", base_url=plain.url, **OPTIONS, **PRICES).spent
        same = exam.grades().gradebook
    assert found.grader == same.grader
    for one, another in zip(found.queries, same.queries, strict=True):
        assert one.ratings.tolist() == another.ratings.tolist()
    assert by_batch.tokens_read == direct.tokens_read
    assert by_batch.tokens_written == direct.tokens_written
    assert by_batch.cost == pytest.approx((direct.cost or 0) / 2)


def without_the_last(said: dict[str, int]) -> str:
    return json.dumps(dict(list(said.items())[:-1]))


def off_the_scale(said: dict[str, int]) -> str:
    return json.dumps({**said, "2": 17})


def repeated(said: dict[str, int]) -> str:
    return json.dumps(said)[:-1] + ', "1": 5}'


def one_too_many(said: dict[str, int]) -> str:
    return json.dumps({**said, str(len(said) + 1): 5})


def shifted(said: dict[str, int]) -> str:
    return json.dumps({str(int(number) - 1): rating for number, rating in said.items()})


def prose(said: dict[str, int]) -> str:
    return f"All {len(said)} questions are answered: 5."


@pytest.mark.parametrize(
    ("change", "alone"),
    [
        (without_the_last, 12),
        (off_the_scale, 12),
        (repeated, 12),
        (one_too_many, CELLS),
        (shifted, CELLS),
        (prose, CELLS),
        (lambda _: "", CELLS),
        (lambda _: "[1, 2, 3]", CELLS),
        (lambda said: "\ud800" + json.dumps(said), 0),
    ],
)
def test_what_is_unclear_is_asked_alone_in_the_next_batch(
    path: Path, change: Change, alone: int
) -> None:
    with Provider(change) as provider, exampp.Collection(path) as exam:
        progress = grade(exam, provider)
        assert progress.done == CELLS
        assert ratings(exam) == expected(exam)
        assert [Counter(one) for one in provider.sent[1:]] == ([{1: alone}] if alone else [])
        # the tokens of unclear replies count, too
        texts = [text for text, count in provider.paid.items() for _ in range(count)]
        assert progress.spent.tokens_read == sum(round(len(text) / 4) for text in texts)
        assert progress.spent.requests == 12 + alone
        assert is_left(exam) == 0


def test_items_that_are_refused_together_are_asked_alone(path: Path) -> None:
    with Provider() as provider, exampp.Collection(path) as exam:
        provider.outcome = lambda text: (
            Outcome(status=400, message="content_policy_violation: blocked")
            if items_of(text) > 1 and "passage 0 1" in text
            else Outcome("")
        )
        assert grade(exam, provider).done == CELLS
        assert ratings(exam) == expected(exam)
        assert [Counter(one) for one in provider.sent[1:]] == [{1: ITEMS}]


def test_an_edit_meanwhile_costs_one_item(path: Path) -> None:
    """The other replies of the line are used although the request would now be another."""
    with Provider() as provider, exampp.Collection(path) as exam:
        provider.looks = 10**9
        run = exam.grading("openai", base_url=provider.url, batches=Batches(poll=0.01), **OPTIONS)
        for progress in run.steps():
            if progress.awaits:
                run.stop()
        exam.bank("main").edit("reword", "q0-i3", "What is new?", author="me")
        provider.looks = 0
        assert grade(exam, provider).done == CELLS
        assert len([cell for cell in ratings(exam) if cell[0] == "What is new?"]) == PASSAGES
        assert ratings(exam) == expected(exam)
        # the new item alone: all others of its passages have a reply
        assert [Counter(one) for one in provider.sent] == [{10: 6, 2: 6}, {1: PASSAGES}]


class Killed(BaseException):
    """The process is gone, in the middle of anything."""


@pytest.mark.parametrize("after", [0, 1, 15, 40])
def test_killed_between_replies_and_grades(
    path: Path, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is sent twice but for what was unclear, and no wrong rating is stored."""
    claim, calls = BatchGrader._claim, iter(range(10**6))

    def dies(self: BatchGrader, *more: Any) -> Any:
        if next(calls) >= after:
            raise Killed
        return claim(self, *more)

    with Provider(without_the_last) as provider, exampp.Collection(path) as exam:
        with monkeypatch.context() as patch:
            patch.setattr(BatchGrader, "_claim", dies)
            with pytest.raises(Killed):
                grade(exam, provider)
        assert ratings(exam) == expected(exam)
        grade(exam, provider)
        assert len(ratings(exam)) == CELLS
        assert ratings(exam) == expected(exam)
        assert set(provider.paid.values()) == {1}
        assert [Counter(one) for one in provider.sent] == [{10: 6, 2: 6}, {1: 12}]
        assert is_left(exam) == 0


CHANGES: tuple[Change, ...] = (
    json.dumps,
    without_the_last,
    off_the_scale,
    repeated,
    one_too_many,
    shifted,
    prose,
)


@pytest.mark.parametrize("seed", range(12))
def test_random_faults_kills_and_edits(
    path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Store right ratings after any reply of the provider and any end of the process."""
    random = Random(seed)

    def fault(text: str) -> Outcome:
        return random.choice(
            [Outcome("")] * 5
            + [Outcome(status=500), Outcome(status=400, message="no"), Outcome(gone="expired")]
        )

    def killed_in(name: str, holder: Any) -> None:
        whole, left = getattr(holder, name), random.randrange(60)

        def dies(*more: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                raise Killed
            return whole(*more)

        patch.setattr(holder, name, dies)

    with Provider(lambda said: random.choice(CHANGES)(said)) as provider:
        provider.outcome = fault
        for round_number in range(4):
            place = random.choice([(BatchGrader, "_claim"), (Outbox, "_send"), (Outbox, "_store")])
            with (
                monkeypatch.context() as patch,
                suppress(Killed, exampp.Unfinished),
                exampp.Collection(path) as exam,
            ):
                killed_in(place[1], place[0])
                grade(exam, provider)
            with exampp.Collection(path) as exam:
                assert wrong(exam) == []
                item = random.choice([one for one in exam.bank("main").items("q1") if one.active])
                text = f"new {round_number} {seed}?"
                exam.bank("main").edit("reword", item.item_id, text, author="me")
        provider.outcome, provider.change = (lambda _: Outcome("")), json.dumps
        with exampp.Collection(path) as exam:
            grade(exam, provider)
            grade(exam, provider, select="failed")
            assert wrong(exam) == []
            book = exam.grades().gradebook
            for query in book.queries:
                assert query.ratings.shape == (PASSAGES, ITEMS)
                assert (query.ratings != MISSING).all()


def wrong(exam: exampp.Collection) -> list[object]:
    """The graded cells whose rating is another one than that of their texts."""
    return [
        (cell, rating)
        for cell, rating in ratings(exam).items()
        if rating is not None and rating != drawn(*cell)
    ]


def test_what_expired_goes_into_another_batch(path: Path) -> None:
    tries = Counter[str]()

    def outcome(text: str) -> Outcome:
        tries[text] += 1
        return Outcome(gone="expired") if tries[text] == 1 else Outcome("")

    with Provider() as provider, exampp.Collection(path) as exam:
        provider.outcome = outcome
        assert grade(exam, provider).done == CELLS
        assert [Counter(one) for one in provider.sent] == [{10: 6, 2: 6}] * 2
        assert ratings(exam) == expected(exam)


def test_requests_are_counted_for_limits(path: Path) -> None:
    with Provider() as provider, exampp.Collection(path) as exam:
        grade(exam, provider, max_requests=3)
        assert [Counter(one) for one in provider.sent] == [{10: 2, 2: 1}]
        assert len(ratings(exam)) == 22
        assert grade(exam, provider).done == CELLS - 22
        assert ratings(exam) == expected(exam)


def test_files_have_lines_of_several_items(path: Path, tmp_path: Path) -> None:
    requests, replies, more = (tmp_path / f"{name}.jsonl" for name in ("one", "two", "three"))
    with Provider(without_the_last) as provider, exampp.Collection(path) as exam:
        grade(exam, provider, batches=Batches(file=requests))
        lines = [json.loads(line) for line in requests.read_text().splitlines()]
        assert len(lines) == 12
        batch = provider.add("", {one["custom_id"]: one["body"] for one in lines})
        found = [provider.line(one, Outcome("")) for one in batch.requests]
        replies.write_text("".join(json.dumps(one) + "\n" for one in reversed(found)))
        options = {"base_url": provider.url, **OPTIONS, **PRICES}
        run = exam.grading("openai", batches=Batches(replies=replies), **options)
        assert [progress.done for progress in run.steps()][-1] == CELLS - 12
        why = "the file has no clear reply to them; write requests for them with --batch-file"
        assert run.why_stopped == why
        assert len(ratings(exam)) == CELLS - 12
        assert ratings(exam) == expected(exam)
        # another run knows what is requested alone, and so does its estimate
        planned = exam.grading("openai", batches=Batches(file=more), dry_run=True, **options)
        assert estimate(planned).requests == 12
        way = exam.grading_costs("openai", batches=Batches(file=more), **options).ways[0]
        assert way.requests.value == 12
        grade(exam, provider, batches=Batches(file=more))
        lines = [json.loads(line) for line in more.read_text().splitlines()]
        assert [items_of(provider.text_of(line["body"])) for line in lines] == [1] * 12


def test_replies_to_a_dropped_file_are_not_those_to_other_items(path: Path, tmp_path: Path) -> None:
    """A request of the next file may begin with the same item, and has other ones."""
    first, second, replies = (tmp_path / f"{name}.jsonl" for name in ("one", "two", "replies"))
    with Provider() as provider, exampp.Collection(path) as exam:
        grade(exam, provider, batches=Batches(file=first))
        grade(exam, provider, batches=Batches(cancel=True))
        for number in range(ITEMS):
            if number % 2:
                exam.bank("main").edit("reword", f"q0-i{number}", f"new {number}?", author="me")
        grade(exam, provider, batches=Batches(file=second))
        lines = [json.loads(line) for line in first.read_text().splitlines()]
        batch = provider.add("", {one["custom_id"]: one["body"] for one in lines})
        found = [provider.line(one, Outcome("")) for one in batch.requests]
        replies.write_text("".join(json.dumps(one) + "\n" for one in found))
        grade(exam, provider, batches=Batches(replies=replies))
        assert wrong(exam) == []
        # the texts of the other query have not changed
        assert len(ratings(exam)) == ITEMS * PASSAGES


def test_the_dry_run_has_the_price(path: Path) -> None:
    with Provider() as provider, exampp.Collection(path) as exam:
        costs = exam.grading_costs("openai", **{**OPTIONS, **PRICES})
        (way,) = (one for one in costs.ways if one.prompt == MANY and not one.target)
        spent = grade(exam, provider).spent
    assert way.batch_cost.value == pytest.approx(spent.cost, rel=0.05)
    assert way.requests.value == spent.requests


def test_kill_9_in_a_real_process(path: Path) -> None:
    """Killed while it waits: the same command reads the batch, and asks what is missing alone."""
    command = ["grade", str(path), "--grader", "openai", "--model", "m", "--decode", "text"]
    command += ["--prompt", MANY, "--batch", "--poll", "0.01"]
    with Provider(without_the_last) as provider:
        command += ["--base-url", provider.url]

        def run() -> None:
            sys.argv[1:] = command
            main()

        provider.looks = 10**9
        first = forked(run, path.with_suffix(".first"))
        while not any(one.looks > 2 for one in provider.batches.values()):
            assert first.is_alive(), path.with_suffix(".first").read_text()
        first.kill()
        first.join()
        provider.looks = 0
        second = forked(run, path.with_suffix(".second"))
        second.join(60)
        assert second.exitcode == 0, path.with_suffix(".second").read_text()
        assert [Counter(one) for one in provider.sent] == [{10: 6, 2: 6}, {1: 12}]
        assert set(provider.paid.values()) == {1}
    with exampp.Collection(path) as exam:
        assert len(ratings(exam)) == CELLS
        assert ratings(exam) == expected(exam)
