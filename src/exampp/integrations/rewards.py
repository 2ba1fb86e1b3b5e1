"""Reward functions for reinforcement learning with TRL, verl and verifiers, from a scorer.

Each function has the signature that its program calls; none of the programs is imported. A sample
names its query by a column, or its prompt is the whole text of the query. A completion is a text or
a list of chat messages, of which the last one of the assistant counts.

A text whose cells have a reply without a rating gets the score that counts these as below the
minimum rating, because a policy may cause such replies. A text with cells without any reply has no
score: TRL gets None, and the others raise Unfinished.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from exampp.errors import InputError, Unfinished

if TYPE_CHECKING:
    from exampp.integrations.reward_alarm import RewardAlarm
    from exampp.measures.text_scores import TextScore
    from exampp.scorer import Scorer

QUERY = "query_id"
"""The column that names the query of a sample."""


def trl_reward(
    scorer: Scorer,
    *,
    query: str = QUERY,
    part: str | None = None,
    alarm: RewardAlarm | None = None,
) -> Callable[..., list[float | None]]:
    """Return a function for `reward_funcs` of TRL's trainers.

    Args:
        scorer: What scores the completions.
        query: The column with the id of the query; without it, prompts name queries by their text.
        part: Only the `public` or the `sealed` items of a split bank.
        alarm: Watches all completions for reward hacking.
    """

    def exam_reward(
        prompts: Sequence[Any], completions: Sequence[Any], **columns: Any
    ) -> list[float | None]:
        names = columns.get(query) or [None] * len(prompts)
        queries = [_query(scorer, *one) for one in zip(names, prompts, strict=True)]
        texts = [completion_text(one, "assistant") for one in completions]
        if alarm is not None:
            alarm.see(queries, texts)
        scores = _scores(scorer, queries, texts, part)
        return [None if one.failed else one.score for one in scores]

    return exam_reward


def verl_score(
    scorer: Scorer, *, query: str = QUERY, part: str | None = None
) -> Callable[..., dict[str, float]]:
    """Return a function `compute_score` for verl.

    The query is named by `extra_info`, or else by `ground_truth`. The result has the `score`, its
    bounds `low` and `high`, and the number of `unparsed` cells.
    """

    # verl passes all four, by name or by position
    def compute_score(
        data_source: Any,  # noqa: ARG001
        solution_str: str,
        ground_truth: Any = None,
        extra_info: Mapping[str, Any] | None = None,
        **_: Any,
    ) -> dict[str, float]:
        name = _query(scorer, (extra_info or {}).get(query), ground_truth)
        return _verl_result(scorer.score(name, [solution_str], part=part)[0])

    return compute_score


def verl_batch_score(
    scorer: Scorer, *, query: str = QUERY, part: str | None = None
) -> Callable[..., list[dict[str, float]]]:
    """Return a function `compute_score` for the batch reward manager of verl; see `verl_score`."""

    # verl passes all four, by name or by position
    def compute_score(
        data_sources: Sequence[Any],  # noqa: ARG001
        solution_strs: Sequence[str],
        ground_truths: Sequence[Any],
        extra_infos: Sequence[Mapping[str, Any] | None],
        **_: Any,
    ) -> list[dict[str, float]]:
        queries = [
            _query(scorer, (extra or {}).get(query), truth)
            for truth, extra in zip(ground_truths, extra_infos, strict=True)
        ]
        return [_verl_result(one) for one in _scores(scorer, queries, solution_strs, part)]

    return compute_score


def _verl_result(score: TextScore) -> dict[str, float]:
    return {
        "score": _checked(score),
        "low": score.low,
        "high": score.high,
        "unparsed": float(score.unparsed),
    }


def verifiers_reward(
    scorer: Scorer, *, query: str = QUERY, part: str | None = None
) -> Callable[..., Coroutine[Any, Any, float]]:
    """Return an async reward function for `Rubric` of verifiers before 0.2.

    The query is named by a column of the data set or by a key of `info`.
    """

    async def exam_reward(
        prompt: Any, completion: Any, info: Mapping[str, Any] | None = None, **columns: Any
    ) -> float:
        named = columns.get(query) or (info or {}).get(query)
        name = _query(scorer, named, prompt)
        scores = await scorer.score_async(
            name, [completion_text(completion, "assistant")], part=part
        )
        return _checked(scores[0])

    return exam_reward


def verifiers_task_reward(
    scorer: Scorer, *, query: str = QUERY, part: str | None = None
) -> Callable[[Any, Any], Coroutine[Any, Any, float]]:
    """Return an async reward function for tasks of verifiers from 0.2 on.

    The query is named by a field of the task; the last reply of the trace is scored.
    """

    async def exam_reward(task: Any, trace: Any) -> float:
        name = _query(scorer, getattr(task, query, None), task.prompt)
        scores = await scorer.score_async(name, [trace.last_reply], part=part)
        return _checked(scores[0])

    return exam_reward


def completion_text(value: Any, role: str) -> str:
    """Return a text, or the content of the last message of a role in a conversation.

    Raises:
        InputError: The value is neither a text nor a list of messages.
    """
    if isinstance(value, str):
        return value
    if not isinstance(value, Iterable):
        what = f"expected a text or a list of messages, not {type(value).__name__}"
        raise InputError(what, hint="Name the query of each sample in a column")
    messages = [one for one in value if _field(one, "role") == role]
    content = _field(messages[-1], "content") if messages else None
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(str(_field(part, "text") or "") for part in content)


def _field(message: Any, name: str) -> Any:
    return message.get(name) if isinstance(message, Mapping) else getattr(message, name, None)


def _query(scorer: Scorer, name: Any, prompt: Any) -> str:
    return scorer.query_id(completion_text(prompt, "user") if name is None else str(name))


def _scores(
    scorer: Scorer, queries: Sequence[str], texts: Sequence[str], part: str | None
) -> list[TextScore]:
    """Return the scores of texts, each for its query, graded in one batch."""
    by_query: dict[str, list[str]] = {}
    for query_id, text in zip(queries, texts, strict=True):
        by_query.setdefault(query_id, []).append(text)
    found = scorer.score_all(by_query, part=part)
    left = {query_id: iter(scores) for query_id, scores in found.items()}
    return [next(left[query_id]) for query_id in queries]


def _checked(score: TextScore) -> float:
    if score.failed:
        cells = f"{score.failed} of {len(score.ratings)} items"
        raise Unfinished(f"no reply of the grader for {cells}: {score.reason}")
    return score.score
