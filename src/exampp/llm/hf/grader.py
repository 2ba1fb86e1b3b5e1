"""The grader that `load` returns: a model, a batcher, and what they were set to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

from exampp.llm.base import MARKED, WRITTEN, Ask, Grader, Reply
from exampp.llm.hf.batching import Batcher, Model
from exampp.llm.hf.texts import PlainTexts


class LocalModel(Model[Any, Any], Protocol):
    """A model that a batcher can run, with its texts and its limit in tokens."""

    texts: PlainTexts
    limit: int | None


class LocalGrader(Grader):
    """Grades with a model of this machine; knows its limit.

    Replies do not come in the order of the asks. In float32 the choice between labels, spans or
    (greedy) tokens does not depend on what shares a batch: what rounding could tip is computed
    again alone. Probabilities differ by about 1e-6 from batch to batch. In bfloat16, and between
    the hypotheses of a beam search, near ties may fall either way. `provenance` is what is worth
    knowing of a run but makes no other grader: device, size of batches, version of transformers.
    `called` is what its model is called; `note` is for the user, empty if there is nothing to say.
    `unnumbered` is what a text without a number is, of a model that is asked to rate: one of
    `prompts.reading.UNNUMBERED`, None where every reply is a label.
    """

    same_text_same_grade = True

    called: str
    note: str
    unnumbered: str | None
    provenance: Mapping[str, Any]

    def __init__(
        self,
        model: LocalModel,
        settings: Mapping[str, Any],
        provenance: Mapping[str, Any],
        *,
        budget: int,
        look_ahead: int,
        in_flight: int = 0,
        called: str = "",
        note: str = "",
        unnumbered: str | None = "answer",
    ) -> None:
        self.model = model
        self.called = called
        self.note = note
        self.unnumbered = unnumbered
        self.provenance = dict(provenance)
        self._settings = dict(settings)
        self._batcher = Batcher(model, budget=budget, look_ahead=look_ahead, in_flight=in_flight)

    @property
    def readings(self) -> frozenset[str]:
        """By which rules its replies can be read."""
        return MARKED if self._settings.get("decode") == "span" else WRITTEN

    @property
    def settings(self) -> Mapping[str, Any]:
        """What determines a reply; sizes of batches and windows do not."""
        return dict(self._settings)

    @property
    def limit(self) -> int | None:
        """Tokens that a prompt may have; None for extractive models, which read windows."""
        return self.model.limit

    def answer(self, asks: Iterable[Ask]) -> Iterator[tuple[Ask, Reply]]:
        """Yield every ask with its reply, once, as batches are done."""
        return self._batcher.answer(asks)

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """The (start, end) characters of each token of the text, without special tokens."""
        return self.model.texts.offsets(text)

    def length(self, user: str, system: str = "") -> int:
        """Tokens of the prompt as the model gets it, special tokens and chat template included."""
        return len(self.model.texts.ids([(user, system)])[0])
