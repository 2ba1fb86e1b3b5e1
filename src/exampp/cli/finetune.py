"""`exampp finetune`: train a question answering model on SQuAD2 data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from exampp.cli.declare import argument, option
from exampp.cli.output import remark, say


def finetune(
    base_model: Annotated[
        str, argument(metavar="MODEL", help="A folder or a model hub name to start from.")
    ],
    squad: Annotated[
        Path, argument(metavar="SQUAD", help="Training data in the format of SQuAD 2.0.")
    ],
    out: Annotated[Path, argument(metavar="FOLDER", help="Where the model goes.")],
    task: Annotated[
        str | None, option(help="seq2seq or extractive. [default: what the model is]")
    ] = None,
    prompt: Annotated[
        str, option(help="What a seq2seq model learns to reply to.")
    ] = "question-answering",
    revision: Annotated[str | None, option(help="The model's revision.")] = None,
    epochs: Annotated[float, option(help="Passes over the data.")] = 2.0,
    batch_size: Annotated[int, option(min=1, help="Examples in a step.")] = 16,
    learning_rate: Annotated[
        float | None, option(help="At the start. [default: 1e-4 seq2seq, 3e-5 extractive]")
    ] = None,
    max_steps: Annotated[int | None, option(help="Steps at most.")] = None,
    save_steps: Annotated[int, option(min=1, help="Steps between checkpoints.")] = 500,
    seed: Annotated[int, option(help="Of the order of the examples.")] = 0,
    device: Annotated[str | None, option(help="cpu, cuda, cuda:1, mps.")] = None,
    resume: Annotated[bool, option(help="Go on from the last checkpoint, or start afresh.")] = True,
) -> None:
    """Train a model to extract answers, or say that there is none (the papers' SQuAD2 variation).

    The folder then serves as `exampp grade --grader hf --model FOLDER --prompt question-answering`.
    Training that was cut off goes on from its last checkpoint when called again.

    Example: exampp finetune google/flan-t5-large train-v2.0.json my-reader --task seq2seq
    """
    # torch and transformers load here, and only here
    from exampp.llm import hf
    from exampp.prompts import fill, load

    chosen = load(prompt)

    def asked(question: str, context: str) -> str:
        return fill(chosen, {"question": question, "context": context}).user

    trained = hf.finetune(
        base_model,
        squad,
        out,
        prompt=asked,
        task=task,
        revision=revision,
        epochs=epochs,
        batch_size=batch_size,
        learning_rate=learning_rate,
        max_steps=max_steps,
        save_steps=save_steps,
        resume=resume,
        seed=seed,
        device=device,
        report=lambda step, steps, loss: remark(f"step {step} of {steps}, loss {loss:.4f}"),
    )
    now = trained.steps - trained.started
    say(f"{trained.folder}: {trained.steps} steps, {now} of them now")
