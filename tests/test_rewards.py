"""Reward functions are called as TRL, verl and verifiers call them."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import exampp
from exampp.errors import InputError, Unfinished
from exampp.graders.base import Reply, Request
from exampp.graders.scripted import ScriptedGrader
from exampp.integrations.rewards import (
    completion_text,
    trl_reward,
    verifiers_reward,
    verifiers_task_reward,
    verl_batch_score,
    verl_score,
)
from exampp.scorer import Scorer

GOOD, BAD = "Air scatters blue light.", "Nothing."
SKY = "why is the sky blue"
"""The text of query q1."""


def reply_to(request: Request) -> Reply:
    if "broken" in request.passage:
        return Reply("", fault="connection refused")
    return Reply("5" if "scatter" in request.item and "Air" in request.passage else "0")


@pytest.fixture
def scorer(small_exam: exampp.Collection) -> Scorer:
    """The small exam: only the first item of q1 can be covered."""
    return small_exam.scorer(ScriptedGrader(reply_to))


def chat(role: str, *contents: object) -> list[dict[str, object]]:
    return [{"role": role, "content": content} for content in contents]


def as_trl_calls(reward: Callable[..., Any], **call: Any) -> Any:
    """Call with the keywords of GRPOTrainer._calculate_rewards."""
    given = {
        "completion_ids": [[1]] * len(call["prompts"]),
        "trainer_state": SimpleNamespace(global_step=1),
        "log_extra": lambda *_: None,
        "log_metric": lambda *_: None,
    }
    return reward(**given, **call)


def test_trl_by_a_column(scorer: Scorer) -> None:
    rewards = as_trl_calls(
        trl_reward(scorer),
        prompts=["Say something"] * 4,
        completions=[GOOD, BAD, GOOD, GOOD],
        query_id=["q1", "q1", "q2", "q1"],
    )
    assert rewards == [0.5, 0.0, 0.0, 0.5]


def test_trl_by_prompts_of_a_conversation(scorer: Scorer) -> None:
    rewards = as_trl_calls(
        trl_reward(scorer),
        prompts=[[*chat("system", "Be brief."), *chat("user", "hello", SKY)], chat("user", SKY)],
        completions=[chat("assistant", BAD, GOOD), chat("assistant", [{"text": GOOD}])],
    )
    assert rewards == [0.5, 0.5]


def test_trl_gets_none_for_a_text_without_a_reply(scorer: Scorer) -> None:
    call = {"prompts": [SKY] * 2, "completions": ["broken", GOOD]}
    assert as_trl_calls(trl_reward(scorer), **call) == [None, 0.5]


def test_trl_sends_the_completions_of_a_step_in_one_batch(small_exam: exampp.Collection) -> None:
    batches: list[int] = []

    class Counts(ScriptedGrader):
        def answer(self, requests: Any) -> Any:
            sent = list(requests)
            batches.append(len(sent))
            return super().answer(sent)

    reward = trl_reward(small_exam.scorer(Counts("4")))
    queries = ["q1", "q2", "q1", "q2"]
    as_trl_calls(reward, prompts=["?"] * 4, completions=list("abcd"), query_id=queries)
    assert batches == [2 * 2 + 2 * 1]


def test_trl_itself_calls_it(scorer: Scorer) -> None:
    trainer = pytest.importorskip("trl.trainer.grpo_trainer", exc_type=ImportError)
    torch = pytest.importorskip("torch")
    reward = trl_reward(scorer)
    fake = SimpleNamespace(
        accelerator=SimpleNamespace(device="cpu", gather=lambda one: one, is_main_process=False),
        reward_funcs=[reward, lambda prompts, **_: [0.0] * len(prompts)],
        reward_processing_classes=[None, None],
        reward_func_names=[trainer.get_callable_name(reward), "another"],
        state=SimpleNamespace(global_step=0),
        environments=None,
        _log_completion_extra=None,
        _log_metric=None,
        args=SimpleNamespace(report_to=[]),
    )
    calculate = inspect.unwrap(trainer.GRPOTrainer._calculate_rewards)
    rows = [{"prompt": SKY, "query_id": "q1"}] * 2
    prompts, completions = [SKY] * 2, [GOOD, "broken"]
    found = calculate(fake, rows, prompts, completions, [[1]] * 2)
    assert found[0].tolist() == [0.5, 0.0]
    assert torch.isnan(found[1]).tolist() == [True, False]
    assert not trainer.is_async_callable(reward)


def test_verl(scorer: Scorer) -> None:
    score = verl_score(scorer)
    by_info = score("data", GOOD, "an answer", {"query_id": "q1", "num_turns": 2})
    assert by_info == {"score": 0.5, "low": 0.5, "high": 0.5, "unparsed": 0.0}
    by_truth = score(
        data_source="data",
        solution_str=BAD,
        ground_truth="q1",
        extra_info=None,
        reward_router_address=None,
    )
    assert by_truth["score"] == 0.0
    with pytest.raises(Unfinished, match="no reply of the grader for 2 of 2 items: connection"):
        score("data", "broken", "q1")


def test_verl_in_batches(scorer: Scorer) -> None:
    found = verl_batch_score(scorer)(
        data_sources=["data"] * 3,
        solution_strs=[GOOD, GOOD, BAD],
        ground_truths=["q1", "q2", None],
        extra_infos=[{}, None, {"query_id": "q1"}],
    )
    assert [one["score"] for one in found] == [0.5, 0.0, 0.0]


def test_verl_itself_loads_it(scorer: Scorer, tmp_path: Path) -> None:
    reward = pytest.importorskip("verl.trainer.ppo.reward", exc_type=ImportError)
    omegaconf = pytest.importorskip("omegaconf")
    file = tmp_path / "reward.py"
    file.write_text(
        "import exampp\n"
        "from exampp.integrations.rewards import verl_score\n"
        f"scorer = exampp.open({str(scorer._choice.path)!r}).scorer('draft')\n"
        "compute_score = verl_score(scorer)\n"
    )
    named = {"path": str(file), "name": "compute_score", "reward_kwargs": {}}
    config = omegaconf.OmegaConf.create({"reward": {"custom_reward_function": named}})
    found = reward.get_custom_reward_fn(config)(
        data_source="data", solution_str=GOOD, ground_truth="q1", extra_info={}
    )
    assert found["score"] == 0.5


def test_verifiers(scorer: Scorer) -> None:
    reward = verifiers_reward(scorer)

    async def run() -> list[Any]:
        calls = [
            reward(prompt="?", completion=GOOD, answer="", info={"query_id": "q1"}, state={}),
            reward(prompt=chat("user", SKY), completion=chat("assistant", GOOD), info={}),
            reward(prompt="?", completion=BAD, query_id="q2", task=None),
            reward(prompt="?", completion="broken", query_id="q2"),
        ]
        return list(await asyncio.gather(*calls, return_exceptions=True))

    *values, failure = asyncio.run(run())
    assert values == [0.5, 0.5, 0.0]
    assert isinstance(failure, Unfinished)


def test_verifiers_itself_calls_it(scorer: Scorer) -> None:
    # verifiers has no rubrics from 0.2 on
    pytest.importorskip("verifiers.rubrics", exc_type=ImportError)
    verifiers: Any = pytest.importorskip("verifiers")
    rubric = verifiers.Rubric(funcs=[verifiers_reward(scorer)])
    state = verifiers.State(
        prompt=chat("user", "?"),
        completion=chat("assistant", GOOD),
        answer="",
        info={"query_id": "q1"},
        timing={},
        trajectory=[],
    )
    asyncio.run(rubric.score_rollout(state))
    assert state["reward"] == 0.5


def test_verifiers_with_tasks(scorer: Scorer) -> None:
    reward = verifiers_task_reward(scorer)
    trace = SimpleNamespace(last_reply=GOOD)
    by_field = reward(SimpleNamespace(query_id="q1", prompt="?"), trace)
    assert asyncio.run(by_field) == 0.5
    by_prompt = reward(SimpleNamespace(prompt=chat("user", SKY)), trace)
    assert asyncio.run(by_prompt) == 0.5


def test_verifiers_task_itself_calls_it(scorer: Scorer) -> None:
    vf: Any = pytest.importorskip("verifiers.v1", exc_type=ImportError)
    reward = verifiers_task_reward(scorer)

    async def exam(_: Any, task: Any, trace: Any) -> float:
        return await reward(task, trace)

    task = type("Sky", (vf.Task,), {"exam": vf.reward(exam)})
    recorded: dict[str, float] = {}
    trace = SimpleNamespace(
        last_reply=GOOD,
        metrics={},
        rewards={},
        record_reward=lambda key, value, weight: recorded.update({key: value * weight}),
    )
    asyncio.run(task(vf.TaskData(prompt=SKY)).score(trace))
    assert recorded == {"exam": 0.5}


def test_only_one_part_of_the_bank_counts(small_exam: exampp.Collection) -> None:
    small_exam.bank().split(0.5, author="ada")
    scorer = small_exam.scorer(ScriptedGrader(reply_to))
    call = {"prompts": [SKY], "completions": [GOOD]}
    parts = [as_trl_calls(trl_reward(scorer, part=part), **call) for part in ("public", "sealed")]
    assert sorted(parts) == [[0.0], [1.0]]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        (chat("assistant", "first", "last"), "last"),
        (chat("user", "a question"), ""),
        ([], ""),
        (chat("assistant", None), ""),
        (chat("assistant", [{"type": "text", "text": "a"}, {"text": "b"}, {"image": 1}]), "a\nb\n"),
        ([SimpleNamespace(role="assistant", content="an object")], "an object"),
    ],
)
def test_the_text_of_a_completion(value: Any, text: str) -> None:
    assert completion_text(value, "assistant") == text


@pytest.mark.parametrize("value", [None, 3, 1.5])
def test_a_completion_of_another_type_is_refused(value: Any) -> None:
    with pytest.raises(InputError, match="expected a text or a list of messages"):
        completion_text(value, "assistant")


def test_an_unknown_query_is_named(scorer: Scorer) -> None:
    with pytest.raises(InputError, match=r"unknown query 'why\?'"):
        as_trl_calls(trl_reward(scorer), prompts=["why?"], completions=[GOOD])
