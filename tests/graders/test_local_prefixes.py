"""What prompts share at their start is read once, and no reply is another for that."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.contract import item_text, passage_text
from support.tiny_models import LABELS, Build, save

from exampp.graders.base import Reply, Request
from exampp.graders.local import LocalGrader, load_local_grader
from exampp.graders.local.checkpoint import require
from exampp.graders.local.tensors import families, shared

pytest_plugins = ("support.tiny_models",)
pytestmark = pytest.mark.usefixtures("loaded_once")

INSTRUCTIONS = "Rate from 0 to 5 what is said in the passage. " * 6
ORDERS = {
    "passage first": "{instructions}Context: {passage}\nQuestion: {item}",
    "question first": "{instructions}Question: {item}\nContext: {passage}",
    "without instructions": "{passage}\nQuestion: {item}",
}
"""The first shares instructions and passage, the second the instructions, the third the passage."""
LEFT = {"passage first": 0.5, "question first": 0.9, "without instructions": 0.8}
"""What is read at most of what prompts alone would have read."""


def asks_of(order: str) -> list[Request]:
    """Four questions on each of three passages, and one on a fourth."""
    cells = [(item, passage) for passage in range(3) for item in range(4)] + [(1, 7)]
    asks = []
    for key, (number, of) in enumerate(cells):
        item, passage = item_text(number) * (number + 1), passage_text(of) * (8 + of)
        user = ORDERS[order].format(instructions=INSTRUCTIONS, passage=passage, item=item)
        asks.append(Request(key, item, passage, user))
    return asks


def build_gpt2(folder: Path, llama: Path) -> None:
    """A model that knows places by learnt vectors, with the tokenizer of another."""
    torch, transformers = require()
    tokenizer = transformers.AutoTokenizer.from_pretrained(llama)
    torch.manual_seed(5)
    config = transformers.GPT2Config(
        vocab_size=len(tokenizer),
        n_embd=32,
        n_layer=2,
        n_head=4,
        n_positions=1024,
        initializer_range=0.3,
        bos_token_id=None,
        eos_token_id=2,
    )
    save(folder, transformers.GPT2LMHeadModel(config), tokenizer)


@pytest.fixture(scope="module", params=["llama", "gpt2"])
def folder(request: pytest.FixtureRequest, built: Build, llama: Path) -> Path:
    if request.param == "llama":
        return llama
    return built("tiny-gpt2", lambda made: build_gpt2(made, llama))


def replies(
    grader: LocalGrader, asks: Sequence[Request], monkeypatch: pytest.MonkeyPatch, *, shares: bool
) -> tuple[dict[int, Reply], int]:
    """The replies by key, and how many tokens the model has read for them, padding included."""
    from exampp.graders.local.models import Causal

    model = grader.model
    assert isinstance(model, Causal)
    assert model._shares
    model._shares = shares
    read: list[int] = []
    forward = model.model.forward

    @functools.wraps(forward)
    def counted(*arguments: Any, **options: Any) -> Any:
        read.append(options["input_ids"].numel())
        return forward(*arguments, **options)

    monkeypatch.setattr(model.model, "forward", counted)
    found = {ask.key: reply for ask, reply in grader.answer(asks)}
    assert len(found) == len(asks)
    return found, sum(read)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("decode", ["score", "generate"])
def test_replies_are_those_of_prompts_read_alone(
    folder: Path, decode: str, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def grader(**options: Any) -> LocalGrader:
        labels = LABELS if decode == "score" else ()
        return load_local_grader(
            str(folder), labels=labels, decode=decode, max_new_tokens=6, **options
        )

    asks = asks_of(order)
    apart, most = replies(grader(batch_tokens=1), asks, monkeypatch, shares=False)
    for budget in (8192, 2000):
        found, read = replies(grader(batch_tokens=budget), asks, monkeypatch, shares=True)
        assert read < most * LEFT[order]
        for key, reply in apart.items():
            assert found[key].text == reply.text
            assert found[key].usage == reply.usage
            if decode == "score":
                assert reply.scores is not None
                assert found[key].scores == pytest.approx(reply.scores, abs=1e-5)
                assert found[key].detail["outside"] == pytest.approx(
                    reply.detail["outside"], abs=1e-5
                )


def test_windows_of_one_run_share_the_instructions(
    llama: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asks = asks_of("passage first")
    windows, whole = (
        replies(
            load_local_grader(str(llama), labels=LABELS, look_ahead=n),
            asks,
            monkeypatch,
            shares=True,
        )
        for n in (8, 100)
    )
    assert {key: reply.text for key, reply in windows[0].items()} == {
        key: reply.text for key, reply in whole[0].items()
    }
    assert windows[1] < whole[1] * 1.2


def test_models_that_look_back_through_a_window_share_nothing(transformers: Any) -> None:
    from exampp.graders.local.models import _shares

    forward = inspect.signature(transformers.MistralForCausalLM.forward).parameters
    for window, shares in ((16, False), (None, True)):
        config = transformers.MistralConfig(sliding_window=window, num_hidden_layers=2)
        config._attn_implementation = "sdpa"
        assert _shares(SimpleNamespace(config=config), forward) == shares
    config._attn_implementation = "flash_attention_2"
    assert not _shares(SimpleNamespace(config=config), forward)
    without = {name: one for name, one in forward.items() if name != "position_ids"}
    assert not _shares(SimpleNamespace(config=config), without)


def test_families_by_hand() -> None:
    rows = [(1, 2, 3, 4), (1, 2, 5), (1, 2, 3, 9), (1, 2, 5, 6), (7,)]
    assert shared([rows[0], rows[2]]) == 3
    assert shared(rows[:4]) == 2
    assert shared(rows) == 0
    assert shared([(1, 2), (1, 2, 3)]) == 2
    assert families(rows, 2, 1) == [[(1, 2, 3, 4), (1, 2, 3, 9)], [(1, 2, 5), (1, 2, 5, 6)], [(7,)]]
    assert families(rows, 0, 2) == [[(1, 2, 3, 4), (1, 2, 3, 9), (1, 2, 5), (1, 2, 5, 6)], [(7,)]]
