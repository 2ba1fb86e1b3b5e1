"""Measure scoring with a model of the shape of FLAN-T5-large on a card.

    python benchmarks/hf_gpu.py
    python benchmarks/hf_gpu.py --device cpu --model-size tiny --cells 50 --compared 20

For float32 and bfloat16: graded cells and tokens a second, tokenizing included, and which share of
the card's own matrix multiplication rate the encoder's useful work makes (padding and decoder are
not counted as work). Beside it, on fewer cells, the papers' way (`generate` with 5 beams) and the
encoder of transformers: how many times longer each takes, and how many ratings are the same. At
the end the CPU time for a cell, and how much of it is tokenizing. The weights are random.
"""

from __future__ import annotations

import argparse
import gc
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from hf_flan_shapes import (
    LABELS,
    PROMPT,
    SHAPES,
    encoder_flops,
    make_asks,
    make_model,
    make_tokenizer,
    read_texts,
    set_ratings,
)
from hf_score_vs_generate import Ratings, naive, ours, seconds

from exampp.cli.main import GARBAGE
from exampp.graders.base import Request
from exampp.graders.local import LocalGrader, load_local_grader, models

DISTINCT = 2000
DTYPES = ("float32", "bfloat16")


@torch.inference_mode()
def matmul_rate(device: str, dtype: torch.dtype) -> float:
    """The best rate, in operations per second, of multiplying two square matrices."""
    cuda = device.startswith("cuda")
    side, rounds = (8192, 8) if cuda else (2048, 6)  # the first warms up
    left, right = (torch.randn(side, side, device=device).to(dtype) for _ in range(2))
    best = float("inf")
    for _ in range(rounds):
        start = seconds(device)
        for _ in range(4):
            right @ left
        best = min(best, (seconds(device) - start) / 4)
    return 2 * side**3 / best


def cells(asks: Sequence[Request], count: int) -> Iterator[Request]:
    """As many asks as wanted, no two with the same prompt."""
    for key in range(count):
        ask = asks[key % len(asks)]
        yield replace(ask, key=key, user=f"{ask.user} {key // len(asks)}")


def rate(grader: LocalGrader, asks: Sequence[Request], options: argparse.Namespace) -> None:
    """Print how many cells are graded in a second, and what the process does for each."""
    for _ in grader.answer(cells(asks, max(1, options.cells // 20))):
        pass
    start, began = seconds(options.device), time.process_time()
    replies = [reply for _, reply in grader.answer(cells(asks, options.cells))]
    spent, process = seconds(options.device) - start, time.process_time() - began
    if faults := [reply.fault for reply in replies if reply.fault]:
        raise SystemExit(f"{len(faults)} cells could not be graded: {faults[0]}")
    began = time.process_time()
    grader.model.encode(asks)
    encoding = (time.process_time() - began) / len(asks)
    lengths = [reply.usage.read for reply in replies]
    dtype = str(grader.settings["dtype"])
    peak = matmul_rate(options.device, getattr(torch, dtype))
    work = sum(encoder_flops(options.model_size, length) for length in lengths) / spent
    print(
        f"{options.model_size}, {dtype}: {len(lengths)} cells of "
        f"{sum(lengths) / len(lengths):.0f} tokens in {spent:.1f} s: {len(lengths) / spent:.1f} "
        f"cells/s, {sum(lengths) / spent:.0f} tokens/s, {work / 1e12:.2f} of {peak / 1e12:.2f} "
        f"TFLOP/s, {work / peak:.0%}; {process / len(lengths) * 1e6:.0f} µs of CPU a cell, "
        f"{encoding * 1e6:.0f} of it for tokenizing"
    )


def by_transformers(encoder: Any, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The encoder of transformers in place of `models.encode_t5`."""
    states: torch.Tensor = encoder(input_ids=ids, attention_mask=mask).last_hidden_state
    return states


def compare(
    grader: LocalGrader,
    beams: Callable[[Sequence[Request]], Ratings],
    asks: list[Request],
    device: str,
) -> None:
    """Print how much longer other ways take, and how many ratings are the same."""
    own, score = models.encode_t5, ours(grader, [])
    ways = {
        "score": (score, own),
        "5 beams": (beams, own),
        "encoder of transformers": (score, by_transformers),
    }
    spent: dict[str, float] = {}
    ratings: dict[str, Ratings] = {}
    for _ in range(2):  # the first time warms up
        for name, (way, models.encode_t5) in ways.items():
            start = seconds(device)
            ratings[name] = way(asks)
            spent[name] = seconds(device) - start
    models.encode_t5 = own
    for name in list(ways)[1:]:
        same = sum(a == b for a, b in zip(ratings["score"], ratings[name], strict=True))
        print(
            f"  {name}: {spent[name] / spent['score']:.2f} times as long, "
            f"same rating {same}/{len(asks)}"
        )


def main() -> None:
    """Build the model, grade, print the figures."""
    parser = argparse.ArgumentParser(description="Measure scoring on a card.")
    parser.add_argument("--model-size", choices=SHAPES, default="large")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--dtype", choices=DTYPES, help="both, if not given")
    parser.add_argument("--cells", type=int, default=20000)
    parser.add_argument("--compared", type=int, default=400, help="cells graded in other ways, too")
    parser.add_argument("--batch-tokens", type=int)
    options = parser.parse_args()
    gc.set_threshold(GARBAGE)  # as commands do
    questions, passages = read_texts()
    tokenizer = make_tokenizer([PROMPT.user, *questions, *passages, " ".join(LABELS)])
    asks = make_asks(tokenizer, max(options.compared, min(options.cells, DISTINCT)), 10)
    compared = asks[: options.compared]
    with tempfile.TemporaryDirectory() as folder:
        model = make_model(options.model_size).to(options.device)
        set_ratings(model, tokenizer, compared)
        model.save_pretrained(Path(folder))
        tokenizer.save_pretrained(Path(folder))
        del model
        for dtype in [options.dtype] if options.dtype else DTYPES:
            grader = load_local_grader(
                folder,
                labels=LABELS,
                device=options.device,
                dtype=dtype,
                decode="score",
                batch_tokens=options.batch_tokens,
            )
            rate(grader, asks, options)
            beams = naive(folder, options.device, 3, dtype)
            compare(grader, beams, compared, options.device)


if __name__ == "__main__":
    main()
