"""The grader of a local model: model class, decoding and settings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from exampp.errors import InputError
from exampp.graders.base import LEAST_MASS, MARKED, WRITTEN, Grader, Reply, Request
from exampp.graders.local.batching import Batcher, Model
from exampp.graders.local.checkpoint import (
    AUTO,
    TASKS,
    LoadedModel,
    display_name,
    load_model,
    map_model_errors,
    model_identity,
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
from exampp.graders.options import LocalOptions, check_least_mass, read_options

BATCH_TOKENS = {"cpu": 4096, "mps": 8192, "cuda": 32768}
"""Padded tokens per batch; on a CPU, larger batches are slower."""
LOOK_AHEAD = {"cpu": 128, "mps": 512, "cuda": 1024}
"""Requests pulled ahead, for sorting by length."""
MAX_NEW_TOKENS = 64
BEGUN_IN_FLOAT32 = (
    "Grading in bfloat16, which this CPU computes in hardware. Float32 is a different "
    "grader; continue its grades with --dtype float32"
)
_UNNUMBERED = {
    ("causal", "generate"): "unparsed",
    ("causal", "score"): None,
    ("seq2seq", "score"): None,
}
"""Meaning of a text without a number, by task and decoding, if it is not an answer."""


class LocalModel(Model[Any, Any], Protocol):
    """A model for a batcher, with its texts and its limit in tokens."""

    texts: PlainTexts
    limit: int | None


class LocalGrader(Grader):
    """Grades with a local model.

    Replies come in any order. In float32, the choice between labels, spans or (greedy) tokens does
    not depend on the batch, because results within rounding error are recomputed alone.
    Probabilities differ by about 1e-6 between batches. In bfloat16, and between the hypotheses of a
    beam search, near ties may go either way.
    """

    same_text_same_grade = True

    model_name: str
    note: str
    unnumbered: str | None
    provenance: Mapping[str, Any]
    settings: Mapping[str, Any]
    limit: int | None
    readings: frozenset[str]

    def __init__(self, model: LocalModel, settings: Mapping[str, Any], batcher: Batcher[Any, Any]):
        self.model = model
        self.settings = settings
        self.limit = model.limit
        self.readings = MARKED if settings.get("decode") == "span" else WRITTEN
        self._batcher = batcher

    def answer(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        """Yield every request with its reply, once, as batches are done."""
        return self._batcher.answer(requests)

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Return the (start, end) characters of each token, without special tokens."""
        return self.model.texts.offsets(text)

    def length(self, user: str, system: str = "") -> int:
        """Return the tokens of the prompt, including special tokens and chat template."""
        return len(self.model.texts.ids([(user, system)])[0])


def load_local_grader(
    model: str | LocalOptions,
    labels: Sequence[str] = (),
    *,
    task: str | None = None,
    look_ahead: int | None = None,
    **more: Any,
) -> LocalGrader:
    """Load a model from a folder or from the Hugging Face hub as a grader.

    Decoding is `score` (the probability of each label after one decoder pass), `generate` (write
    the reply, as in the papers) or `auto`: score if there are labels that one pass can distinguish,
    else generate; the grader's `note` then has the reason. `beams` is 5 for seq2seq and 1 for
    causal models; with several beams, labels are ranked as by beam search (see
    `texts.choose_label`). `limit` is the window of extractive models. `batch_tokens` and
    `look_ahead` affect speed and memory, never replies. Scoring sets `enable_thinking` of chat
    templates to false.

    Args:
        model: A name with `more` options (the fields of `LocalOptions`), or a `LocalOptions`.
        labels: The possible replies of a prompt, if they are few.
        task: One of `checkpoint.TASKS`; by default inferred from the model's config.
        look_ahead: Requests pulled ahead.

    Raises:
        InputError: An option is invalid, the model cannot be loaded (see `load_model`), or `decode`
            is `score` and the labels cannot be scored.
    """
    options = model
    if isinstance(options, str):
        options = read_options(LocalOptions, {"model": options, **more}, "the grader hf")
    name = options.named_model
    if task is not None and task not in TASKS:
        raise InputError(
            f"unknown task '{task}'", field="task", hint=f"Use one of {', '.join(TASKS)}"
        )
    loaded = load_model(
        name,
        task=task,
        revision=options.revision,
        device=options.device,
        dtype=options.dtype,
    )
    # each file of a model may be readable, but not match the others
    local, own, note = map_model_errors(name, lambda: _make(loaded, labels, options))
    check_least_mass(options, scores=own["decode"] == "score")
    kind = loaded.device.partition(":")[0]
    if options.dtype in (None, AUTO) and (kind, loaded.dtype) == ("cpu", "bfloat16"):
        note = f"{note}. {BEGUN_IN_FLOAT32}" if note else BEGUN_IN_FLOAT32
    least = options.least_mass
    settings = {
        "name": "hf",
        **model_identity(name, options.revision, loaded.model.config),
        "task": loaded.task,
        "dtype": loaded.dtype,
        **own,
        **({"least_mass": least} if least not in (None, LEAST_MASS) else {}),
    }
    budget = options.batch_tokens or BATCH_TOKENS[kind]
    ahead = look_ahead or LOOK_AHEAD[kind]
    batcher = Batcher(local, budget=budget, look_ahead=ahead)
    grader = LocalGrader(local, settings, batcher)
    grader.model_name = display_name(name)
    grader.note = note
    grader.unnumbered = _UNNUMBERED.get((loaded.task, own["decode"]), "answer")
    grader.provenance = {
        "device": loaded.device,
        "batch_tokens": budget,
        "transformers": loaded.transformers,
    }
    return grader


