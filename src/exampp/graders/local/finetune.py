"""Fine-tuning on SQuAD 2.0: the papers' variant, in which a model learns to reply "unanswerable".

The result is an ordinary model folder. Source: EXAM++ and FLAN-T5-EXAM (fine-tuned question
answering).
"""

from __future__ import annotations

import importlib.util
import json
import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from exampp.errors import InputError
from exampp.graders.local.checkpoint import how_to_install, load_model
from exampp.graders.local.texts import PlainTexts, known_limit
from exampp.sanitize import check_integer


class _Answer(msgspec.Struct):
    text: str
    answer_start: int


class _Question(msgspec.Struct):
    question: str
    is_impossible: bool = False
    answers: list[_Answer] | None = None


class _Paragraph(msgspec.Struct):
    context: str
    qas: list[_Question]


class _Article(msgspec.Struct):
    paragraphs: list[_Paragraph]


class _Squad(msgspec.Struct):
    """A file of SQuAD 2.0. Source: Rajpurkar, Jia and Liang, ACL 2018."""

    data: list[_Article]


@dataclass(frozen=True, slots=True)
class Example:
    """A question about a context. `answer` starts at character `start`; None if unanswerable."""

    question: str
    context: str
    answer: str | None = None
    start: int = 0


def read_squad(file: Path) -> list[Example]:
    """Read all questions of a file, each with its first answer.

    A question is unanswerable if `is_impossible` is true or it has no answers.

    Raises:
        InputError: The file cannot be read, is not JSON, has another structure or no questions, or
            an answer is not in its context at `answer_start`.
    """
    try:
        squad = msgspec.convert(json.loads(file.read_text("utf-8")), _Squad)
    except OSError as error:
        raise InputError(f"the file cannot be read: {error.strerror}", file=file) from None
    except UnicodeDecodeError:
        raise InputError("the file is not UTF-8", file=file, hint="Save it as UTF-8") from None
    except json.JSONDecodeError as error:
        raise InputError(f"not valid JSON: {error.msg}", file=file, line=error.lineno) from None
    except msgspec.ValidationError as error:
        what, _, place = str(error).partition(" - at ")
        raise InputError(
            f"not SQuAD 2.0: {what}",
            file=file,
            field=place.strip("`").removeprefix("$."),
            hint="See the format of SQuAD 2.0, version v2.0",
        ) from None
    examples = [
        _example(question, paragraph.context, file)
        for article in squad.data
        for paragraph in article.paragraphs
        for question in paragraph.qas
    ]
    if not examples:
        raise InputError("the file has no questions", file=file)
    return examples


def _example(question: _Question, context: str, file: Path) -> Example:
    if question.is_impossible or not question.answers:
        return Example(question.question, context)
    text, start = question.answers[0].text, question.answers[0].answer_start
    if not text or start < 0 or context[start : start + len(text)] != text:
        raise InputError(
            f"the context of the question {question.question!r} does not have {text!r} at "
            f"character {start}",
            file=file,
            hint="'answer_start' counts characters of the context from 0",
        )
    return Example(question.question, context, text, start)


UNANSWERABLE = "unanswerable"
"""Reply that a seq2seq model learns for a question that the context does not answer."""

Feature = Mapping[str, Any]
Prompt = Callable[[str, str], str]
"""(question, context) to the text of a prompt."""


def seq2seq_features(
    texts: PlainTexts, examples: Iterable[Example], prompt: Prompt, limit: int
) -> Iterator[Feature]:
    """Tokenize prompts with answers; a context is truncated if the prompt is too long.

    An example is dropped if truncation removes its answer or the whole context.
    """
    for example in examples:
        question, context = texts.safe(example.question), texts.safe(example.context)
        end = _room(texts, question, context, prompt, limit)
        needed = example.start + len(example.answer) if example.answer is not None else 1
        if end < needed:
            continue
        ids = texts.ids([(prompt(question, context[:end]), "")])[0]
        target = UNANSWERABLE if example.answer is None else texts.safe(example.answer)
        labels = texts.tokenizer(target)["input_ids"]
        yield {"input_ids": list(ids), "attention_mask": [1] * len(ids), "labels": labels}


