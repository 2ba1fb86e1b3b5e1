"""EXAM-Cover, nugget scores and EXAM-Qrels, and the leaderboards that they make.

Importing this package makes `ir_measures.parse_measure("Cover@20")` work, whichever of the two is
imported first. ir_measures itself is not imported, and the integration only when it is used.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

from exampp.measures.names import KINDS


class _Unloaded:
    """A measure in the registry of ir_measures that loads the integration when it is made."""

    AT_PARAM = "cutoff"

    def __init__(self, name: str, registry: dict[str, Any]) -> None:
        self.name, self.registry = name, registry

    def __call__(self, **params: Any) -> Any:
        """Return the measure with these parameters."""
        import_module("exampp.integrations.ir_measures")
        return self.registry[self.name](**params)


class _WhenImported(MetaPathFinder):
    """Add the measures to ir_measures as soon as it is imported."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the usual specification of ir_measures, which then runs one more function."""
        spec = PathFinder.find_spec(name, path, target) if name == "ir_measures" else None
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_and_add(module: ModuleType) -> None:
                load(module)
                _add(module)

            vars(spec.loader)["exec_module"] = load_and_add
        return spec


def _add(module: Any) -> None:
    registry = module.measures.registry
    for name, kind in KINDS.items():
        if kind.exampp_only and name not in registry:
            registry[name] = _Unloaded(name, registry)


if "ir_measures" in sys.modules:
    _add(sys.modules["ir_measures"])
else:
    sys.meta_path.insert(0, _WhenImported())
