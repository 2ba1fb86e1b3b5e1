"""The JSON of Workbench files, typed as far as exampp uses it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

from exampp.errors import InputError
from exampp.formats.lines import decode_part
from exampp.prompts.catalogue import by_workbench_class, load_grading_prompt, names, workbench_info
from exampp.records import ITEM_KINDS, GraderIdentity
from exampp.records.graders import HIGHEST_LABEL, GradingTarget, RatingScale

Rank = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Label = Annotated[int, msgspec.Meta(ge=-(2**15) + 1, le=2**15 - 1)]
"""Judgments are stored in 16 bits, ranks in 32."""


class SelfRatingJson(msgspec.Struct, gc=False):
    """A rating of one item; an invalid value makes a bad cell, not a bad line."""

    self_rating: Any = None
    question_id: str | None = None
    nugget_id: str | None = None


class SheetJson(msgspec.Struct):
    """An exam grade: ratings or verdicts, and raw replies."""

    correctAnswered: list[str] = []  # noqa: N815
    wrongAnswered: list[str] = []  # noqa: N815
    llm: str = ""
    llm_options: msgspec.Raw = msgspec.Raw(b"{}")
    prompt_info: msgspec.Raw = msgspec.Raw(b"null")
    prompt_type: str | None = None
    self_ratings: list[SelfRatingJson] | None = None
    llm_response_errors: dict[str, Any] | None = None
    answers: list[Any] = []


class DirectJson(msgspec.Struct):
    """A direct relevance grade."""

    correctAnswered: Any = None  # noqa: N815
    answer: Any = ""
    llm: str = ""
    llm_options: msgspec.Raw = msgspec.Raw(b"{}")
    prompt_info: msgspec.Raw = msgspec.Raw(b"null")
    prompt_type: str | None = None
    self_ratings: Any = None
    relevance_label: Any = None
    llm_response_error: Any = None


class CellJson(msgspec.Struct):
    """Fields that exampp adds to a cell, under `llm_options.exampp`."""

    state: Literal["graded", "unparsed", "refused", "truncated", "failed"] | None = None
    rule: str = ""
    confidence: float | None = None
    detail: dict[str, Any] | None = None
    reply: str | msgspec.UnsetType | None = msgspec.UNSET


class JudgmentJson(msgspec.Struct, gc=False):
    """A human judgment."""

    relevance: Label
    query: str | None = None


class RankingJson(msgspec.Struct, gc=False):
    """A rank of the passage in a system's ranking."""

    method: str
    rank: Rank
    score: float
    queryId: str | None = None  # noqa: N815


class DataJson(msgspec.Struct):
    """Judgments and rankings."""

    judgments: list[JudgmentJson] = []
    rankings: list[RankingJson] = []


class PassageJson(msgspec.Struct):
    """A passage, with replies."""

    paragraph_id: str
    text: str
    title: Any = None
    paragraph_data: DataJson = msgspec.field(default_factory=DataJson)
    exam_grades: list[SheetJson] | None = None
    grades: list[DirectJson] | None = None


class WorkbenchLine(NamedTuple):
    """A line, typed."""

    query_id: str | int
    passages: list[PassageJson]


# ---- workbench graders ---------------------------------------------------------------------------


UNNAMED_CLASS = "QuestionPromptWithChoices"
"""The prompt of grades without prompt_info, which are older."""
OURS = "exampp"
"""The key of `llm_options` for what the format has no field for."""
TARGET = "for"
"""Its key for the measures that the graded cells are for."""

_KIND_OF_TYPE = {"question": "question", "nugget": "nugget", "direct_grading": "query"}


class EntryHead(NamedTuple):
    """An entry's grader, whether its scale is known, its cells as written, and its target."""

    identity: GraderIdentity
    open_scale: bool
    cells: Mapping[str, Any]
    target: GradingTarget | None = None


_heads: dict[tuple[Any, ...], EntryHead] = {}
_scaled: dict[tuple[str, int, int], GraderIdentity] = {}


