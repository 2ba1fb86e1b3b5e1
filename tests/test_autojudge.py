"""The judge of TREC AutoJudge: its three protocols, and that a replay asks nobody anything."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from support.forked import forked
from support.servers import Answer, FaultServer, Seen, completion, error

from exampp.errors import InputError, Unfinished

if TYPE_CHECKING:
    from autojudge_base import Report

WORKFLOW = Path(__file__).parents[1] / "examples" / "autojudge" / "workflow.yml"
DEAD = "http://127.0.0.1:9/v1"


@pytest.fixture(autouse=True)
def _asks_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exampp.graders.openai.client.LONGEST_BACKOFF", 0.01)


def replied(seen: Seen) -> Answer:
    """Questions where some are asked for; else 5 where the passage has the question's last word."""
    from support.judged_topics import QUESTIONS

    if "question set" in seen.text:
        topic = "sky" if "blue sky" in seen.text else "sea"
        return Answer(completion(json.dumps({"questions": QUESTIONS[topic]})))
    word = re.search(r"What of (\w+)\?", seen.text)
    assert word is not None
    passage = seen.text.replace(word[0], "")
    return Answer(completion("5" if word[1] in passage else "1"))


def rows(board: Any) -> dict[tuple[str, str], dict[str, float]]:
    return {(entry.run_id, entry.topic_id): entry.values for entry in board.entries}


def questions(banks: Any) -> dict[str, list[str]]:
    return {
        topic: [nugget.question for nugget in one.nuggets_as_list()]
        for topic, one in banks.banks.items()
    }


def test_the_three_protocols_and_their_replay(tmp_path: Path) -> None:
    from support.judged_topics import QUESTIONS, REPORTS, TOPICS, config

    from exampp.integrations.autojudge import ExamJudge

    def run(url: str) -> tuple[Any, Any, Any]:
        given = {"llm_config": config(url, tmp_path), "outdir": tmp_path, "filebase": "x"}
        banks = ExamJudge().create_nuggets(None, TOPICS, **given)
        labels = ExamJudge().create_qrels(REPORTS, TOPICS, nugget_banks=banks, **given)
        board = ExamJudge().judge(REPORTS, TOPICS, nugget_banks=banks, qrels=labels, **given)
        return banks, labels, board

    with FaultServer(replied) as server:
        banks, labels, board = run(server.url)
        # two topics, each once more because items are missing, and three passages against the items
        # of their topics: judging asks nothing new
        assert len(server.requests) == 2 * 2 + 2 * 2 + 1
        assert {seen.body["model"] for seen in server.requests} == {"tiny"}
    assert questions(banks) == QUESTIONS
    texts = {report.get_report_text() for report in REPORTS}
    named = {hashlib.md5(text.encode()).hexdigest(): text for text in texts}
    assert {(row.topic_id, named[row.doc_id], row.grade) for row in labels.rows} == {
        ("sky", "The air scatters light.", 5),
        ("sky", "It is far away.", 1),
        ("sea", "Rivers carry salt.", 5),
        ("sea", "", 0),
    }
    assert rows(board) == {
        ("one", "sky"): {"Cover": 0.5},
        ("one", "sea"): {"Cover": 1},
        ("one", "all"): {"Cover": 0.75},
        ("two", "sky"): {"Cover": 0},
        ("two", "sea"): {"Cover": 0},
        ("two", "all"): {"Cover": 0},
    }
    assert run(DEAD) == (banks, labels, board)
    # in whatever order the reports come
    REPORTS.reverse()
    assert run(DEAD) == (banks, labels, board)


def test_settings_change_what_counts_and_what_is_graded(tmp_path: Path) -> None:
    from support.judged_topics import BANKS, REPORTS, TOPICS, config

    from exampp.integrations.autojudge import ExamJudge

    with FaultServer(replied) as server:
        model = config(server.url, tmp_path)

        def cover(reports: list[Report] = REPORTS, **settings: Any) -> dict[str, float]:
            board = ExamJudge().judge(reports, TOPICS, model, nugget_banks=BANKS, **settings)
            return {
                entry.run_id: entry.values["Cover"]
                for entry in board.entries
                if entry.topic_id == "all"
            }

        assert cover() == {"one": 0.75, "two": 0}
        asked = len(server.requests)
        assert cover(min_rating=1) == {"one": 1, "two": 0.5}
        assert len(server.requests) == asked
        # what is cited: air and dust of the sky, and no salt; dust alone
        assert cover(graded="documents") == {"one": 0.5, "two": 0.25}
        labels = ExamJudge().create_qrels(
            REPORTS, TOPICS, model, nugget_banks=BANKS, graded="documents", label="count"
        )
        found = {(row.topic_id, row.doc_id, row.grade) for row in labels.rows}
        assert found == {("sky", "d1", 2), ("sky", "d2", 1), ("sea", "d3", 0)}
        # a run without a report on a topic has no row, and 0 in its mean
        assert cover([one for one in REPORTS if one.metadata.topic_id == "sky"]) == {
            "one": 0.25, "two": 0
        }  # fmt: skip


def test_banks_that_are_given_stay_and_the_others_are_made(tmp_path: Path) -> None:
    from autojudge_base import NuggetBanks
    from support.judged_topics import BANKS, QUESTIONS, REPORTS, TOPICS, bank, config

    from exampp.integrations.autojudge import ExamJudge

    given = NuggetBanks.from_banks_list([bank("sea", "What of fish?"), bank("elsewhere", "Why?")])
    with FaultServer(replied) as server:
        model = config(server.url, tmp_path)
        banks = ExamJudge().create_nuggets(REPORTS, TOPICS, model, nugget_banks=given)
        assert questions(banks) == {"sea": ["What of fish?"], "sky": QUESTIONS["sky"]}
        assert len(server.requests) == 2
    assert ExamJudge().create_nuggets(None, TOPICS, config(DEAD, tmp_path), BANKS) == BANKS


