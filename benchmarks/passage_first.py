"""Compare prompts that have the question first with those that have the passage first.

    python benchmarks/passage_first.py FOLDER --passages 8
    python benchmarks/passage_first.py qwen2.5-1.5b --device cuda --passages 100
    python benchmarks/passage_first.py model.gguf

FOLDER holds a causal model for transformers; the name of a shape (`hf_causal_shapes.SHAPES`)
stands for one with random weights. Cells per CPU second of one thread, or per second on a card, are
printed for the question first and for the passage first, each with and without what prompts share
being read once (`llm/hf/prefixes.py`), and whether the ratings are the same. A GGUF file is served
by llama.cpp in this process: tokens computed for each order of the prompt. Variants alternate; real
passages where the data are there.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from hf_flan_shapes import LABELS, read_texts

from exampp.llm.base import Ask, Grader, Reply
from exampp.llm.hf import load
from exampp.llm.hf.causal import Causal
from exampp.llm.openai import OpenAICompatibleGrader, Sampling
from exampp.prompts import fill
from exampp.prompts import load as load_prompt

PROMPTS = {"question first": "question-self-rating"}
PROMPTS |= {"passage first": "question-self-rating-passage-first"}


def make_asks(prompt: str, passages: int, questions: int) -> list[Ask]:
    """As many questions on each of so many passages, the same for every prompt."""
    chance = random.Random(5)
    items, texts = read_texts()
    asks: list[Ask] = []
    for passage in chance.sample(texts, passages):
        for item in chance.sample(items, questions):
            slots = {"question": item, "context": passage}
            asks.append(Ask(len(asks), item, passage, fill(load_prompt(prompt), slots).user))
    return asks


def replies(grader: Grader, asks: Sequence[Ask]) -> dict[int, Reply]:
    """What the grader says, by key."""
    found = {ask.key: reply for ask, reply in grader.answer(asks)}
    if faults := [reply.fault for reply in found.values() if reply.fault]:
        raise SystemExit(f"{len(faults)} cells could not be graded: {faults[0]}")
    return found


def in_process(
    folder: str, device: str, dtype: str, passages: int, questions: int, rounds: int
) -> None:
    """Measure a model of transformers."""
    import torch
    from hf_score_vs_generate import seconds

    torch.set_num_threads(1)
    grader = load(folder, labels=LABELS, device=device, dtype=dtype, decode="score")
    model = grader.model
    if not isinstance(model, Causal) or not model._shares:
        raise SystemExit("this model cannot share what it has read")
    spent: dict[str, list[float]] = {}
    rated: dict[str, dict[int, Reply]] = {}
    replies(grader, make_asks(next(iter(PROMPTS.values())), 1, questions))
    for _ in range(rounds):
        for order, prompt in PROMPTS.items():
            asks = make_asks(prompt, passages, questions)
            for how, shares in (("read whole", False), ("shared", True)):
                model._shares, model._start = shares, ()
                start = seconds(device)
                rated[f"{order}, {how}"] = replies(grader, asks)
                spent.setdefault(f"{order}, {how}", []).append(seconds(device) - start)
    cells = passages * questions
    first = next(iter(spent.values()))
    unit = "s" if device.startswith("cuda") else "CPU s"
    for name, times in spent.items():
        ratio = statistics.median(a / b for a, b in zip(first, times, strict=True))
        whole = rated[f"{name.partition(',')[0]}, read whole"]
        same = sum(whole[key].text == reply.text for key, reply in rated[name].items())
        moved = max(
            abs(chance - (whole[key].scores or {})[label])
            for key, reply in rated[name].items()
            for label, chance in (reply.scores or {}).items()
        )
        print(
            f"{name:27} {cells / min(times):6.2f} cells/{unit}  ratio {ratio:5.2f}  "
            f"same rating {same}/{cells}  largest change of a probability {moved:.1e}"
        )


def on_llama_cpp(file: Path, passages: int, questions: int) -> None:
    """Count what llama.cpp computes."""
    sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "tests/llm")]
    from servers import llama_server

    computed = {}
    with tempfile.TemporaryDirectory() as folder, llama_server(Path(folder), file) as url:
        for order, prompt in PROMPTS.items():
            grader = OpenAICompatibleGrader(
                "m", url, decode="text", sampling=Sampling(max_tokens=1)
            )
            start = time.process_time()
            replies(grader, make_asks(prompt, passages, questions))
            took = time.process_time() - start
            spent = grader.spent
            computed[order] = spent.read - spent.cached
            print(
                f"{order}: {spent.read} tokens read, {spent.cached} cached, "
                f"{computed[order]} computed, {took:.1f} CPU s"
            )
    print(f"ratio {computed['question first'] / computed['passage first']:.2f}")


def main() -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(description="Compare two orders of a prompt.")
    parser.add_argument("model", type=Path, help="a folder, a shape or a GGUF file")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--passages", type=int, default=8)
    parser.add_argument("--questions", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--dtype", default="float32")
    options = parser.parse_args()
    how = (options.device, options.dtype, options.passages, options.questions, options.rounds)
    if options.model.is_dir():
        in_process(str(options.model), *how)
    elif options.model.suffix == ".gguf":
        on_llama_cpp(options.model, options.passages, options.questions)
    else:
        from hf_causal_shapes import save_causal

        items, texts = read_texts()
        known = [*items, *texts, *(load_prompt(name).user for name in PROMPTS.values())]
        with tempfile.TemporaryDirectory() as folder:
            save_causal(Path(folder), str(options.model), known, options.device)
            in_process(folder, *how)


if __name__ == "__main__":
    main()
