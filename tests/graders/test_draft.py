"""The draft grader: a reply depends on its item and passage, and on nothing else."""

from __future__ import annotations

import hashlib
import json
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.contract import GraderContract, Make

from exampp.errors import InputError
from exampp.graders import draft
from exampp.graders.base import Reply, Request
from exampp.graders.draft import LOOK_AHEAD, DraftGrader, Encoded, load_encoder, max_similarity

QUESTION = "Why do leaves change colour in autumn?"
ANSWER = (
    "As days shorten, trees stop making chlorophyll. The green fades and the yellow and orange "
    "carotenoids that were in the leaf all along become visible."
)
UNRELATED = "The parcel office is closed on public holidays and opens at nine on weekdays."
WORDS = (QUESTION + ANSWER + UNRELATED).split()


@pytest.fixture(scope="module", autouse=True)
def _as_released() -> Iterator[None]:
    """Every text is encoded anew."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(draft, "load_encoder", load_encoder)
        yield


@pytest.fixture(scope="module")
def grader() -> DraftGrader:
    return DraftGrader(threads=2)


@pytest.fixture(scope="module")
def encode() -> Callable[[str], Encoded]:
    return load_encoder()


def made_asks(passages: int, items: int, seed: int = 1) -> list[Request]:
    """Asks of many lengths, from one word to more than the model takes."""
    rng = random.Random(seed)
    texts = [
        " ".join(rng.choices(WORDS, k=rng.choice([1, 5, 30, 60, 61, 150, 400])))
        for _ in range(passages)
    ]
    questions = [" ".join(rng.choices(WORDS, k=rng.randint(1, 20))) for _ in range(items)]
    pairs = [(item, text) for text in texts for item in questions]
    return [Request(key, item, text) for key, (item, text) in enumerate(pairs)]


def replies(grader: DraftGrader, asks: list[Request]) -> dict[int, Reply]:
    return {ask.key: reply for ask, reply in grader.answer(iter(asks))}


def one(grader: DraftGrader, item: str, passage: str) -> Reply:
    return next(grader.answer([Request(0, item, passage)]))[1]


class TestContract(GraderContract):
    look_ahead = (LOOK_AHEAD + 1) * 10 + 1

    @pytest.fixture
    def make(self) -> Make:
        return lambda: DraftGrader(threads=1)


# What a reply depends on


def test_a_reply_does_not_depend_on_where_a_resumed_run_starts(
    grader: DraftGrader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(draft, "LOOK_AHEAD", 6)
    asks = made_asks(passages=draft.LOOK_AHEAD + 5, items=1)
    whole = replies(grader, asks)
    for start in (1, 7, draft.LOOK_AHEAD):
        assert replies(grader, asks[start:]).items() <= whole.items()


@pytest.mark.parametrize("threads", [1, 5])
def test_a_reply_does_not_depend_on_the_threads(grader: DraftGrader, threads: int) -> None:
    asks = made_asks(passages=10, items=2)
    assert replies(DraftGrader(threads), asks) == replies(grader, asks)


def test_vectors_and_scores_are_equal_to_the_last_bit(encode: Callable[[str], Encoded]) -> None:
    asks = made_asks(passages=8, items=1)
    item = encode(QUESTION).vectors
    alone = [encode(ask.passage).vectors for ask in asks]
    with ThreadPoolExecutor(4) as pool:
        crowded = list(pool.map(lambda ask: encode(ask.passage).vectors, asks * 3))
    for index, vectors in enumerate(crowded):
        expected = alone[index % len(alone)]
        assert np.array_equal(vectors, expected)
        assert max_similarity(item, vectors) == max_similarity(item, expected.copy())


# The score


def test_the_score_is_the_mean_of_the_largest_products() -> None:
    assert list(draft.THRESHOLDS) == sorted(draft.THRESHOLDS)
    item = np.array([[1, 0], [0, 1]], dtype=np.float32)
    passage = np.array([[0.6, 0.8], [-1, 0]], dtype=np.float32)
    assert max_similarity(item, passage) == pytest.approx(0.7)  # of .6 and .8


def test_vectors_have_length_one_and_leave_out_the_markers(
    encode: Callable[[str], Encoded],
) -> None:
    vectors = encode("leaves change colour").vectors
    assert vectors.shape == (3, 384)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)


def test_an_answer_and_an_echo_score_higher_than_an_unrelated_passage(
    grader: DraftGrader,
) -> None:
    texts = (QUESTION + " " + UNRELATED, ANSWER, UNRELATED)
    echo, answer, unrelated = (float(one(grader, QUESTION, text).text) for text in texts)
    assert echo > draft.THRESHOLDS[3] > unrelated
    assert answer > unrelated
    assert float(one(grader, QUESTION, QUESTION).text) == pytest.approx(1, abs=1e-3)


def test_the_score_of_a_known_pair(grader: DraftGrader) -> None:
    # The unquantised model scores .5373. Processors may differ in the last decimal.
    assert float(one(grader, QUESTION, ANSWER).text) == pytest.approx(0.5382, abs=1.5e-4)


# Texts


@pytest.mark.parametrize("empty", ["", " \n\t", "\x00\x07", "\u200b"])
def test_a_text_without_words_is_a_fault(grader: DraftGrader, empty: str) -> None:
    assert one(grader, QUESTION, empty) == Reply("", fault="no word in the passage")
    assert one(grader, empty, ANSWER) == Reply("", fault="no word in the item")


@pytest.mark.parametrize(
    "odd",
    [
        "lone \ud800 surrogate",
        "a\x00b\r\nc\u2028d",
        "🍁🍂",
        "שלום עולם",
        "落叶",
        "e\u0301" * 50,
        "x" * 500,
    ],
)
def test_odd_texts_are_graded(grader: DraftGrader, odd: str) -> None:
    for reply in (one(grader, QUESTION, odd), one(grader, odd, ANSWER)):
        assert not reply.fault
        assert -1 <= float(reply.text) <= 1


def test_line_breaks_are_spaces(grader: DraftGrader) -> None:
    assert one(grader, QUESTION, ANSWER.replace(" ", "\n")) == one(grader, QUESTION, ANSWER)


def test_a_marker_of_the_model_in_a_text_is_text(encode: Callable[[str], Encoded]) -> None:
    assert len(encode("[SEP]").vectors) == len(["[", "sep", "]"])


def test_a_long_passage_is_cut_and_said_so(grader: DraftGrader) -> None:
    fits, long = "leaf " * (draft.MAX_TOKENS - 2), "leaf " * (draft.MAX_TOKENS - 1)
    assert not one(grader, QUESTION, fits).cut
    assert one(grader, QUESTION, long).cut
    assert one(grader, QUESTION, long).text == one(grader, QUESTION, fits).text


@pytest.mark.parametrize("huge", ["leaf " * 200_000, "x" * 1_000_000, "落" * 1_000_000])
def test_of_a_huge_passage_only_the_start_is_read(
    grader: DraftGrader, encode: Callable[[str], Encoded], huge: str
) -> None:
    reply = one(grader, QUESTION, huge)
    assert reply.cut
    assert reply.text == one(grader, QUESTION, huge[: draft.MAX_CHARACTERS]).text
    assert len(encode(huge).vectors) <= draft.MAX_TOKENS - 2


# Streaming


class Recorder:
    """Stands in for the model: one vector a text; counts how often each was encoded."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()

    def __call__(self, text: str) -> Encoded:
        self.seen[text] += 1
        return Encoded(np.full((1, 4), 0.5, dtype=np.float32), cut=False)


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    recorder = Recorder()
    monkeypatch.setattr(draft, "load_encoder", lambda: recorder)
    return recorder


