"""The grader that `load` returns: a model, a batcher, and what they were set to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from exampp.errors import InputError
from exampp.graders.base import (
    LEAST_MASS,
    MARKED,
    WRITTEN,
    Grader,
    Reply,
    Request,
    check_least_mass,
)
from exampp.graders.local.batching import Batcher, Model
from exampp.graders.local.checkpoint import (
    AUTO,
    TASKS,
    LoadedModel,
    fetch,
    map_model_errors,
    model_identity,
    model_name,
)
from exampp.graders.local.texts import (
    TODAY,
    ChatTexts,
    ContinuedTexts,
    LabelTokens,
    PlainTexts,
    known_limit,
    label_tokens,
)


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

    def answer(self, asks: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        """Yield every ask with its reply, once, as batches are done."""
        return self._batcher.answer(asks)

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """The (start, end) characters of each token of the text, without special tokens."""
        return self.model.texts.offsets(text)

    def length(self, user: str, system: str = "") -> int:
        """Tokens of the prompt as the model gets it, special tokens and chat template included."""
        return len(self.model.texts.ids([(user, system)])[0])


DECODES = ("auto", "score", "generate")
BATCH_TOKENS = {"cpu": 4096, "mps": 8192, "cuda": 32768}
"""Padded tokens in a batch; on a CPU larger batches are slower."""
LOOK_AHEAD = {"cpu": 128, "mps": 512, "cuda": 3072}
"""Asks pulled ahead: enough to sort by length (a third of them, where batches are in flight)."""
IN_FLIGHT = {"cpu": 0, "mps": 0, "cuda": 2}
"""Batches begun before replies are yielded: one is computed, one waits for it to end."""

BEGUN_IN_FLOAT32 = (
    "This CPU computes bfloat16 in hardware, so that is what it is graded in: another grader than "
    "in float32. --dtype float32 goes on with grades that were begun so"
)

_UNNUMBERED = {
    ("causal", "generate"): "unparsed",
    ("causal", "score"): None,
    ("seq2seq", "score"): None,
}
"""What a text without a number is, by task and decode, where it is no answer as the papers say."""


def load(
    model: str,
    *,
    labels: Sequence[str] = (),
    task: str | None = None,
    revision: str | None = None,
    device: str | None = None,
    dtype: str | None = None,
    quantize: str | None = None,
    decode: str = "auto",
    beams: int | None = None,
    max_new_tokens: int = 64,
    limit: int | None = None,
    batch_tokens: int | None = None,
    look_ahead: int | None = None,
    template: Mapping[str, Any] | None = None,
    least_mass: float | None = None,
) -> LocalGrader:
    """Load a model from a folder or from the Hugging Face hub and make it a grader.

    `labels` are the replies that a prompt asks for, where they are few. `decode` is `score` (the
    probability of each label after one decoder pass), `generate` (write the reply, as the papers
    do) or `auto`: score where there are labels and one pass can tell them apart, else generate;
    the grader's `note` then says why. `task`, `device`, `dtype` and `quantize`: see `fetch`.
    `beams` is 5 for seq2seq and 1 for causal models; with several, labels are ranked as beam search
    would rank them (see `labels.choose`). `limit` overrides how many tokens a prompt may have (a
    window, for extractive models). `batch_tokens` and `look_ahead` change speed and memory,
    never replies. `template` holds options for the chat template; scoring turns `enable_thinking`
    off by itself. `least_mass` is the probability that labels must have together, for the likeliest
    to be a grade (.5).

    Raises:
        InputError: an option is not possible, the model cannot be loaded (see `fetch`), or
            `decode` is `score` and the labels cannot be scored.

    """
    _check(
        task,
        decode,
        beams=beams,
        max_new_tokens=max_new_tokens,
        limit=limit,
        batch_tokens=batch_tokens,
        look_ahead=look_ahead,
    )
    fetched = fetch(
        model, task=task, revision=revision, device=device, dtype=dtype, quantize=quantize
    )
    # the files of a model can be readable one by one and still not fit together
    local, own, note = map_model_errors(
        model,
        lambda: _local(fetched, labels, decode, beams, max_new_tokens, limit, template),
    )
    check_least_mass(least_mass, scores=own["decode"] == "score")
    settings = {
        "name": "hf",
        **model_identity(model, revision, fetched.model.config),
        "task": fetched.task,
        "dtype": fetched.dtype,
        **({"quantize": fetched.quantize} if fetched.quantize else {}),
        **own,
        **({} if least_mass in (None, LEAST_MASS) else {"least_mass": least_mass}),
    }
    kind = fetched.device.partition(":")[0]
    if dtype in (None, AUTO) and (kind, fetched.dtype) == ("cpu", "bfloat16"):
        note = f"{note}. {BEGUN_IN_FLOAT32}" if note else BEGUN_IN_FLOAT32
    budget, ahead = batch_tokens or BATCH_TOKENS[kind], look_ahead or LOOK_AHEAD[kind]
    provenance = {
        "device": fetched.device,
        "batch_tokens": budget,
        "transformers": fetched.transformers,
    }
    return LocalGrader(
        local,
        settings,
        provenance,
        called=model_name(model),
        note=note,
        unnumbered=_UNNUMBERED.get((fetched.task, own["decode"]), "answer"),
        budget=budget,
        look_ahead=ahead,
        in_flight=IN_FLIGHT[kind],
    )


def _local(
    fetched: LoadedModel,
    labels: Sequence[str],
    decode: str,
    beams: int | None,
    max_new_tokens: int,
    limit: int | None,
    template: Mapping[str, Any] | None,
) -> tuple[LocalModel, dict[str, Any], str]:
    """The model as a batcher runs it, its settings, and a note for the user."""
    if fetched.device == "cpu":
        from exampp.graders.local.t5_scoring import APART, pack

        pack(fetched.model, apart=APART)
    if fetched.task == "extractive":
        return *_extractive(fetched, decode, limit), ""
    beams = beams or (5 if fetched.task == "seq2seq" else 1)
    texts, options = _texts(fetched, bool(labels) and decode != "generate", template)
    found, note = _labels(fetched, texts, labels, decode)
    local = _prompted(fetched, texts, found, beams, max_new_tokens, limit)
    # a prompt that cannot be made is found here, and not at the first cell
    texts.ids([("x", "")])
    settings = _prompted_settings(local, texts, found, beams, max_new_tokens, options)
    return local, settings, note


def _check(task: str | None, decode: str, **numbers: int | None) -> None:
    for name, value, known in (("task", task, tuple(TASKS)), ("decode", decode, DECODES)):
        if value is not None and value not in known:
            raise InputError(
                f"'{value}' is not known", field=name, mend=f"Give one of {', '.join(known)}"
            )
    for name, number in numbers.items():
        if number is not None and number < 1:
            raise InputError(f"{name} is {number}", field=name, mend="Give 1 or more")


def _extractive(
    fetched: LoadedModel, decode: str, limit: int | None
) -> tuple[LocalModel, dict[str, Any]]:
    from exampp.graders.local.extractive import STRIDE, Extractive

    if decode != "auto":
        raise InputError(
            "an extractive model neither scores labels nor generates",
            field="decode",
            mend="Leave decode out: it marks the answer in the passage",
        )
    texts = PlainTexts(fetched.tokenizer)
    window = limit or known_limit(fetched.tokenizer, fetched.model.config) or 384
    settings = {"decode": "span", "window": window, "stride": STRIDE}
    return Extractive(fetched.model, texts, window=window), settings


def _texts(
    fetched: LoadedModel, scores: bool, template: Mapping[str, Any] | None
) -> tuple[PlainTexts, Mapping[str, Any]]:
    if fetched.task == "seq2seq" or not fetched.tokenizer.chat_template:
        if template:
            raise InputError(
                "this model has no chat template for options", field="template", mend="Leave it out"
            )
        kind = PlainTexts if fetched.task == "seq2seq" else ContinuedTexts
        return kind(fetched.tokenizer), {}
    options = {"enable_thinking": False} if scores else {}
    options |= template or {}
    return ChatTexts(fetched.tokenizer, options), options


def _labels(
    fetched: LoadedModel, texts: PlainTexts, labels: Sequence[str], decode: str
) -> tuple[LabelTokens | None, str]:
    if decode == "generate" or (decode == "auto" and not labels):
        return None, ""
    try:
        forced = fetched.model.generation_config.forced_bos_token_id
        if fetched.task == "seq2seq" and forced is not None:
            raise InputError("replies of this model start with a token that is no label's")
        return label_tokens(labels, texts.reply_tokens, fetched.tokenizer.unk_token_id), ""
    except InputError as error:
        if decode == "score":
            raise
        return None, f"Replies are generated, not scored: {error.what}"


def _prompted(
    fetched: LoadedModel,
    texts: PlainTexts,
    labels: LabelTokens | None,
    beams: int,
    max_new_tokens: int,
    limit: int | None,
) -> LocalModel:
    from exampp.graders.local.models import Causal, Generator, Seq2Seq

    kind = Seq2Seq if fetched.task == "seq2seq" else Causal
    pad = fetched.tokenizer.pad_token_id or 0
    generator = Generator(fetched.model, beams=beams, max_new_tokens=max_new_tokens, pad=pad)
    if limit is None:
        limit = known_limit(fetched.tokenizer, fetched.model.config)
        if limit is not None and fetched.task == "causal":
            limit -= labels.longest if labels else max_new_tokens
    if limit is not None and limit < 1:
        raise InputError(
            f"{max_new_tokens} new tokens leave no room for a prompt", field="max_new_tokens"
        )
    return kind(fetched.model, texts, labels=labels, generator=generator, limit=limit)


def _prompted_settings(
    local: LocalModel,
    texts: PlainTexts,
    labels: LabelTokens | None,
    beams: int,
    max_new_tokens: int,
    template: Mapping[str, Any],
) -> dict[str, Any]:
    settings: dict[str, Any] = {"format": texts.format, "limit": local.limit, "beams": beams}
    if texts.format == "chat":
        settings |= {"template": dict(template), "today": TODAY}
    if labels:
        return {**settings, "decode": "score", "labels": list(labels.labels)}
    return {**settings, "decode": "generate", "max_new_tokens": max_new_tokens}
