"""exampp evaluates retrieval, generation and RAG systems by an exam.

`exampp.Collection` is the main path. Names load when they are first used, so that importing the
package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from exampp.collection import Collection
    from exampp.errors import (
        AmbiguousGrader,
        CollectionBusy,
        EditConflict,
        ExamError,
        InputError,
        Unfinished,
    )
    from exampp.evaluate.leaderboard import Leaderboard
    from exampp.evaluate.qrels import Labelling
    from exampp.graded import Workbench
    from exampp.llm.base import Ask, Grader, Reply
    from exampp.opening import open_grades

__version__ = "0.1.0"

_HOMES = {
    "AmbiguousGrader": "exampp.errors",
    "Ask": "exampp.llm.base",
    "Collection": "exampp.collection",
    "CollectionBusy": "exampp.errors",
    "EditConflict": "exampp.errors",
    "ExamError": "exampp.errors",
    "Grader": "exampp.llm.base",
    "InputError": "exampp.errors",
    "Labelling": "exampp.evaluate.qrels",
    "Leaderboard": "exampp.evaluate.leaderboard",
    "Reply": "exampp.llm.base",
    "Unfinished": "exampp.errors",
    "Workbench": "exampp.graded",
    "open_grades": "exampp.opening",
}

__all__ = [
    "AmbiguousGrader",
    "Ask",
    "Collection",
    "CollectionBusy",
    "EditConflict",
    "ExamError",
    "Grader",
    "InputError",
    "Labelling",
    "Leaderboard",
    "Reply",
    "Unfinished",
    "Workbench",
    "__version__",
    "open_grades",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'exampp' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
