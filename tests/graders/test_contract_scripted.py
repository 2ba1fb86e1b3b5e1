"""The test double keeps the contract of graders."""

from __future__ import annotations

import pytest
from support.contract import GraderContract, Make

from exampp.graders.base import Request
from exampp.graders.scripted import ScriptedGrader


def rating(ask: Request) -> str:
    return str(len(ask.item + ask.passage) % 6)


class TestScripted(GraderContract):
    look_ahead = 1

    @pytest.fixture
    def make(self) -> Make:
        return lambda: ScriptedGrader(rating)


class TestShuffled(GraderContract):
    look_ahead = 32

    @pytest.fixture
    def make(self) -> Make:
        return lambda: ScriptedGrader(rating, look_ahead=32, shuffle=7)
