"""exampp evaluates retrieval, generation and RAG systems by an exam.

`exampp.open` is the main path. Names are imported on first use, which keeps `import exampp` fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from exampp.version import __version__

if TYPE_CHECKING:
    from exampp.analysis.gate import GateFailed, GateSettings, GateUndecided
    from exampp.collection import (
        Collection,
        create,
        open,  # noqa: A004
    )
    from exampp.errors import (
        AmbiguousGrader,
        CollectionBusy,
        EditConflict,
        ExamError,
        InputError,
        Unfinished,
    )
    from exampp.formats.format import Format
    from exampp.graders.base import Grader, Reply, Request
    from exampp.graders.options import GraderOptions, option
    from exampp.graders.registry import Backend
    from exampp.grades.grades import Grades
    from exampp.grades.panel import Panel
    from exampp.grading.batches import Batches
    from exampp.grading.workers import Cluster
    from exampp.inputs.checking import Checked
    from exampp.inputs.explaining import Explanation, explain_files
    from exampp.measures.board import Leaderboard
    from exampp.measures.formulas import RankedQuery, measure
    from exampp.measures.qrels import Labelling
    from exampp.project.checking import check


_HOMES = {
    "AmbiguousGrader": "exampp.errors",
    "Request": "exampp.graders.base",
    "Backend": "exampp.graders.registry",
    "Batches": "exampp.grading.batches",
    "Checked": "exampp.inputs.checking",
    "Cluster": "exampp.grading.workers",
    "Collection": "exampp.collection",
    "CollectionBusy": "exampp.errors",
    "EditConflict": "exampp.errors",
    "ExamError": "exampp.errors",
    "Explanation": "exampp.inputs.explaining",
    "Format": "exampp.formats.format",
    "GateFailed": "exampp.analysis.gate",
    "GateSettings": "exampp.analysis.gate",
    "GateUndecided": "exampp.analysis.gate",
    "Grader": "exampp.graders.base",
    "Grades": "exampp.grades.grades",
    "InputError": "exampp.errors",
    "Labelling": "exampp.measures.qrels",
    "Leaderboard": "exampp.measures.board",
    "GraderOptions": "exampp.graders.options",
    "option": "exampp.graders.options",
    "Panel": "exampp.grades.panel",
    "Reply": "exampp.graders.base",
    "RankedQuery": "exampp.measures.formulas",
    "Unfinished": "exampp.errors",
    "check": "exampp.project.checking",
    "create": "exampp.collection",
    "explain_files": "exampp.inputs.explaining",
    "measure": "exampp.measures.formulas",
    "open": "exampp.collection",
}

__all__ = [
    "AmbiguousGrader",
    "Backend",
    "Batches",
    "Checked",
    "Cluster",
    "Collection",
    "CollectionBusy",
    "EditConflict",
    "ExamError",
    "Explanation",
    "Format",
    "GateFailed",
    "GateSettings",
    "GateUndecided",
    "Grader",
    "GraderOptions",
    "Grades",
    "InputError",
    "Labelling",
    "Leaderboard",
    "Panel",
    "RankedQuery",
    "Reply",
    "Request",
    "Unfinished",
    "__version__",
    "check",
    "create",
    "explain_files",
    "measure",
    "open",
    "option",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'exampp' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
