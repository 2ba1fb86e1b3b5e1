"""Compare prompts that have the question first with those that have the passage first.

    python benchmarks/passage_first.py FOLDER --passages 6
    python benchmarks/passage_first.py qwen2.5-1.5b --device cuda --passages 100
    python benchmarks/passage_first.py model.gguf

FOLDER holds a causal model for transformers; the name of a shape (`hf_causal_shapes.SHAPES`)
stands for one with random weights. Cells per CPU second of one thread, or per second on a card, are
printed for the question first and for the passage first, each with and without what prompts share
being read once (`llm/hf/prefixes.py`), and whether the ratings are the same. A GGUF file is served
by llama.cpp in this process with one thread: tokens computed and cells per CPU second, of server
and client together, for the short, the middle and the long third of the passages, and whether the
ratings are those of prompts that are read whole. Variants alternate. Passages are drawn from all
queries of TREC DL 2019 at the length that they have, each with the questions of its query, where
the data are there.
"""

from __future__ import annotations

import argparse
import functools
import gzip
import itertools
import json
import random
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from hf_flan_shapes import DATA, LABELS, read_texts

from exampp.graders.base import Grader, Reply, Request
from exampp.graders.local import load_local_grader
from exampp.graders.local.models import Causal
from exampp.graders.openai import OpenAICompatibleGrader
from exampp.graders.options import OpenAIOptions
from exampp.prompts import fill
from exampp.prompts import load_grading_prompt as load_prompt

PROMPTS = {"question first": "question-self-rating"}
PROMPTS |= {"passage first": "question-self-rating-passage-first"}


class Passage(NamedTuple):
    """A passage with the questions of its query."""

    text: str
    questions: Sequence[str]


@functools.cache
def real_passages() -> list[Passage]:
    """The passages of TREC DL 2019, each with all questions of its query."""
    with gzip.open(DATA / "questions.jsonl.gz", "rt", encoding="utf-8") as lines:
        banks = {
            bank["query_id"]: [one["question_text"] for one in bank["questions"]]
            for bank in map(json.loads, lines)
        }
    with gzip.open(DATA / "graded.jsonl.gz", "rt", encoding="utf-8") as lines:
        queries = [json.loads(line)[:2] for line in lines]
    return [Passage(one["text"], banks[query]) for query, pool in queries for one in pool]


def draw(passages: int, questions: int) -> list[Passage]:
    """So many passages of all queries, from the shortest to the longest."""
    chance = random.Random(5)
    if DATA.is_dir():
        known = real_passages()
    else:
        items, texts = read_texts()
        known = [Passage(text, chance.sample(items, questions)) for text in texts]
    drawn = [Passage(text, asked[:questions]) for text, asked in chance.sample(known, passages)]
    return sorted(drawn, key=lambda one: len(one.text))


def make_asks(prompt: str, passages: Sequence[Passage]) -> list[Request]:
    """Every question on its passage, the same for every prompt."""
    asks: list[Request] = []
    for passage in passages:
        for item in passage.questions:
            slots = {"question": item, "context": passage.text}
            asks.append(
                Request(len(asks), item, passage.text, fill(load_prompt(prompt), slots).user)
            )
    return asks


def replies(grader: Grader, asks: Sequence[Request]) -> dict[int, Reply]:
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
    grader = load_local_grader(folder, labels=LABELS, device=device, dtype=dtype, decode="score")
    model = grader.model
    if not isinstance(model, Causal) or not model._shares:
        raise SystemExit("this model cannot share what it has read")
    spent: dict[str, list[float]] = {}
    rated: dict[str, dict[int, Reply]] = {}
    drawn = draw(passages, questions)
    replies(grader, make_asks(next(iter(PROMPTS.values())), drawn[:1]))
    for _ in range(rounds):
        for order, prompt in PROMPTS.items():
            asks = make_asks(prompt, drawn)
            for how, shares in (("read whole", False), ("shared", True)):
                model._shares, model._start = shares, ()
                start = seconds(device)
                rated[f"{order}, {how}"] = replies(grader, asks)
                spent.setdefault(f"{order}, {how}", []).append(seconds(device) - start)
    cells = sum(len(passage.questions) for passage in drawn)
    first = next(iter(spent.values()))
    unit = "s" if device.startswith("cuda") else "CPU s"
    for name, times in spent.items():
        ratio = statistics.median(a / b for a, b in zip(first, times, strict=True))
        whole = rated[f"{name.partition(',')[0]}, read whole"]
        print(
            f"{name:27} {cells / min(times):6.2f} cells/{unit}  ratio {ratio:5.2f}  "
            f"{compared(rated[name], whole)}"
        )


