"""The draft grader keeps the contract of graders."""

from __future__ import annotations

import pytest
from support.contract import GraderContract, Make

from exampp.graders.draft import LOOK_AHEAD, DraftGrader


class TestDraft(GraderContract):
    look_ahead = (LOOK_AHEAD + 1) * 10 + 1

    @pytest.fixture
    def make(self) -> Make:
        return lambda: DraftGrader(threads=1)