def _make(
    loaded: LoadedModel, labels: Sequence[str], options: LocalOptions
) -> tuple[LocalModel, dict[str, Any], str]:
    """Return the runnable model, its settings, and a note for the user."""
    if loaded.task == "extractive":
        return *_extractive(loaded, options), ""
    scores = bool(labels) and options.decode != "generate"
    texts, template = _texts(loaded, scores, options.chat_template_kwargs)
    scored_labels, note = _labels(loaded, texts, labels, options.decode)
    beams = options.beams or (5 if loaded.task == "seq2seq" else 1)
    written = options.max_new_tokens or MAX_NEW_TOKENS
    local = _prompted(loaded, texts, scored_labels, beams, written, options.limit)
    # fail early if a prompt cannot be rendered
    texts.ids([("x", "")])
    settings: dict[str, Any] = {"format": texts.format, "limit": local.limit, "beams": beams}
    if texts.format == "chat":
        settings |= {"template": dict(template), "today": TODAY}
    if scored_labels:
        return local, {**settings, "decode": "score", "labels": list(scored_labels.labels)}, note
    return local, {**settings, "decode": "generate", "max_new_tokens": written}, note


def _extractive(loaded: LoadedModel, options: LocalOptions) -> tuple[LocalModel, dict[str, Any]]:
    from exampp.graders.local.models import STRIDE, Extractive

    if options.decode != AUTO:
        raise InputError(
            "an extractive model cannot score labels or generate",
            field="decode",
            hint="Remove decode: the model marks the answer in the passage",
        )
    window = options.limit or known_limit(loaded.tokenizer, loaded.model.config) or 384
    settings = {"decode": "span", "window": window, "stride": STRIDE}
    return Extractive(loaded.model, PlainTexts(loaded.tokenizer), window=window), settings


def _texts(
    loaded: LoadedModel, scores: bool, template: Mapping[str, Any] | None
) -> tuple[PlainTexts, Mapping[str, Any]]:
    if loaded.task != "seq2seq" and loaded.tokenizer.chat_template:
        options = {**({"enable_thinking": False} if scores else {}), **(template or {})}
        return ChatTexts(loaded.tokenizer, options), options
    if template:
        raise InputError(
            "this model has no chat template, so template options do not apply",
            field="template",
            hint="Leave it out",
        )
    kind = PlainTexts if loaded.task == "seq2seq" else ContinuedTexts
    return kind(loaded.tokenizer), {}


def _labels(
    loaded: LoadedModel, texts: PlainTexts, labels: Sequence[str], decode: str
) -> tuple[LabelTokens | None, str]:
    if decode == "generate" or (decode == AUTO and not labels):
        return None, ""
    try:
        forced = loaded.model.generation_config.forced_bos_token_id
        if loaded.task == "seq2seq" and forced is not None:
            raise InputError("replies of this model do not start with the tokens of the labels")
        return label_tokens(labels, texts.reply_tokens, loaded.tokenizer.unk_token_id), ""
    except InputError as error:
        if decode == "score":
            raise
        return None, f"Replies are generated, not scored: {error.what}"


def _prompted(
    loaded: LoadedModel,
    texts: PlainTexts,
    labels: LabelTokens | None,
    beams: int,
    max_new_tokens: int,
    limit: int | None,
) -> LocalModel:
    from exampp.graders.local.models import Causal, Generator, Seq2Seq

    pad = loaded.tokenizer.pad_token_id or 0
    generator = Generator(loaded.model, beams=beams, max_new_tokens=max_new_tokens, pad=pad)
    if limit is None:
        limit = known_limit(loaded.tokenizer, loaded.model.config)
        if limit is not None and loaded.task == "causal":
            limit -= labels.longest if labels else max_new_tokens
    if limit is not None and limit < 1:
        raise InputError(
            f"{max_new_tokens} new tokens leave no room for a prompt", field="max_new_tokens"
        )
    kind = Seq2Seq if loaded.task == "seq2seq" else Causal
    return kind(loaded.model, texts, labels=labels, generator=generator, limit=limit)