def compared(some: Mapping[int, Reply], others: Mapping[int, Reply]) -> str:
    """Whether the first have the ratings that the others have, and how far the chances moved."""
    same = sum(others[key].text == reply.text for key, reply in some.items())
    moved = max(
        abs(chance - (others[key].scores or {})[label])
        for key, reply in some.items()
        for label, chance in (reply.scores or {}).items()
    )
    return f"same rating {same}/{len(some)}  largest change of a probability {moved:.1e}"


class Cost(NamedTuple):
    """CPU seconds of server and client, and tokens that the server computed."""

    seconds: float
    computed: int


def cost(grader: OpenAICompatibleGrader, asks: Sequence[Request]) -> Cost:
    """What the replies take."""
    before, start = grader.spent, time.process_time()
    replies(grader, asks)
    seconds, after = time.process_time() - start, grader.spent
    return Cost(seconds, after.read - after.cached - before.read + before.cached)


def show_costs(passages: Sequence[Passage], costs: Mapping[str, Cost]) -> None:
    """Print what each order of the prompt took, and how much less than the first."""
    words = statistics.mean(len(passage.text.split()) for passage in passages)
    cells = sum(len(passage.questions) for passage in passages)
    first = next(iter(costs.values()))
    print(f"{len(passages)} passages, {words:.0f} words on average, {cells} cells")
    for order, one in costs.items():
        print(
            f"  {order}: {one.computed} tokens computed ({first.computed / one.computed:.2f} times "
            f"fewer), {one.seconds:.1f} CPU s ({first.seconds / one.seconds:.2f} times less), "
            f"{cells / one.seconds:.2f} cells/CPU s"
        )


def on_llama_cpp(file: Path, passages: int, questions: int, rounds: int) -> None:
    """Measure a model on llama.cpp's server."""
    sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "tests")]
    from support.servers import llama_server

    drawn = draw(passages, questions)
    cuts = [round(passages * third / 3) for third in range(4)]
    thirds = [drawn[start:end] for start, end in itertools.pairwise(cuts) if end > start]
    with tempfile.TemporaryDirectory() as folder, llama_server(Path(folder), file) as url:

        def make_grader(**extra: bool) -> OpenAICompatibleGrader:
            options = OpenAIOptions(
                model="m", base_url=url, decode="labels", least_mass=0, extra_body=extra
            )
            return OpenAICompatibleGrader(options, LABELS)

        grader, uncached = make_grader(), make_grader(cache_prompt=False)
        for one in (grader, uncached):
            replies(one, make_asks(next(iter(PROMPTS.values())), drawn[:1])[:1])
        least: list[dict[str, Cost]] = []
        for third in thirds:
            spent: dict[str, list[Cost]] = defaultdict(list)
            for _ in range(rounds):
                for order, prompt in PROMPTS.items():
                    spent[order].append(cost(grader, make_asks(prompt, third)))
            least.append({order: min(costs) for order, costs in spent.items()})
            show_costs(third, least[-1])
        sums = {o: Cost(*map(sum, zip(*(one[o] for one in least), strict=True))) for o in PROMPTS}
        show_costs(drawn, sums)
        for order, prompt in PROMPTS.items():
            asks = make_asks(prompt, [third[0] for third in thirds])
            print(f"{order}: {compared(replies(grader, asks), replies(uncached, asks))}")


def main() -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(description="Compare two orders of a prompt.")
    parser.add_argument("model", type=Path, help="a folder, a shape or a GGUF file")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--passages", type=int, default=12)
    parser.add_argument("--questions", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--dtype", default="float32")
    options = parser.parse_args()
    how = (options.device, options.dtype, options.passages, options.questions, options.rounds)
    if options.model.is_dir():
        in_process(str(options.model), *how)
    elif options.model.suffix == ".gguf":
        on_llama_cpp(options.model, options.passages, options.questions, options.rounds)
    else:
        from hf_causal_shapes import save_causal

        items, texts = read_texts()
        known = [*items, *texts, *(load_prompt(name).user for name in PROMPTS.values())]
        with tempfile.TemporaryDirectory() as folder:
            save_causal(Path(folder), str(options.model), known, options.device)
            in_process(folder, *how)


if __name__ == "__main__":
    main()
