"""Fine-tuning on SQuAD 2.0 data: the data's errors, and a few steps with tiny models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.tiny_models import WORDS

from exampp.errors import InputError
from exampp.graders.base import Request
from exampp.graders.local import finetune, load_local_grader
from exampp.graders.local.finetune import (
    UNANSWERABLE,
    Example,
    read_squad,
    seq2seq_features,
)
from exampp.installed import install_command
from exampp.prompts import fill
from exampp.prompts import load_grading_prompt as load_prompt

pytest_plugins = ("support.tiny_models",)

PROMPT = load_prompt("question-answering")


def ask(question: str, context: str) -> str:
    return fill(PROMPT, {"question": question, "context": context}).user


def squad(questions: int = 24) -> dict[str, Any]:
    """Questions about the second word of a context; every third has no answer."""
    paragraphs = []
    for number in range(questions):
        word = WORDS[number % 9]
        context = f"the {word} is long {number}"
        answers = [{"text": word, "answer_start": 4}]
        question: dict[str, Any] = {
            "id": str(number),
            "question": f"What is {'said' if number % 3 else 'who'}",
        }
        if number % 3:
            question |= {"answers": answers, "is_impossible": False}
        else:
            question |= {"answers": [], "is_impossible": True}
        paragraphs.append({"context": context, "qas": [question]})
    return {"version": "v2.0", "data": [{"title": "t", "paragraphs": paragraphs}]}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    file = tmp_path / "squad.json"
    file.write_text(json.dumps(squad()))
    return file


def test_read(data: Path) -> None:
    examples = read_squad(data)
    assert examples[0] == Example("What is who", "the river is long 0")
    assert examples[1] == Example("What is said", "the lake is long 1", "lake", 4)
    assert len(examples) == 24
    with pytest.raises(InputError, match="cannot be read"):
        read_squad(data.with_name("none.json"))


def change(place: str, value: Any) -> str:
    """The data with another value at a place such as `data.0.paragraphs`."""
    whole: Any = squad(3)
    *path, last = [int(key) if key.isdigit() else key for key in place.split(".")]
    part = whole
    for key in path:
        part = part[key]
    part[last] = value
    return json.dumps(whole)


Q = "data.0.paragraphs.1.qas.0"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{\n{", r"squad\.json:2: not valid JSON"),
        ("[]", "not SQuAD 2.0: Expected `object`"),
        (change("data", {}), "data: not SQuAD 2.0: Expected `array`"),
        (
            change("data.0.paragraphs.1.context", 1),
            r"paragraphs\[1\]\.context: .* `str`, got `int`",
        ),
        (change(f"{Q}.question", None), r"qas\[0\]\.question: .* Expected `str`, got `null`"),
        (change(f"{Q}.is_impossible", "no"), "is_impossible: .* Expected `bool`"),
        (
            change(f"{Q}.answers.0.answer_start", True),
            "answer_start: .* got `bool`",
        ),
        (change(f"{Q}.answers.0.answer_start", 5), "does not have 'lake' at character 5"),
        (change(f"{Q}.answers.0.text", ""), "does not have ''"),
        ('{"data": []}', "the file has no questions"),
    ],
)
def test_malformed_data(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "squad.json"
    file.write_text(text)
    with pytest.raises(InputError, match=message):
        read_squad(file)


def test_seq2seq_features(t5: Path) -> None:
    grader = load_local_grader(str(t5), device="cpu")
    texts = grader.model.texts
    long = "the river and the king " * 200
    examples = [
        Example("What is it", "the lake is long", "lake", 4),
        Example("What is it", "the lake is long"),
        Example("What is it", long),
        Example("What is it", long, "river", 4),
        Example("What is it", long + "lake", "lake", len(long)),
    ]
    features = list(seq2seq_features(texts, examples, ask, 512))
    assert len(features) == 4, "the answer of the last example is cut away"
    decoded = [texts.tokenizer.decode(f["labels"], skip_special_tokens=True) for f in features]
    assert decoded == ["lake", UNANSWERABLE, UNANSWERABLE, "river"]
    assert features[0]["labels"][-1] == texts.tokenizer.eos_token_id
    assert (
        tuple(features[0]["input_ids"])
        == texts.ids([(ask("What is it", examples[0].context), "")])[0]
    )
    assert [len(f["input_ids"]) for f in features[2:]] == [512, 512]


def test_refused(
    t5: Path, llama: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("accelerate")
    with pytest.raises(InputError, match="only sequence-to-sequence models can be trained"):
        finetune(str(llama), data, tmp_path / "out", prompt=ask, device="cpu")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("mine")
    with pytest.raises(InputError, match="the folder is not empty"):
        finetune(str(t5), data, tmp_path / "full", prompt=ask, device="cpu")
    assert not (tmp_path / "out").exists()
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(InputError, match="needs the package accelerate") as error:
        finetune(str(t5), data, tmp_path / "out", prompt=ask)
    assert install_command("hf") in error.value.hint


def test_loss_falls_and_the_result_grades(t5: Path, data: Path, tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    told: list[tuple[int, int, float]] = []
    options: Any = {"epochs": 20, "batch_size": 8, "learning_rate": 5e-3, "max_steps": 50}
    out = tmp_path / "out"
    steps = finetune(
        str(t5),
        data,
        out,
        prompt=ask,
        device="cpu",
        report=lambda *news: told.append(news),
        **options,
    )
    assert steps == 50
    assert [one[:2] for one in told] == [(step, 50) for step in (10, 20, 30, 40, 50)]
    losses = [loss for *_, loss in told]
    assert losses[-1] < losses[0] / 2, losses
    grader = load_local_grader(str(out), device="cpu")
    context = "the lake is long 1"
    request = Request(0, "What is said", context, ask("What is said", context))
    ((_, reply),) = grader.answer([request])
    # a tiny T5 learns in 50 steps how to reply, not what
    assert reply.text in {*WORDS[:9], UNANSWERABLE}
    assert not reply.truncated