def test_what_cannot_be_read_is_told_and_not_asked_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    from support.judged_topics import BANKS, REPORTS, TOPICS, config

    from exampp.integrations.autojudge import ExamJudge

    def odd(seen: Seen) -> Answer:
        return Answer(completion("no idea")) if "dust" in seen.text else replied(seen)

    with FaultServer(odd) as server:
        board = ExamJudge().judge(REPORTS, TOPICS, config(server.url, tmp_path), nugget_banks=BANKS)
    assert rows(board)["one", "sky"] == {"Cover": 0.5}
    assert "run 'one', topic 'sky': 1 of 2 cells have no grade (unreadable replies)" in caplog.text
    again = ExamJudge().judge(REPORTS, TOPICS, config(DEAD, tmp_path), nugget_banks=BANKS)
    assert again == board


def test_what_could_not_be_asked_is_an_error_and_goes_on(tmp_path: Path) -> None:
    from support.judged_topics import BANKS, REPORTS, TOPICS, config

    from exampp.integrations.autojudge import ExamJudge

    def broken(seen: Seen) -> Answer:
        return error(400, "no such luck") if "dust" in seen.text else replied(seen)

    def judge(url: str) -> Any:
        return ExamJudge().judge(REPORTS, TOPICS, config(url, tmp_path), nugget_banks=BANKS)

    with (
        FaultServer(broken) as server,
        pytest.raises(Unfinished, match=r"2 requests .*such luck"),
    ):
        judge(server.url)
    with pytest.raises(InputError, match="does not answer"):
        judge(DEAD)
    with FaultServer(replied) as server:
        board = judge(server.url)
        assert len(server.requests) == 2
    assert judge(DEAD) == board

    with (
        FaultServer(lambda _: Answer(completion("I cannot"))) as server,
        pytest.raises(Unfinished, match=r"no nuggets for 2 of 2 topics, the first 'sky'"),
    ):
        ExamJudge().create_nuggets(None, TOPICS, config(server.url, tmp_path))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"min_ratng": 4}, r"settings.min_ratng: unknown setting. .*min_rating"),
        ({"base_url": "http://x"}, "can only be set in the environment"),
        ({"api_key": "sk-1"}, "can only be set in the environment"),
        ({"decode": "auto"}, "requests that cannot be cached"),
        ({"graded": "web"}, "Use report or documents"),
        ({"measures": ["Covr"]}, "Did you mean Cover"),
        ({"kind": "claim"}, "kind is 'claim'. It must be one of question, nugget, query"),
    ],
)
def test_wrong_settings_are_sentences(tmp_path: Path, settings: Any, said: str) -> None:
    from support.judged_topics import BANKS, REPORTS, TOPICS, config

    from exampp.integrations.autojudge import ExamJudge

    with pytest.raises(InputError, match=said):
        ExamJudge().judge(REPORTS, TOPICS, config(DEAD, tmp_path), nugget_banks=BANKS, **settings)


def test_a_model_has_to_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from autojudge_base.llm_config import LlmConfigBase
    from support.judged_topics import TOPICS

    from exampp.integrations.autojudge import ExamJudge

    for name in ("OPENAI_MODEL", "LLM_MODEL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(InputError, match=r"missing model. Set OPENAI_MODEL"):
        ExamJudge().create_nuggets(None, TOPICS, LlmConfigBase(cache_dir=tmp_path))


def test_the_check_of_a_submission_passes(
    shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """Runs the workflow twice in processes of their own, the second time without a server."""
    from autojudge_base import cli

    check = _module(shared_data / "autojudge" / "check_adapter.py")

    class Scripted(check.Handler):  # type: ignore[misc, name-defined]
        """Makes questions, too, where questions are asked for."""

        def send(self, value: Any) -> None:
            asked = json.dumps(self.server.bodies[-1]["messages"])
            if "question set" in asked:
                number = sum(asked.encode()) % 50
                made = json.dumps({"questions": [f"What about {number}?", f"Why {number}?"]})
                value["choices"][0]["message"]["content"] = made
            super().send(value)

    def in_a_fork(command: Sequence[str], *, env: Mapping[str, str], **_: object) -> object:
        def run() -> None:
            os.environ.update(env)
            sys.argv = list(command[2:])
            cli.main()

        assert command[1:3] == ["-m", "autojudge_base.cli"]
        process = forked(run, tmp_path / "said")
        process.join()
        said = (tmp_path / "said").read_text()
        return subprocess.CompletedProcess(command, process.exitcode or 0, said, said)

    monkeypatch.setattr(check, "Handler", Scripted)
    monkeypatch.setattr(check.subprocess, "run", in_a_fork)
    monkeypatch.setattr(sys, "argv", ["check", str(WORKFLOW)])
    check.main()
    said = capsys.readouterr().out
    # 5 topics, each twice for two of ten questions, and 4 reports to each against four questions
    assert "contact: 90 requests" in said
    assert "exampp-default.nuggets.jsonl, exampp-default.qrels.txt" in said


def _module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_adapter", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_workflow_of_the_page_is_the_example() -> None:
    page = (WORKFLOW.parents[2] / "docs" / "how-to" / "autojudge.md").read_text()
    (shown,) = re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert yaml.safe_load(shown) == yaml.safe_load(WORKFLOW.read_text())
