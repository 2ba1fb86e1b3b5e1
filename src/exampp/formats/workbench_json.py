"""The JSON of workbench files, typed as far as it is understood."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import msgspec

_Rank = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
_Label = Annotated[int, msgspec.Meta(ge=-(2**15) + 1, le=2**15 - 1)]
"""Judgments and ratings are held in 16 bits, ranks in 32."""


class SelfRatingJson(msgspec.Struct, gc=False):
    """A rating of one item."""

    self_rating: _Label
    question_id: str | None = None
    nugget_id: str | None = None


class MarksJson(msgspec.Struct):
    """The ratings and verdicts of an exam grade: all that evaluation needs."""

    correctAnswered: list[str] = []  # noqa: N815
    wrongAnswered: list[str] = []  # noqa: N815
    llm: str = ""
    llm_options: msgspec.Raw = msgspec.Raw(b"{}")
    prompt_info: msgspec.Raw = msgspec.Raw(b"null")
    prompt_type: str | None = None
    self_ratings: list[SelfRatingJson] | None = None
    llm_response_errors: dict[str, str] | None = None


class SheetJson(MarksJson):
    """An exam grade with its raw replies."""

    answers: list[tuple[str, str]] = []


class DirectJson(msgspec.Struct):
    """A direct relevance grade."""

    correctAnswered: bool = False  # noqa: N815
    answer: str = ""
    llm: str = ""
    llm_options: msgspec.Raw = msgspec.Raw(b"{}")
    prompt_info: msgspec.Raw = msgspec.Raw(b"null")
    prompt_type: str | None = None
    self_ratings: _Label | None = None
    relevance_label: _Label | None = None
    llm_response_error: str | None = None


class JudgmentJson(msgspec.Struct, gc=False):
    """A human judgment."""

    relevance: _Label
    query: str | None = None


class RankingJson(msgspec.Struct, gc=False):
    """A system returned the passage."""

    method: str
    rank: _Rank
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


class MarkedPassageJson(msgspec.Struct):
    """A passage without texts and replies, for evaluation."""

    paragraph_id: str
    paragraph_data: DataJson = msgspec.field(default_factory=DataJson)
    exam_grades: list[MarksJson] | None = None
    grades: list[DirectJson] | None = None


class Line(NamedTuple):
    """A line, typed."""

    query_id: str | int
    passages: list[PassageJson]


class MarkedLine(NamedTuple):
    """A line for evaluation, typed."""

    query_id: str | int
    passages: list[MarkedPassageJson]
