"""Passages cut to what a server takes, and a prompt that never fits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support import exams
from support.servers import Answer, FaultServer, Seen, error, rating

from exampp.errors import InputError, Unfinished
from exampp.graders.base import TEMPLATE_TOKENS, ApproximateTokens
from exampp.graders.openai.client import RetryAction, ServerAddress, failure_of_status
from exampp.grading.plan import make_grading
from exampp.records import State

SLOTS: dict[str, Any] = {"default_generation_settings": {"n_ctx": 800}, "total_slots": 2}
TELLS: list[tuple[str, Any, int | None]] = [
    ("/v1/models", {"data": [{"id": "x"}, {"id": "m", "max_model_len": 800}]}, 800),
    ("/v1/models", {"data": [{"id": "m", "context_length": 800}]}, 800),
    ("/v1/models", {"data": [{"id": "m", "meta": {"n_ctx": 800}}]}, 800),
    ("/props", SLOTS, 800),
    ("/v1/models", {"data": [{"id": "other", "max_model_len": 800}]}, None),
    ("/v1/models", {"data": [{"id": "m", "max_model_len": "many"}]}, None),
    ("/v1/models", {"data": "none"}, None),
    ("/v1/models", [1], None),
]


def token_count(text: str) -> int:
    return len(ApproximateTokens.offsets(text))


def telling(path: str, told: Any) -> FaultServer:
    return FaultServer(tells={path: told})


def options_at(server: FaultServer, **more: Any) -> dict[str, Any]:
    given = {"model": "m", "base_url": server.url, "decode": "text", "max_new_tokens": 500}
    return given | more


@pytest.mark.parametrize(("path", "told", "context"), TELLS)
def test_the_limit_is_what_the_server_says_less_the_reply(
    path: str, told: Any, context: int | None
) -> None:
    with telling(path, told) as server:
        grader: Any = make_grading("openai", options_at(server)).grader
        assert grader.limit == (None if context is None else context - 500)


def test_long_passages_are_cut_and_counted_in_status_and_leaderboard(tmp_path: Path) -> None:
    with telling(*TELLS[0][:2]) as server, exams.make(tmp_path) as collection:
        long = tmp_path / "long.jsonl"
        long.write_text('{"docid": "p1", "text": "%s"}\n' % ("blue sky " * 500), "utf-8")
        collection.import_files(long, update=True)
        collection.grade("openai", **options_at(server))
        sent = [seen.text for seen in server.requests]
        notes = [*collection.status().notes, *collection.grades().evaluate().notes]
    cut = [text for text in sent if "blue sky blue sky" in text]
    assert cut
    assert all(295 <= token_count(text) + TEMPLATE_TOKENS <= 300 for text in cut)
    assert all("Question: " in text for text in cut), "the question stays whole"
    said = [
        note for note in notes if "1 passage was truncated to fit the context of the model" in note
    ]
    assert len(said) == 2


def test_a_limit_that_is_given_counts_and_names_the_grader() -> None:
    with telling(*TELLS[0][:2]) as server:
        grading = make_grading("openai", options_at(server, limit=700))
        assert getattr(grading.grader, "limit", None) == 700
        assert grading.identity.settings["limit"] == 700
        assert not server.requests


def test_a_prompt_that_never_fits_is_refused_before_the_run() -> None:
    with telling(*TELLS[0][:2]) as server:
        with pytest.raises(InputError, match="which leaves 0 for item and passage"):
            make_grading("openai", options_at(server, prompt="sun-few", limit=200))
        assert not server.requests


def test_a_refused_parameter_is_told_in_status_and_leaderboard(tmp_path: Path) -> None:
    def script(seen: Seen) -> Answer:
        refused = "temperature" in seen.body
        return error(400, "no", param="temperature") if refused else rating(seen)

    with FaultServer(script) as server, exams.make(tmp_path) as collection:
        progress = collection.grade("openai", **options_at(server, retries=0))
        notes = [*collection.status().notes, *collection.grades().evaluate().notes]
    said = f"{progress.total} cells were requested without temperature, which the server rejects"
    assert sum(said in note for note in notes) == 2


REFUSALS: list[tuple[dict[str, Any], int | None]] = [
    (
        {
            "message": "This model's maximum context length is 4,096 tokens. However, you "
            "requested 5120 tokens (4620 in the messages, 500 in the completion).",
            "code": "context_length_exceeded",
        },
        4096,
    ),
    (
        {
            "message": "'max_tokens' or 'max_completion_tokens' is too large: 500. This model's "
            "maximum context length is 800 tokens and your request has 1013 input tokens "
            "(500 > 800 - 1013)."
        },
        800,
    ),
    (
        {"message": "The input (5000 tokens) is longer than the model's context length (4096)."},
        4096,
    ),
    ({"message": "prompt is too long: 213462 tokens > 200000 maximum"}, 200_000),
    (
        {
            "message": "Prompt contains 40010 tokens and 0 draft tokens, too large for model with "
            "32768 maximum context length"
        },
        32_768,
    ),
    (
        {
            "message": "The input token count (1200000) exceeds the maximum number of tokens "
            "allowed (1048576)."
        },
        1_048_576,
    ),
    ({"message": "`inputs` tokens + `max_new_tokens` must be <= 2048. Given: 1900 and 500"}, 2048),
    ({"message": "`inputs` must have less than 1024 tokens. Given: 5000"}, 1024),
    (
        {
            "message": "the request exceeds the available context size, try increasing it",
            "type": "exceed_context_size_error",
            "n_prompt_tokens": 900,
            "n_ctx": 512,
        },
        512,
    ),
    ({"message": "Please reduce the length of the messages: request too large (413)"}, None),
]


@pytest.mark.parametrize(("said", "context"), REFUSALS)
def test_what_a_server_takes_is_read_out_of_its_refusal(
    said: dict[str, Any], context: int | None
) -> None:
    with FaultServer() as server:
        address = ServerAddress(server.url, "key")
        failure = failure_of_status(400, {"error": said}, {}, address, "m")
    assert failure.action is RetryAction.FAIL
    assert failure.reason.startswith("too long for the model")
    assert failure.context == context


@pytest.mark.parametrize("retried", [False, True])
def test_passages_too_long_are_cut_once_the_server_says_what_it_takes(
    tmp_path: Path, retried: bool
) -> None:
    takes = 300

    def script(seen: Seen) -> Answer:
        tokens = token_count(seen.text)
        if tokens + seen.body["max_tokens"] <= takes + 500:
            return rating(seen)
        return error(400, REFUSALS[1][0]["message"])

    with FaultServer(script) as server, exams.make(tmp_path) as collection:
        long = tmp_path / "long.jsonl"
        texts = {key: f"{text} " * 100 for key, text in exams.PASSAGES.items()}
        long.write_text("".join(f'{{"docid": "{k}", "text": "{t}"}}\n' for k, t in texts.items()))
        collection.import_files(long, update=True)
        if retried:
            # they failed before the server said it
            silent = FaultServer(lambda _: error(400, "the prompt is too long"))
            with silent, pytest.raises(Unfinished):
                collection.grade("openai", **options_at(silent, retries=0), max_failures=3)
        progress = collection.grade(
            "openai", **options_at(server, retries=0), max_failures=2, concurrency=1
        )
        notes = [*collection.status().notes, *collection.grades().evaluate().notes]
    assert progress.states == {State.GRADED: progress.total}
    assert progress.done == progress.total
    said = [note for note in notes if "truncated to fit the context of the model" in note]
    assert len(said) == 2
    assert f"{len(texts)} passages were truncated" in said[0]
    # the first was sent twice, the rest as they fit
    assert len(server.requests) == progress.asked <= progress.total + 4
