"""exampp evaluates retrieval, generation and RAG systems by an exam.

`exampp.open` is the main path. Names load when they are first used, so that importing the
package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from exampp.analysis.gate import GateSettings
    from exampp.analysis.gate_result import GateFailed, GateUndecided
    from exampp.collection import Collection
    from exampp.errors import (
        AmbiguousGrader,
        CollectionBusy,
        EditConflict,
        ExamError,
        InputError,
        Unfinished,
    )
    from exampp.evaluate.board import Leaderboard
    from exampp.evaluate.declared_measures import RankedQuery, measure
    from exampp.evaluate.qrels import Labelling
    from exampp.formats.declared import Format
    from exampp.grade.batches import Batches
    from exampp.grade.spread.on_ray import Cluster
    from exampp.graded_file import GradedFile
    from exampp.grades.grades import Grades
    from exampp.grades.panel import Panel
    from exampp.inputs.checking import Checked, check
    from exampp.llm.backends import Backend
    from exampp.llm.base import Ask, Grader, Reply
    from exampp.llm.options import Option
    from exampp.opening import create, open  # noqa: A004

__version__ = "0.1.0"

_HOMES = {
    "AmbiguousGrader": "exampp.errors",
    "Ask": "exampp.llm.base",
    "Backend": "exampp.llm.backends",
    "Batches": "exampp.grade.batches",
    "Checked": "exampp.inputs.checking",
    "Cluster": "exampp.grade.spread.on_ray",
    "Collection": "exampp.collection",
    "CollectionBusy": "exampp.errors",
    "EditConflict": "exampp.errors",
    "ExamError": "exampp.errors",
    "Format": "exampp.formats.declared",
    "GateFailed": "exampp.analysis.gate_result",
    "GateSettings": "exampp.analysis.gate",
    "GateUndecided": "exampp.analysis.gate_result",
    "GradedFile": "exampp.graded_file",
    "Grader": "exampp.llm.base",
    "Grades": "exampp.grades.grades",
    "InputError": "exampp.errors",
    "Labelling": "exampp.evaluate.qrels",
    "Leaderboard": "exampp.evaluate.board",
    "Option": "exampp.llm.options",
    "Panel": "exampp.grades.panel",
    "Reply": "exampp.llm.base",
    "RankedQuery": "exampp.evaluate.declared_measures",
    "Unfinished": "exampp.errors",
    "check": "exampp.inputs.checking",
    "create": "exampp.opening",
    "measure": "exampp.evaluate.declared_measures",
    "open": "exampp.opening",
}

__all__ = [
    "AmbiguousGrader",
    "Ask",
    "Backend",
    "Batches",
    "Checked",
    "Cluster",
    "Collection",
    "CollectionBusy",
    "EditConflict",
    "ExamError",
    "Format",
    "GateFailed",
    "GateSettings",
    "GateUndecided",
    "GradedFile",
    "Grader",
    "Grades",
    "InputError",
    "Labelling",
    "Leaderboard",
    "Option",
    "Panel",
    "RankedQuery",
    "Reply",
    "Unfinished",
    "__version__",
    "check",
    "create",
    "measure",
    "open",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'exampp' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