def _room(texts: PlainTexts, question: str, context: str, prompt: Prompt, limit: int) -> int:
    """Count the characters of the context that fit into a prompt of `limit` tokens."""

    def excess(end: int) -> int:
        return len(texts.ids([(prompt(question, context[:end]), "")])[0]) - limit

    if excess(len(context)) <= 0:
        return len(context)
    ends = [end for _, end in texts.offsets(context)]
    tokens = bisect_right(ends[:-1], 0, key=excess)
    return ends[tokens - 1] if tokens else 0


Report = Callable[[int, int, float], None]
"""Called with (step, total steps, loss)."""
LEARNING_RATE = 1e-4


def finetune(
    base_model: str,
    squad_json: str | Path,
    out: str | Path,
    *,
    prompt: Prompt,
    revision: str | None = None,
    epochs: float = 2.0,
    batch_size: int = 16,
    learning_rate: float = LEARNING_RATE,
    max_steps: int | None = None,
    seed: int = 0,
    device: str | None = None,
    report: Report | None = None,
) -> int:
    """Train a seq2seq model on SQuAD 2.0, save it to `out`, and return the number of steps.

    It learns to reply to `prompt` (question and context to text) with the answer or `unanswerable`.

    Args:
        base_model: Folder or hub name of a seq2seq model.
        squad_json: File of SQuAD 2.0.
        out: New or empty folder.
        prompt: Function from question and context to the prompt.
        revision: Commit, tag or branch on the hub.
        epochs: Passes over the data.
        batch_size: Examples per step.
        learning_rate: Initial rate of AdamW, decreasing to 0.
        max_steps: Ends the training before its `epochs`.
        seed: Seed of shuffling and dropout.
        device: Device; by default the best available.
        report: Called regularly with progress.

    Raises:
        InputError: The data are malformed, `out` is not empty, the model cannot be loaded or is not
            seq2seq, or a package is missing.
    """
    check_integer("batch_size", batch_size, 1)
    check_integer("the seed", seed, 0)
    if max_steps is not None:
        check_integer("max_steps", max_steps, 1)
    for name, value in (("epochs", epochs), ("learning_rate", learning_rate)):
        if not 0 < value < math.inf:
            raise InputError(f"{name} must be above 0, not {value}")
    examples = read_squad(Path(squad_json))
    if importlib.util.find_spec("accelerate") is None:
        raise InputError("training needs the package accelerate", hint=how_to_install())
    base = load_model(base_model, revision=revision, device=device, dtype="float32")
    if base.task != "seq2seq":
        raise InputError(
            "only sequence-to-sequence models can be trained", hint="Use a model such as FLAN-T5"
        )
    limit = known_limit(base.tokenizer, base.model.config) or 512
    features = list(seq2seq_features(PlainTexts(base.tokenizer), examples, prompt, limit))
    if not features:
        raise InputError("no question fits into the model with its context")
    folder = Path(out)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError("the folder is not empty", file=folder, hint="Use a new folder")
    import torch
    from transformers import (
        DataCollatorForSeq2Seq,
        PrinterCallback,
        Trainer,
        TrainingArguments,
        set_seed,
    )

    on_card = base.device.startswith("cuda")
    arguments = TrainingArguments(
        output_dir=str(folder),
        num_train_epochs=epochs,
        max_steps=max_steps or -1,
        per_device_train_batch_size=batch_size,
        learning_rate=learning_rate,
        seed=seed,
        save_strategy="no",
        logging_steps=10,
        bf16=on_card and torch.cuda.is_bf16_supported(including_emulation=False),
        use_cpu=base.device == "cpu",
        dataloader_pin_memory=on_card,
        report_to="none",
        disable_tqdm=True,
        remove_unused_columns=False,
    )
    set_seed(seed)
    trainer = Trainer(
        model=base.model,
        args=arguments,
        train_dataset=features,
        data_collator=DataCollatorForSeq2Seq(base.tokenizer, model=base.model),
        callbacks=[_reporting(report)] if report else [],
    )
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    base.model.save_pretrained(folder)
    base.tokenizer.save_pretrained(folder)
    return int(trainer.state.global_step)


def _reporting(report: Report) -> Any:
    from transformers import TrainerCallback

    class Reporting(TrainerCallback):
        def on_log(self, args: Any, state: Any, control: Any, **news: Any) -> None:  # noqa: ARG002
            if "loss" in news["logs"]:
                report(state.global_step, state.max_steps, float(news["logs"]["loss"]))

    return Reporting()
