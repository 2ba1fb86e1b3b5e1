"""Models through inspect_ai, with a stand-in for its model layer."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from support.contract import GraderContract, Make, answers, make_asks

from exampp.errors import InputError
from exampp.graders.base import Usage
from exampp.graders.inspect_models import InspectGrader
from exampp.graders.options import InspectOptions, read_options
from exampp.grading.plan import make_grading

Answer = Callable[[list[Any]], Any]


class Refused(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status_code = status


def output(text: str = "4", stop: str = "stop") -> Any:
    usage = SimpleNamespace(
        input_tokens=10, output_tokens=2, input_tokens_cache_read=3, input_tokens_cache_write=None
    )
    return SimpleNamespace(completion=text, stop_reason=stop, usage=usage, error=None)


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The stand-in: `answer` replies to the messages, `made` has how models were made."""
    state = SimpleNamespace(answer=lambda _: output(), made=[])

    class Api:
        def should_retry(self, error: Exception) -> bool:
            return getattr(error, "status_code", 0) in (429, 500)

        async def aclose(self) -> None:
            return

    class Model:
        api = Api()

        async def generate(self, messages: list[Any]) -> Any:
            await asyncio.sleep(0)
            return state.answer(messages)

    def get_model(name: str, **options: Any) -> Model:
        if "/" not in name:
            raise ValueError(f"Model name {name!r} should be in the format of API/MODEL.")
        state.made.append((name, vars(options.pop("config")), options))
        return Model()

    module: Any = ModuleType("inspect_ai.model")
    module.get_model, module.GenerateConfig = get_model, SimpleNamespace
    module.ChatMessageUser = module.ChatMessageSystem = SimpleNamespace
    monkeypatch.setitem(sys.modules, "inspect_ai", ModuleType("inspect_ai"))
    monkeypatch.setitem(sys.modules, "inspect_ai.model", module)
    return state


def grader(**options: Any) -> InspectGrader:
    given = {"model": "anthropic/some", **options}
    return InspectGrader(read_options(InspectOptions, given, "the grader inspect"))


class TestContract(GraderContract):
    @pytest.fixture
    def make(self, model: Any) -> Make:
        model.answer = lambda messages: output(str(len(messages[-1].content) % 6))
        return lambda: grader(concurrency=8)


def test_options_reach_the_model_and_the_identity(model: Any) -> None:
    grading = make_grading(
        "inspect", {"model": "google/some", "top_p": 0.9, "base_url": "http://x"}
    )
    name, config, options = model.made[0]
    assert (name, config) == ("google/some", {"max_retries": 0, "top_p": 0.9, "max_tokens": 512})
    assert options == {"base_url": "http://x", "memoize": False}
    assert {"name": "inspect", "model": "google/some", "top_p": 0.9, "max_tokens": 512}.items() <= (
        grading.identity.settings.items()
    )


def test_a_reply_has_its_usage_and_how_it_ended(model: Any) -> None:
    ends: dict[str, Any] = {"stop": (False, {}), "max_tokens": (True, {})}
    ends["content_filter"] = (False, {"refusal": True, "reason": "content_filter"})
    for stop, expected in ends.items():
        model.answer = lambda _, stop=stop: output("so", stop)
        reply = answers(grader(), make_asks(1, 1))[0]
        assert (reply.truncated, reply.detail) == expected
        assert (reply.text, reply.usage) == ("so", Usage(13, 3, 2))


def test_transient_errors_are_retried_and_counted(model: Any) -> None:
    tries: list[str] = []

    def answer(messages: list[Any]) -> Any:
        tries.append(messages[-1].content)
        if tries.count(messages[-1].content) < 3:
            raise Refused(500, "busy")
        return output()

    model.answer = answer
    priced = grader(retries=2, price_read=1, price_written=1, concurrency=4)
    assert [reply.fault for reply in answers(priced, make_asks(1, 2)).values()] == ["", ""]
    assert priced.billed[0] == 6
    assert priced.billed[1] is not None
    tries.clear()
    limited = grader(retries=2, max_requests=2)
    (reply,) = answers(limited, make_asks(1, 1)).values()
    assert reply.fault == "Refused: busy; not retried: max_requests: 2 requests"
    tries.clear()
    (reply,) = answers(grader(retries=1), make_asks(1, 1)).values()
    assert reply.fault == "Refused: busy"


@pytest.mark.parametrize(("status", "hint"), [(401, "ANTHROPIC_API_KEY"), (404, "name of the mod")])
def test_an_error_that_every_request_meets_stops_the_run_without_the_key(
    model: Any, status: int, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(_: list[Any]) -> Any:
        raise Refused(status, "sk-secret is wrong")

    model.answer = answer
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    with pytest.raises(InputError, match=r"\*\*\* is wrong") as caught:
        list(grader().answer(make_asks(3)))
    assert hint in caught.value.hint
    assert "sk-secret" not in str(caught.value)


def test_a_model_or_package_that_is_missing(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="cannot use the model 'nonsense': ValueError"):
        grader(model="nonsense")
    monkeypatch.setitem(sys.modules, "inspect_ai.model", None)
    with pytest.raises(InputError, match="needs the package inspect_ai"):
        grader()
