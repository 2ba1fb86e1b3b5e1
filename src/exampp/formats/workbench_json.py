"""The JSON of workbench files, typed as far as it is understood."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NamedTuple

import msgspec

Rank = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Label = Annotated[int, msgspec.Meta(ge=-(2**15) + 1, le=2**15 - 1)]
"""Judgments are held in 16 bits, ranks in 32."""


class SelfRatingJson(msgspec.Struct, gc=False):
    """A rating of one item; what is no rating is a bad cell, and no bad line."""

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
    """What an entry of exampp says of a cell beyond the format, under `llm_options.exampp`."""

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
    """A system returned the passage."""

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
