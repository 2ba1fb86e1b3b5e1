"""Compare scoring with the papers' way of grading on models of the shape of FLAN-T5.

    python benchmarks/hf_score_vs_generate.py --model-size base --cells 30

The naive way: transformers' `generate` with 5 beams, prompts in batches of 10 in the order of the
file, and at most 2 new tokens (a rating and its end), the least it can do. FLAN-T5 writes `0` as
two tokens: `--max-new-tokens 3` compares with that. Against it: the
`hf` backend's scoring, in float32 and in another dtype. Variants alternate; CPU time of the process
is measured on a CPU, wall time on a card. The model has random weights: speed and agreement of the
two ways are measured here, not the quality of ratings.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from hf_flan_shapes import (
    LABELS,
    PROMPT,
    SHAPES,
    make_asks,
    make_model,
    make_tokenizer,
    read_texts,
    set_ratings,
)

from exampp.graders.base import Request
from exampp.graders.local import LocalGrader, load_local_grader

BATCH = 10
BEAM_SEARCH: dict[str, Any] = {"num_beams": 5, "early_stopping": True}
Ratings = list[str]


def naive(
    folder: str, device: str, max_new_tokens: int, dtype: str = "float32"
) -> Callable[[Sequence[Request]], Ratings]:
    """The papers' way, as a plain script would do it."""
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(folder)
    auto: Any = transformers.AutoModelForSeq2SeqLM
    model = auto.from_pretrained(folder, dtype=getattr(torch, dtype)).to(device).eval()

    def rate(asks: Sequence[Request]) -> Ratings:
        ratings: Ratings = []
        for start in range(0, len(asks), BATCH):
            texts = [ask.user for ask in asks[start : start + BATCH]]
            batch = tokenizer(texts, padding=True, return_tensors="pt").to(device)
            with torch.inference_mode():
                out = model.generate(**batch, **BEAM_SEARCH, max_new_tokens=max_new_tokens)
            ratings += tokenizer.batch_decode(out, skip_special_tokens=True)
        return [rating.strip() for rating in ratings]

    return rate


def ours(grader: LocalGrader, outside: list[float]) -> Callable[[Sequence[Request]], Ratings]:
    """The backend; collects the probability mass outside the labels."""

    def rate(asks: Sequence[Request]) -> Ratings:
        replies = {ask.key: reply for ask, reply in grader.answer(asks)}
        outside[:] = [reply.detail["outside"] for reply in replies.values()]
        return [replies[ask.key].text for ask in asks]

    return rate


def seconds(device: str) -> float:
    """CPU seconds of this process; wall seconds after all work on a card is done."""
    if not device.startswith("cuda"):
        return time.process_time()
    torch.cuda.synchronize()
    return time.perf_counter()


def main() -> None:
    """Build, run the variants in turn, print one line for each."""
    parser = argparse.ArgumentParser(description="Compare scoring with beam search.")
    parser.add_argument("--model-size", choices=SHAPES, default="base")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="bfloat16", help="of the third variant")
    parser.add_argument("--cells", type=int, default=30)
    parser.add_argument("--per-passage", type=int, default=1, help="questions on each passage")
    parser.add_argument("--max-new-tokens", type=int, choices=(2, 3), default=2, help="if naive")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    questions, passages = read_texts()
    texts = [PROMPT.user, *questions, *passages, " ".join(LABELS)]
    tokenizer = make_tokenizer(texts, split_zero=options.max_new_tokens > 2)
    asks = make_asks(tokenizer, options.cells, options.per_passage)
    lengths = [len(tokenizer(ask.user)["input_ids"]) for ask in asks]
    print(f"{len(asks)} prompts of {sum(lengths) / len(lengths):.0f} tokens, {options.model_size}")
    outside: dict[str, list[float]] = {"float32": [], options.dtype: []}
    with tempfile.TemporaryDirectory() as folder:
        model = make_model(options.model_size)
        set_ratings(model, tokenizer, asks)
        model.save_pretrained(Path(folder))
        tokenizer.save_pretrained(Path(folder))
        del model
        variants = {"5 beams": naive(folder, options.device, options.max_new_tokens)}
        for dtype, mass in outside.items():
            grader = load_local_grader(
                folder, labels=LABELS, device=options.device, dtype=dtype, decode="score"
            )
            variants[f"score {dtype}"] = ours(grader, mass)
        report(variants, asks, options.device, options.rounds)
    for dtype, mass in outside.items():
        print(f"outside the labels, {dtype}: mean {sum(mass) / len(mass):.4f}, {max(mass):.4f} max")


def report(
    variants: dict[str, Callable[[Sequence[Request]], Ratings]],
    asks: Sequence[Request],
    device: str,
    rounds: int,
) -> None:
    """Run all variants `rounds` times, alternating, and print what they took."""
    spent: dict[str, list[float]] = {name: [] for name in variants}
    ratings: dict[str, Ratings] = {}
    for rate in variants.values():
        rate(asks[:2])
    for _ in range(rounds):
        for name, rate in variants.items():
            start = seconds(device)
            ratings[name] = rate(asks)
            spent[name].append(seconds(device) - start)
    first = next(iter(variants))
    counts = {label: ratings[first].count(label) for label in sorted(set(ratings[first]))}
    print(f"ratings of {first}: {counts}")
    for name, times in spent.items():
        ratios = sorted(a / b for a, b in zip(spent[first], times, strict=True))
        middle = statistics.median(ratios)
        same = sum(a == b for a, b in zip(ratings[first], ratings[name], strict=True))
        print(
            f"{name:16} {len(asks) / min(times):8.2f} cells/s  ratio {middle:5.2f} "
            f"({ratios[0]:.2f}-{ratios[-1]:.2f})  same rating {same}/{len(asks)}"
        )


if __name__ == "__main__":
    main()
