"""The draft grader: an offline substitute for an LLM, for demonstrations and smoke tests.

Late interaction as in ColBERT (Khattab and Zaharia, SIGIR 2020) with a bundled all-MiniLM-L6-v2:
item and passage are encoded separately, and the score is the mean, over the tokens of the item, of
the largest cosine with a token of the passage. The reply is this score with four decimals;
`THRESHOLDS` turn it into a rating. It measures similarity, not whether a passage answers: a passage
that repeats the question scores high. `draft_model/NOTICE` names the source of the model.

A reply depends only on its item and passage: every text is encoded in a separate batch, on one
thread, in float32. The threads of the grader process different passages. Releases of ONNX Runtime
(1.20 to 1.31 were compared) differ by less than a millionth, which four decimals rarely show.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache, lru_cache
from itertools import groupby, islice
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from exampp.errors import InputError
from exampp.graders.base import MEASURED, Grader, Reply, Request, replace_surrogates
from exampp.records.ids import file_hash

MODEL = "sentence-transformers/all-MiniLM-L6-v2"
REVISION = "1110a243fdf4706b3f48f1d95db1a4f5529b4d41"
MODEL_FOLDER = Path(__file__).with_name("draft_model")
SHA256 = {
    "model.onnx": "37d077db0c0ff5db4506650c160bea4474be33f1e51764a19e300d4e192df01d",
    "tokenizer.json": "5fd1c882abbd30517dced455a2c9768945ec726b96727927e4959348d9de550b",
}
"""Hashes of the files in `MODEL_FOLDER`, printed by `tools/build_draft_model.py`."""

THRESHOLDS = (0.5807, 0.5822, 0.5891, 0.5992, 0.7179)
"""A score of at least the k-th threshold is a rating of k.

On TREC DL 2019 (92,600 pairs) each rating is as frequent as with FLAN-T5-large. Ratings 1 to 3 are
narrow bands: the grader mainly separates 0, 4 and 5.
"""

MAX_TOKENS = 256
"""Maximum tokens of a text, including [CLS] and [SEP]; the model was trained for this length."""

MAX_CHARACTERS = 10_000
"""Characters of a text that are tokenized, which bounds memory."""

LOOK_AHEAD = 64
"""Runs of requests about one passage that are pulled before the first is yielded."""

RUN_LENGTH = 256
"""Maximum requests in such a run; longer ones are split."""

ITEM_CACHE = 1024
"""Items whose vectors are cached: about 30 MB of questions."""

Vectors = NDArray[np.float32]


class Encoded(NamedTuple):
    """A text as unit vectors [tokens, 384], without [CLS] and [SEP]; `cut` if it was truncated."""

    vectors: Vectors
    cut: bool


def max_similarity(item: Vectors, passage: Vectors) -> float:
    """Return the mean over item tokens of the largest dot product with a passage token.

    Both are non-empty [tokens, 384]. Uses `einsum` instead of `@`, because a BLAS library may start
    threads for each small product, which takes longer than the product.
    """
    return float(np.einsum("id,pd->ip", item, passage).max(axis=1).mean())


@cache
def load_encoder(folder: Path = MODEL_FOLDER) -> Callable[[str], Encoded]:
    """Load the model once per process; return a thread-safe function that encodes one text.

    Raises:
        InputError: A file of the model is missing or not from this release.
    """
    for name, sha256 in SHA256.items():
        _check(folder / name, sha256)
    import onnxruntime
    from tokenizers import Tokenizer

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        folder / "model.onnx", options, providers=["CPUExecutionProvider"]
    )
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.encode_special_tokens = True  # "[SEP]" in a text is plain text
    first, last = (tokenizer.token_to_id(token) for token in ("[CLS]", "[SEP]"))

    def encode(text: str) -> Encoded:
        start = replace_surrogates(text[:MAX_CHARACTERS])
        tokens = tokenizer.encode(start, add_special_tokens=False).ids
        first_tokens = tokens[: MAX_TOKENS - 2]
        cut = len(first_tokens) < len(tokens) or len(text) > MAX_CHARACTERS
        ids = np.array([[first, *first_tokens, last]], dtype=np.int64)
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
        return Encoded(session.run(["vectors"], feed)[0][0, 1:-1], cut)

    return encode


_ENCODING = threading.Lock()
# A daemon thread that Python stops inside the model would abort the process: at the exit of Python
# no text is being encoded, the model is not being loaded, and neither will be.
atexit.register(_ENCODING.acquire, timeout=60)


def encode_in_thread(text: str) -> Encoded:
    """Encode a text in any thread, also in a daemon thread; InputError as for `load_encoder`."""
    with _ENCODING:
        return load_encoder()(text)


class DraftGrader(Grader):
    """Grades by `max_similarity`; a reply is the score, such as `0.6123`.

    Replies come in the order of the requests. Consecutive requests about one passage share its
    vectors. A text without any word is a fault.

    Args:
        threads: Passages processed at a time; by default one per core. Does not change replies.

    Raises:
        InputError: `threads` is not positive, or the model's files are damaged.
    """

    same_text_same_grade = True

    def __init__(self, threads: int | None = None) -> None:
        self._threads = threads if threads is not None else os.cpu_count() or 1
        if self._threads < 1:
            raise InputError(f"{threads} threads", hint="Use 1 or more")
        self._encode = load_encoder()
        self._encode_item = lru_cache(ITEM_CACHE)(self._encode)

    readings = MEASURED

    @property
    def settings(self) -> Mapping[str, Any]:
        """Settings that determine a score; the number of threads does not."""
        return {
            "name": "draft",
            "model": MODEL,
            "revision": REVISION,
            "sha256": SHA256["model.onnx"],
            "tokenizer_sha256": SHA256["tokenizer.json"],
            "max_tokens": MAX_TOKENS,
            "max_characters": MAX_CHARACTERS,
            "scoring": "mean over item tokens of the largest cosine with a passage token",
        }

    def answer(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        """Yield every request with its reply, in order, pulling up to `LOOK_AHEAD` runs ahead."""
        pool = ThreadPoolExecutor(self._threads)
        pending: deque[Future[list[tuple[Request, Reply]]]] = deque()
        try:
            for run in _runs(requests):
                pending.append(pool.submit(self._answer_run, run))
                if len(pending) == LOOK_AHEAD:
                    yield from pending.popleft().result()
            while pending:
                yield from pending.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)

    def _answer_run(self, run: list[Request]) -> list[tuple[Request, Reply]]:
        passage = self._encode(run[0].passage)
        return [(request, _reply(self._encode_item(request.item), passage)) for request in run]


def _reply(item: Encoded, passage: Encoded) -> Reply:
    for name, text in (("passage", passage), ("item", item)):
        if not text.vectors.size:
            return Reply("", fault=f"no word in the {name}")
    return Reply(f"{max_similarity(item.vectors, passage.vectors):z.4f}", cut=passage.cut)


def _runs(requests: Iterable[Request]) -> Iterator[list[Request]]:
    """Split the requests where the passage changes."""
    for _, same in groupby(requests, key=attrgetter("passage")):
        while run := list(islice(same, RUN_LENGTH)):
            yield run


def _check(file: Path, sha256: str) -> None:
    hint = "Reinstall exampp"
    if not file.is_file():
        raise InputError("a file of the draft grader is missing", file=file, hint=hint)
    if file_hash(file) != sha256:
        raise InputError("not the file of this release", file=file, hint=hint)
