"""Tools of the service for clients: arguments, method and description of each.

The HTTP API and MCP offer the same tools: each has its arguments as a model of pydantic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from exampp import service
from exampp.service import LONGEST_ANSWER, MOST_LISTED, ExamService

QueryId = Annotated[
    str, Field(description="A query of list_queries.", min_length=1, max_length=2000)
]
Answer = Annotated[
    str, Field(description="The answer of a system to the query.", max_length=LONGEST_ANSWER)
]
Answers = Annotated[
    dict[QueryId, Answer],
    Field(description="The answer of a system to each query, by query id.", min_length=1),
]


class _Arguments(BaseModel):
    """Arguments of a tool; unknown ones are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class NoArguments(_Arguments):
    """A tool without arguments."""


class ListQueries(_Arguments):
    """List a part of the queries."""

    # the addresses of HTTP have texts only
    model_config = ConfigDict(extra="forbid", strict=False)

    after: Annotated[
        str, Field(description="List the queries after this one.", max_length=2000)
    ] = ""
    limit: Annotated[
        int, Field(description="List at most so many queries.", ge=1, le=MOST_LISTED)
    ] = 100


class OneAnswer(_Arguments):
    """An answer to a query."""

    query_id: QueryId
    answer: Answer


class TwoSystems(_Arguments):
    """The answers of two systems to the same queries."""

    first: Answers
    second: Answers


class GateArguments(_Arguments):
    """The answers of a system to all queries, and a requirement."""

    answers: Answers
    require: Annotated[
        str,
        Field(
            description="A requirement, such as Cover>=0.7.",
            min_length=1,
            max_length=200,
            # for programs; people read the error of the service
            json_schema_extra={"pattern": r"^Cover(@20)?(>=|<=|>|<)[01]?\.?[0-9]{1,6}$"},
        ),
    ]


class OneSystem(_Arguments):
    """The answers of a system."""

    answers: Answers


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool: its name, its arguments, the method of the service, and the type of its result.

    `reads` only: it changes nothing that another request sees, so that HTTP offers it by GET.
    """

    name: str
    arguments: type[BaseModel]
    call: Callable[..., Any]
    result: type[Any]
    description: str
    path: str
    reads: bool = False


TOOLS: Mapping[str, Tool] = {
    one.name: one
    for one in (
        Tool(
            "list_queries",
            ListQueries,
            ExamService.list_queries,
            service.QueryList,
            "List the queries of the exam in order. If more follow, list those after the last one.",
            "/v1/queries",
            reads=True,
        ),
        Tool(
            "grade_answer",
            OneAnswer,
            ExamService.grade_answer,
            service.GradedAnswer,
            "Grade an answer to a query: its score by the public items of the exam, and the rating "
            "of each.",
            "/v1/grade",
        ),
        Tool(
            "missing",
            OneAnswer,
            ExamService.missing,
            service.MissingItems,
            "List the public items of the exam that an answer to a query does not cover.",
            "/v1/missing",
        ),
        Tool(
            "compare",
            TwoSystems,
            ExamService.compare,
            service.SystemDifference,
            "Compare two systems by their answers to the same queries: the difference of their "
            "scores by the public items with its interval, and the items that only one covers.",
            "/v1/compare",
        ),
        Tool(
            "gate",
            GateArguments,
            ExamService.gate,
            service.GateAnswer,
            "Check whether a system meets a requirement by the public items, such as Cover>=0.7. "
            "Needs an answer to every query.",
            "/v1/gate",
        ),
        Tool(
            "submit",
            OneSystem,
            ExamService.submit,
            service.SealedReport,
            "Submit a system to the sealed items. Its score is reported only if it is clearly a "
            "new best; otherwise the last reported one is given again.",
            "/v1/submit",
        ),
        Tool(
            "budget",
            NoArguments,
            ExamService.budget,
            service.ClientBudget,
            "Return the limits of your token, and what you have used.",
            "/v1/budget",
            reads=True,
        ),
    )
}


def describe_fault(error: ValidationError) -> str:
    """Return the first fault of arguments as a sentence."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    field = ".".join(str(part) for part in first["loc"])[:200]
    return fault_sentence(first["msg"], field)


def fault_sentence(message: str, field: str) -> str:
    """Return a fault of pydantic as a sentence with its field."""
    where = f"{field!a}: " if field else ""
    return f"{where}{message[:1].lower()}{message[1:]}."