def head_of(entry: SheetJson | DirectJson, scale: RatingScale | None = None) -> EntryHead:
    """Return the grader of an entry; of several entries, the widest scale is used.

    Raises:
        InputError: With the field: an invalid `prompt_info`, or a prompt for items in an entry with
            grades of the query, or vice versa.
    """
    if isinstance(entry, DirectJson):
        head, here, other = _direct_head(entry, scale), "the query itself", "exam_grades"
    else:
        head, here, other = _exam_head(entry, scale), "questions and nuggets", "grades"
    prompt, kind = head.identity.prompt, head.identity.kind
    if (kind == "query") is isinstance(entry, DirectJson):
        return head
    raise InputError(
        f"these are grades of {here}, but the prompt {prompt!r} is for a {kind}",
        field="prompt_info",
        hint=f"Move the entry to {other}, or correct its prompt",
    )


def _exam_head(entry: SheetJson, scale: RatingScale | None) -> EntryHead:
    rated = entry.self_ratings is not None
    ratings = entry.self_ratings or ()
    kind = "nugget" if any(rating.nugget_id for rating in ratings) else "question"
    head = _head(entry, kind, rated=rated)
    return _on_scale(head, scale, (one.self_rating for one in ratings)) if rated else head


def _direct_head(entry: DirectJson, scale: RatingScale | None) -> EntryHead:
    labels = [one for one in (entry.self_ratings, entry.relevance_label) if one is not None]
    head = _head(entry, "query", rated=bool(labels))
    return _on_scale(head, scale, labels) if labels else head


def has_open_scale(grader: GraderIdentity) -> bool:
    """Return whether a grader's scale is only inferred or given."""
    return "llm_options" in grader.settings and grader.prompt not in names()


def scale_note(grader: GraderIdentity, origin: str) -> tuple[str, ...]:
    """Return a note on an inferred or given scale; empty if the prompt is known."""
    if not has_open_scale(grader) or (grader.lowest, grader.highest) == (0, 1):
        return ()
    return (
        f"The prompt of {grader.name} is unknown. Its scale, {grader.lowest} to "
        f"{grader.highest}, was {origin} (--scale).",
    )


def repeated(identity: GraderIdentity, counts: dict[str, int]) -> GraderIdentity:
    """Return the identity, numbered if the same grader has graded the same passage before.

    Regrading appends to a Workbench file; numbering keeps all results.
    """
    number = identity
    while number.key in counts:
        counts[identity.key] += 1
        settings = {**identity.settings, "repetition": counts[identity.key]}
        number = replace(identity, settings=settings)
    counts[number.key] = 1
    return number


def _on_scale(head: EntryHead, scale: RatingScale | None, labels: Iterable[object]) -> EntryHead:
    if not head.open_scale:
        return head
    known = (one for one in labels if type(one) is int and one <= HIGHEST_LABEL)
    lowest, highest = scale or (0, max(known, default=1))
    place = (head.identity.key, lowest, max(1, highest))
    if place not in _scaled:
        _scaled[place] = replace(head.identity, lowest=lowest, highest=max(1, highest))
    return head._replace(identity=_scaled[place])


def _head(entry: SheetJson | DirectJson, kind: str, *, rated: bool) -> EntryHead:
    stored = (entry.llm, bytes(entry.llm_options), bytes(entry.prompt_info), entry.prompt_type)
    if b'"' + OURS.encode() + b'"' in stored[1]:
        # cells differ between passages; caching them would fill the memory
        return _read_head(*stored, kind, rated)
    key = (*stored, kind, rated)
    if key not in _heads:
        _heads[key] = _read_head(*key)
    return _heads[key]