@pytest.mark.parametrize("passages_differ", [True, False])
def test_the_look_ahead_is_bounded(recorder: Recorder, passages_differ: bool) -> None:
    pulled = 0

    def feed() -> Iterator[Request]:
        nonlocal pulled
        for pulled in range(1, 100_000):
            yield Request(pulled, "item", f"passage {pulled if passages_differ else 0}")

    bound = draft.LOOK_AHEAD * (1 if passages_differ else draft.RUN_LENGTH)
    replies: Any = DraftGrader(threads=2).answer(feed())
    for received in range(1, 100):
        next(replies)
        assert pulled <= received + bound + 1  # the one that shows that the passage has changed
    replies.close()


def test_a_passage_is_encoded_once_a_run_and_an_item_once(recorder: Recorder) -> None:
    asks = [Request(0, f"item {i}", f"passage {p}") for p in range(30) for i in range(5)]
    list(DraftGrader(threads=1).answer(asks))
    assert set(recorder.seen.values()) == {1}


# Identity and files


def test_settings_are_json_stable_and_free_of_the_threads(grader: DraftGrader) -> None:
    settings = grader.settings
    assert json.loads(json.dumps(settings)) == settings == DraftGrader(threads=1).settings
    assert settings["name"] == "draft"
    assert settings["sha256"] == draft.SHA256["model.onnx"]


@pytest.mark.parametrize("name", sorted(draft.SHA256))
def test_the_bundled_files_are_the_recorded_ones(name: str) -> None:
    found = hashlib.sha256((draft.MODEL_FOLDER / name).read_bytes()).hexdigest()
    assert found == draft.SHA256[name]
    assert found in (draft.MODEL_FOLDER / "NOTICE").read_text(encoding="utf-8")


def test_a_missing_or_damaged_model_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="missing"):
        load_encoder(tmp_path)
    (tmp_path / "model.onnx").write_bytes(b"version https://git-lfs.github.com/spec/v1")
    with pytest.raises(InputError, match="not the file"):
        load_encoder(tmp_path)
    with pytest.raises(InputError, match="0 threads"):
        DraftGrader(threads=0)


BESIDE = """
import sys, threading, time
from exampp.graders.draft import encode_in_thread

def encode():
    for number in range(10**6):
        encode_in_thread(f"{number} " * 100)

threading.Thread(target=encode, daemon=True).start()
time.sleep(float(sys.argv[1]))
"""


@pytest.mark.parametrize("seconds", ["0.05", "0.4", "1.5"])
def test_python_ends_in_order_while_a_daemon_thread_encodes(seconds: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", BESIDE, seconds], capture_output=True, timeout=120, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, b"")
