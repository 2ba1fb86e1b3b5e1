"""The parts of local models that need no torch: batches, labels, spans."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from exampp.errors import InputError, Unfinished
from exampp.graders.base import Reply, Request, replace_surrogates
from exampp.graders.local.batching import Batcher, is_out_of_memory
from exampp.graders.local.extractive import (
    MAX_ANSWER_TOKENS,
    BestSpan,
    Span,
    Window,
    extract_answer,
    find_spans,
    place_spans,
)
from exampp.graders.local.texts import LabelTokens, choose_label, label_tokens

DIGITS = LabelTokens(("0", "1"), ((3, 10), (11,)), (3,))


class Echo:
    """A model whose rows are texts; it runs out of memory above `memory` padded characters."""

    def __init__(self, memory: int = 10**9, doubts: str = "") -> None:
        self.memory = memory
        self.doubts = doubts
        self.batches: list[list[str]] = []
        self.freed = 0

    def encode(self, asks: Sequence[Request]) -> list[tuple[str, ...] | str]:
        return [tuple(ask.user.split("|")) if ask.user else "empty" for ask in asks]

    def size(self, row: str) -> int:
        return len(row)

    def compute(self, rows: Sequence[str]) -> list[str]:
        self.batches.append(list(rows))
        if len(rows) * max(map(len, rows)) > self.memory:
            raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory")
        return [f"{row}/{len(rows)}" if self.doubts else row for row in rows]

    def doubtful(self, result: str) -> bool:
        return bool(self.doubts) and self.doubts in result

    def reply(self, _: Request, rows: Sequence[str], results: Sequence[str]) -> Reply:
        assert len(rows) == len(results)
        return Reply("+".join(results))

    def free(self) -> None:
        self.freed += 1


def run(model: Echo, texts: Sequence[str], budget: int = 100, look_ahead: int = 50) -> list[str]:
    batcher = Batcher(model, budget=budget, look_ahead=look_ahead)
    asks = [Request(key, "", "", text) for key, text in enumerate(texts)]
    replies = {ask.key: reply for ask, reply in batcher.answer(asks)}
    assert len(replies) == len(texts)
    return [replies[key].fault or replies[key].text for key in range(len(texts))]


def test_batches_are_sorted_and_within_the_budget() -> None:
    model = Echo()
    texts = ["x" * n for n in (3, 50, 7, 40, 9, 33, 8)]
    assert run(model, texts) == texts
    assert [[len(row) for row in batch] for batch in model.batches] == [
        [50, 40],
        [33, 9, 8],
        [7, 3],
    ]


def test_equal_rows_are_computed_once_and_rows_of_an_ask_are_kept_in_order() -> None:
    model = Echo()
    assert run(model, ["b|a", "a", "b", "a|a|b", ""]) == ["b+a", "a", "b", "a+a+b", "empty"]
    assert sorted(row for batch in model.batches for row in batch) == ["a", "b"]


def test_windows_bound_the_look_ahead() -> None:
    model = Echo()
    run(model, [str(n) for n in range(10)], look_ahead=4)
    assert [len(batch) for batch in model.batches] == [4, 4, 2]


def test_memory_running_out_halves_the_budget_for_good() -> None:
    model = Echo(memory=30)
    texts = [f"{n:010}" for n in range(12)]
    assert run(model, texts, look_ahead=12) == texts
    assert [len(batch) for batch in model.batches] == [10, 5, 2, 2, 2, 2, 2, 2]
    assert model.freed == 2


def test_a_row_that_does_not_fit_alone_is_a_fault() -> None:
    model = Echo(memory=30)
    assert run(model, ["x" * 31, "ok", "y" * 31 + "|ok"]) == [
        "out of memory: a single row of 31 tokens does not fit",
        "ok",
        "out of memory: a single row of 31 tokens does not fit",
    ]


def test_other_errors_end_the_answers_in_a_sentence() -> None:
    model = Echo()
    model.memory = None  # type: ignore[assignment]
    with pytest.raises(Unfinished, match="the model failed: '>' not supported") as caught:
        run(model, ["a"])
    assert isinstance(caught.value.__cause__, TypeError)
    assert not is_out_of_memory(RuntimeError("shapes do not match"))
    assert is_out_of_memory(RuntimeError("CUDA error: out of memory"))
    assert is_out_of_memory(RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling"))
    assert is_out_of_memory(MemoryError())
    assert is_out_of_memory(type("OutOfMemoryError", (RuntimeError,), {})("2 GiB"))


def test_what_rounding_could_tip_is_computed_again_alone() -> None:
    model = Echo(doubts="b")
    assert run(model, ["a", "b", "c"]) == ["a/3", "b/1", "c/3"]
    assert model.batches == [["a", "b", "c"], ["b"]]


@pytest.mark.parametrize(
    ("tokens", "shared"),
    [
        ({"0": [5], "1": [6]}, ()),
        ({"0": [3, 5], "1": [6], "2": [7]}, (3,)),
        ({"0": [3, 5], "1": [3, 6], "2": [3, 4, 5]}, (3, 4)),
    ],
)
def test_label_tokens(tokens: dict[str, list[int]], shared: tuple[int, ...]) -> None:
    found = label_tokens(list(tokens), tokens.__getitem__)
    assert found.labels == tuple(tokens)
    assert found.shared == shared
    assert found.longest == max(map(len, tokens.values()))


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ({"0": [5]}, "1 different labels"),
        ({"0": [5], "1": []}, "no token for the label '1'"),
        ({"0": [5], "1": [2]}, "no token for the label '1'"),
        ({"0": [5], "1": [5]}, "'0' and '1' start with the same tokens"),
        ({"1": [5], "10": [5, 6]}, "'1' and '10' start with the same tokens"),
        ({"good": [5, 6], "bad": [7, 8]}, "'bad' is not a single token"),
    ],
)
def test_labels_that_one_pass_cannot_tell_apart(tokens: dict[str, list[int]], message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        label_tokens(list(tokens), tokens.__getitem__, unknown=2)
    assert "generate" in error.value.hint or message.startswith("1 ")


def test_choose_by_hand() -> None:
    scored = choose_label(DIGITS, [math.log(0.2), math.log(0.6)])
    assert scored.label == "1"
    assert scored.scores == pytest.approx({"0": 0.25, "1": 0.75})
    assert scored.outside == pytest.approx(0.2)
    assert scored.margin == pytest.approx(math.log(3))
    assert scored.tokens == 1


def test_beam_search_favours_the_longer_label() -> None:
    # ln 0.4 / 3 = -0.305 > ln 0.5 / 2 = -0.347, though 0.4 < 0.5
    probabilities = [math.log(0.4), math.log(0.5)]
    assert choose_label(DIGITS, probabilities).label == "1"
    beam = choose_label(DIGITS, probabilities, 1.0)
    assert beam.label == "0"
    assert beam.margin == pytest.approx(math.log(0.5) / -2 + math.log(0.4) / 3)
    assert beam.scores == pytest.approx({"0": 4 / 9, "1": 5 / 9})


def test_choose_at_the_edges() -> None:
    tied = choose_label(DIGITS, [math.log(0.5), math.log(0.5)])
    assert (tied.label, tied.margin) == ("0", 0)
    tiny = choose_label(DIGITS, [-2000.0, -2001.0])
    assert tiny.outside == 1
    assert tiny.scores["0"] == pytest.approx(1 / (1 + math.exp(-1)))
    assert math.isnan(choose_label(DIGITS, [math.nan, math.nan]).outside)


def window(count: int, first: int = 2) -> Window:
    offsets = tuple((5 * n, 5 * n + 4) for n in range(count))
    return Window((0,) * (first + count + 1), (), first, count, 0, offsets)


Logits = np.ndarray[tuple[int], np.dtype[np.float64]]


def found_in(window: Window, start: Logits, end: Logits) -> BestSpan:
    return place_spans(window, find_spans(window, start, end))


def logits(size: int, **peaks: float) -> Logits:
    values = np.zeros(size)
    for name, value in peaks.items():
        values[int(name[1:])] = value
    return values


def test_span_by_hand() -> None:
    found = found_in(window(4), logits(7, p0=1.5, p3=3), logits(7, p0=1, p5=4))
    # tokens 3 to 5 of the window are tokens 1 to 3 of the passage; the next best ends there too
    assert found == BestSpan(2.5, Span(5, 19, 7.0), 4.0)
    assert found.margin == 3


def test_span_does_not_end_before_it_starts_nor_grow_too_long() -> None:
    assert found_in(window(3), logits(6, p4=3), logits(6, p2=3)).best == Span(0, 4, 3)
    size = MAX_ANSWER_TOKENS + 5
    far = found_in(window(size), logits(size + 3, p2=9), logits(size + 3, p31=5, p32=7))
    assert far.best == Span(0, 5 * 29 + 4, 14)
    assert found_in(window(1), logits(4), logits(4)).second == -math.inf
    assert found_in(window(0), logits(3), logits(3)).best is None


@pytest.mark.parametrize("count", [0, 1, 2, 29, 30, 31, 90])
def test_span_is_the_best_of_all_that_may_be(count: int) -> None:
    draw = np.random.default_rng(count)
    for _ in range(20):
        start, end = draw.integers(0, 40, (2, count + 3)).astype(float)
        spans = [
            Span(5 * first, 5 * last + 4, float(start[2 + first] + end[2 + last]))
            for first in range(count)
            for last in range(first, min(count, first + MAX_ANSWER_TOKENS))
        ]
        spans.sort(key=lambda span: -span.score)
        best, second = (*spans, None, None)[:2]
        expected = BestSpan(float(start[0] + end[0]), best, second.score if second else -math.inf)
        assert found_in(window(count), start, end) == expected


def test_windows_of_the_same_tokens_are_one_wherever_they_lie() -> None:
    here, there = window(4), replace(window(4), offsets=((7, 8), (8, 9), (9, 11), (12, 13)))
    assert {here: "computed"}[there] == "computed"
    found = find_spans(here, logits(7, p3=3), logits(7, p5=4))
    assert place_spans(here, found).best == Span(5, 19, 7.0)
    assert place_spans(there, found).best == Span(8, 13, 7.0)
    assert len({here, window(5), window(4, first=3), replace(here, null=1)}) == 4


def test_answer_over_windows() -> None:
    low, high = BestSpan(4.0, Span(0, 4, 3.0)), BestSpan(1.0, Span(9, 14, 2.0))
    assert extract_answer([low])[0] is None
    assert extract_answer([low, high]) == (Span(0, 4, 3.0), BestSpan(1.0, Span(0, 4, 3.0)))
    assert extract_answer([BestSpan(1.0, None)]) == (None, BestSpan(1.0, None))
    assert extract_answer([BestSpan(2.0, Span(0, 1, 2.0))])[0] is None, "a tie is no answer"


def test_lone_surrogates_keep_their_place() -> None:
    assert replace_surrogates("a\ud83db漢") == "a?b漢"
