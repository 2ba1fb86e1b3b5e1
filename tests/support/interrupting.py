"""A KeyboardInterrupt before any bytecode of exampp."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import exampp

ROOT = str(Path(exampp.__file__).parent)


class _Tracer:
    def __init__(self, at: int | None) -> None:
        self.at = at
        self.count = 0

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.startswith(ROOT):
            return None
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        if event in ("opcode", "call"):
            self.count += 1
            if self.count == self.at:
                raise KeyboardInterrupt
        return self


def traced(action: Callable[[], object], at: int | None = None) -> int:
    """Run an action, interrupted before the bytecode of this number; how many there were."""
    tracer, before = _Tracer(at), sys.gettrace()
    sys.settrace(tracer)
    try:
        action()
    finally:
        sys.settrace(before)
    return tracer.count
