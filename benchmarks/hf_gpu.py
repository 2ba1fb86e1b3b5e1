"""Measure scoring with a model of the shape of FLAN-T5-large on a card.

    python benchmarks/hf_gpu.py --cells 20000

Prints graded cells per second, tokenizing included, and which share of the card's own matrix
multiplication rate the encoder's useful work makes (padding and decoder are not counted as work).
The weights are random. Runs on a CPU too (`--device cpu --model-size tiny --cells 50`).
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

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
)

from exampp.llm.base import Ask
from exampp.llm.hf import load

DISTINCT = 2000


def synchronize(device: str) -> None:
    """Wait for the card."""
    if device.startswith("cuda"):
        torch.cuda.synchronize()


def matmul_rate(device: str, dtype: torch.dtype) -> float:
    """The best rate, in operations per second, of multiplying two square matrices."""
    side = 8192 if device.startswith("cuda") else 1024
    left, right = (torch.randn(side, side, device=device).to(dtype) for _ in range(2))
    best = float("inf")
    for _ in range(8):
        synchronize(device)
        start = time.perf_counter()
        for _ in range(4):
            left @ right
        synchronize(device)
        best = min(best, (time.perf_counter() - start) / 4)
    return 2 * side**3 / best


def cells(asks: list[Ask], count: int) -> Iterator[Ask]:
    """As many asks as wanted, no two with the same prompt."""
    for key in range(count):
        ask = asks[key % len(asks)]
        yield replace(ask, key=key, user=f"{ask.user} {key // len(asks)}")


def main() -> None:
    """Build the model, grade, print the figures."""
    parser = argparse.ArgumentParser(description="Measure scoring on a card.")
    parser.add_argument("--model-size", choices=SHAPES, default="large")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--cells", type=int, default=20000)
    parser.add_argument("--batch-tokens", type=int)
    options = parser.parse_args()
    questions, passages = read_texts()
    tokenizer = make_tokenizer([PROMPT.user, *questions, *passages, " ".join(LABELS)])
    asks = make_asks(tokenizer, min(options.cells, DISTINCT), 10)
    with tempfile.TemporaryDirectory() as folder:
        make_model(options.model_size).save_pretrained(Path(folder))
        tokenizer.save_pretrained(Path(folder))
        grader = load(
            folder,
            labels=LABELS,
            device=options.device,
            dtype=options.dtype,
            decode="score",
            batch_tokens=options.batch_tokens,
        )
        for _ in grader.answer(cells(asks, max(1, options.cells // 20))):
            pass
        synchronize(options.device)
        start = time.perf_counter()
        replies = [reply for _, reply in grader.answer(cells(asks, options.cells))]
        synchronize(options.device)
        spent = time.perf_counter() - start
    if faults := [reply.fault for reply in replies if reply.fault]:
        raise SystemExit(f"{len(faults)} cells could not be graded: {faults[0]}")
    lengths = [reply.usage.read for reply in replies]
    peak = matmul_rate(options.device, getattr(torch, options.dtype))
    work = sum(encoder_flops(options.model_size, length) for length in lengths)
    print(
        f"{options.model_size}, {options.dtype}: {len(lengths)} cells of "
        f"{sum(lengths) / len(lengths):.0f} tokens in {spent:.1f} s: {len(lengths) / spent:.1f} "
        f"cells/s, {work / spent / 1e12:.2f} of {peak / 1e12:.2f} TFLOP/s, "
        f"{work / spent / peak:.0%}"
    )


if __name__ == "__main__":
    main()
