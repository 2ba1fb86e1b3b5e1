"""Fine-tuning on SQuAD 2.0 data: the data's errors, and a few steps with tiny models."""

from __future__ import annotations

import gc
import json
import logging
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
    extractive_features,
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
        question = {"id": str(number), "question": f"What is {'said' if number % 3 else 'who'}"}
        if number % 3:
            question |= {"answers": answers, "is_impossible": False}  # type: ignore[dict-item]
        else:
            question |= {"answers": [], "is_impossible": True}  # type: ignore[dict-item]
        paragraphs.append({"context": context, "qas": [question]})
    return {"version": "v2.0", "data": [{"title": "t", "paragraphs": paragraphs}]}


@pytest.fixture(autouse=True)
def _imported_stays() -> None:
    """Trainings end with a collection of garbage, which need not look at torch each time."""
    gc.freeze()


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
        (change(f"{Q}.answers.0.answer_start", 5), "does not read 'lake' from character 5"),
        (change(f"{Q}.answers.0.text", ""), "does not read ''"),
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


def test_extractive_features(bert: Path) -> None:
    texts = load_local_grader(str(bert), device="cpu").model.texts
    passage = "lake " * 70 + "stone tower"
    examples = [
        Example("What is it", "the stone tower is", "stone tower", 4),
        Example("What is it", "the lake"),
        Example("What is it", passage, "stone tower", 350),
    ]
    features = list(extractive_features(texts, examples, 64))

    def words(feature: Any) -> str:
        start, end = feature["start_positions"], feature["end_positions"]
        text: str = texts.tokenizer.decode(feature["input_ids"][start : end + 1])
        return text

    assert [words(f) for f in features] == ["stone tower", "[CLS]", "[CLS]", "stone tower"]
    assert all(len(f["input_ids"]) <= 64 for f in features)


def test_refused(
    t5: Path, llama: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("accelerate")
    with pytest.raises(InputError, match="a causal model cannot be trained"):
        finetune(str(llama), data, tmp_path / "out", device="cpu")
    with pytest.raises(InputError, match="trained with a prompt"):
        finetune(str(t5), data, tmp_path / "out", device="cpu")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("mine")
    with pytest.raises(InputError, match="the folder is not empty"):
        finetune(str(t5), data, tmp_path / "full", prompt=ask, device="cpu")
    assert not (tmp_path / "out").exists()
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(InputError, match="needs the package accelerate") as error:
        finetune(str(t5), data, tmp_path / "out", prompt=ask)
    assert install_command("hf") in error.value.hint


def test_a_new_head_is_no_reason_for_a_report(
    bert: Path, data: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What transformers reports of weights is exampp's to say: nothing of a head to be trained."""
    pytest.importorskip("accelerate")
    transformers = pytest.importorskip("transformers")
    bare = tmp_path / "bare"
    transformers.AutoModel.from_pretrained(bert).save_pretrained(bare)
    transformers.AutoTokenizer.from_pretrained(bert).save_pretrained(bare)
    before = transformers.utils.logging.get_verbosity()
    logger = logging.getLogger("transformers")
    caplog.clear()
    logger.addHandler(caplog.handler)
    try:
        finetune(str(bare), data, tmp_path / "out", task="extractive", max_steps=1, device="cpu")
    finally:
        logger.removeHandler(caplog.handler)
    assert "REPORT" not in caplog.text
    assert transformers.utils.logging.get_verbosity() == before


@pytest.mark.parametrize("kind", ["t5", "bert", "t5_reader", "t5 as a reader"])
def test_loss_falls_and_the_result_grades(
    kind: str, data: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    pytest.importorskip("accelerate")
    base, out = str(request.getfixturevalue(kind.split()[0])), tmp_path / "out"
    told: list[tuple[int, int, float]] = []
    options: Any = {"prompt": ask if kind == "t5" else None, "device": "cpu"}
    options["report"] = lambda *news: told.append(news)
    # what T5 learned so far is to write: that it shall mark has to be said
    options["task"] = "extractive" if kind == "t5 as a reader" else None
    steps = finetune(
        base, data, out, epochs=20, batch_size=8, learning_rate=5e-3, max_steps=50, **options
    )
    assert steps == 50
    assert [one[:2] for one in told] == [(step, 50) for step in (10, 20, 30, 40, 50)]
    losses = [loss for *_, loss in told]
    assert losses[-1] < losses[0] / 2, losses
    grader = load_local_grader(str(out), device="cpu")
    context = "the lake is long 1"
    ((_, reply),) = grader.answer(
        [Request(0, "What is said", context, ask("What is said", context))]
    )
    # a tiny T5 learns in 50 steps how to reply, not what
    assert reply.text in {*WORDS[:9], UNANSWERABLE} if kind == "t5" else reply.text == "lake"
    assert not reply.truncated
