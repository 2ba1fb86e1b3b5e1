"""Local models pass the tests of the grader contract, whichever class they are."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.contract import GraderContract, Make
from support.tiny_models import LABELS

from exampp.graders.local import load_local_grader

pytest_plugins = ("support.tiny_models",)
pytestmark = pytest.mark.usefixtures("loaded_once")


class LocalContract(GraderContract):
    look_ahead = 128


class TestScoringSeq2Seq(LocalContract):
    @pytest.fixture
    def make(self, t5: Path) -> Make:
        return lambda: load_local_grader(str(t5), labels=LABELS, device="cpu")


class TestGeneratingSeq2Seq(LocalContract):
    @pytest.fixture
    def make(self, t5_taught: Path) -> Make:
        return lambda: load_local_grader(str(t5_taught), device="cpu", max_new_tokens=4)


class TestScoringChat(LocalContract):
    @pytest.fixture
    def make(self, llama: Path) -> Make:
        return lambda: load_local_grader(str(llama), labels=LABELS, device="cpu")


class TestGeneratingText(LocalContract):
    @pytest.fixture
    def make(self, llama_plain: Path) -> Make:
        return lambda: load_local_grader(str(llama_plain), device="cpu", max_new_tokens=4)


class TestExtractive(LocalContract):
    @pytest.fixture
    def make(self, bert: Path) -> Make:
        return lambda: load_local_grader(str(bert), device="cpu")


class TestExtractiveT5(LocalContract):
    @pytest.fixture
    def make(self, t5_reader: Path) -> Make:
        return lambda: load_local_grader(str(t5_reader), device="cpu")