def _read_head(
    llm: str, options: bytes, info: bytes, prompt_type: str | None, kind: str, rated: bool
) -> EntryHead:
    decoded, ours = parted(decode_part(options, "llm_options"))
    cells = ours.get("cells")
    cells = cells if isinstance(cells, dict) else {}
    target = _stated_target(ours)
    own = _stated_identity(ours)
    if own is not None:
        return EntryHead(own, False, cells, target)
    decoded_info = decode_part(info, "prompt_info")
    if not isinstance(decoded_info, dict | None):
        raise InputError("Expected `object | null`", field="prompt_info")
    prompt_class = (decoded_info or {}).get("prompt_class") or UNNAMED_CLASS
    if not isinstance(prompt_class, str):
        raise InputError("Expected `str`", field="prompt_info.prompt_class")
    settings: dict[str, Any] = {"llm_options": decoded, "prompt_info": decoded_info}
    if prompt_type is not None:
        settings["prompt_type"] = prompt_type
    name = by_workbench_class(prompt_class)
    highest = 1
    if name is not None:
        prompt = load_grading_prompt(name)
        highest = prompt.highest if rated or kind != "query" else 1
        kind = kind if kind in prompt.grades else prompt.grades[0]
    elif kind != "query":
        kind = _KIND_OF_TYPE.get(prompt_type or "", "nugget" if "Nugget" in prompt_class else kind)
    identity = GraderIdentity(llm, name or prompt_class, kind, 0, highest, settings)
    return EntryHead(identity, name is None, cells, target)


def parted(options: Any) -> tuple[Any, Mapping[str, Any]]:
    """Return the options without those of exampp, and those of exampp."""
    ours = options.get(OURS) if isinstance(options, dict) else None
    if not isinstance(ours, dict):
        return options, {}
    if not ("cells" in ours or TARGET in ours or _stated_identity(ours)):
        return options, {}
    return {key: value for key, value in options.items() if key != OURS}, ours


def _stated_identity(ours: Mapping[str, Any]) -> GraderIdentity | None:
    if "model" not in ours:
        return None
    try:
        identity = msgspec.convert(ours, GraderIdentity)
    except msgspec.ValidationError:
        return None
    fits = identity.kind in ITEM_KINDS and identity.lowest < identity.highest
    # as `replace` would set it: files do not name a grader
    return replace(identity) if fits else None


def _stated_target(ours: Mapping[str, Any]) -> GradingTarget | None:
    stated = ours.get(TARGET)
    if stated is None:
        return None
    try:
        values = {**GradingTarget._field_defaults, **stated}
        target = msgspec.convert([values.get(one) for one in GradingTarget._fields], GradingTarget)
        if target.measures and target.min_ratings:
            return target
    except (TypeError, msgspec.ValidationError):
        pass
    raise InputError(
        "these are not the measures and minimum ratings that cells were graded for",
        field=f"llm_options.{OURS}.{TARGET}",
        hint="Export the file again",
    )


# ---- writing ------------------------------------------------------------------------------------


def grader_json(grader: GraderIdentity, *, verified: bool = False) -> dict[str, Any]:
    """Return the fields of an entry that identify the grader, as far as the format has them.

    `verified` means that its replies were compared with known answers.
    """
    settings = grader.settings
    if "llm_options" in settings:
        head = {"llm": grader.model, "llm_options": settings["llm_options"]}
        if settings.get("prompt_info") is not None:
            head["prompt_info"] = settings["prompt_info"]
        if "prompt_type" in settings:
            head["prompt_type"] = settings["prompt_type"]
        return head
    return {
        "llm": grader.model,
        "llm_options": {},
        "prompt_info": _prompt_info(grader, verified),
        "prompt_type": {"query": "direct_grading"}.get(grader.kind, grader.kind),
    }


def identity_json(grader: GraderIdentity) -> dict[str, Any]:
    """Return a grader's complete identity for `llm_options.exampp`, without paths."""
    return {
        "model": grader.model,
        "prompt": grader.prompt,
        "kind": grader.kind,
        "lowest": grader.lowest,
        "highest": grader.highest,
        "settings": dict(grader.settings),
    }


def _prompt_info(grader: GraderIdentity, verified: bool) -> Mapping[str, Any]:
    """Return the Workbench's fields for a bundled prompt; for others the same with its name."""
    info: dict[str, Any] = {
        "prompt_class": grader.prompt,
        "prompt_style": grader.prompt,
        "context_first": False,
        "check_unanswerable": True,
        "check_answer_key": verified,
        "is_self_rated": grader.highest > 1,
    }
    sent = grader.settings.get("prompt_hash")
    names = workbench_info(grader.prompt, verified=verified, sent=sent)
    return info | {name: names[name] for name in info if name in names}
