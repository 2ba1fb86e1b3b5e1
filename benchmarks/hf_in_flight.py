"""Measure what batches in flight are worth, without a card.

    python benchmarks/hf_in_flight.py --cell 1.2 --other .4

A stand-in takes the place of a card: a thread that sleeps `--cell` milliseconds for each prompt of
a batch, one batch after the other, while this process reads prompts with a T5 tokenizer and spends
`--other` milliseconds of CPU on each reply, as a collection does that keeps it. Printed: how much
of the time the stand-in works, with one batch at a time and with batches in flight, and the ratio.
What a card itself takes is not measured here (`hf_gpu.py`).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from hf_flan_shapes import LABELS, PROMPT, make_asks, make_tokenizer, read_texts
from hf_gpu import cells

from exampp.graders.base import Reply, Request
from exampp.graders.local.batching import Batcher
from exampp.graders.local.grader import BATCH_TOKENS, IN_FLIGHT, LOOK_AHEAD
from exampp.graders.local.tensors import Row
from exampp.graders.local.texts import PlainTexts


class StandIn:
    """A model whose device sleeps."""

    def __init__(self, texts: PlainTexts, cell: float, device: ThreadPoolExecutor) -> None:
        self.texts = texts
        self._cell = cell
        self._device = device

    def encode(self, asks: Sequence[Request]) -> list[tuple[Row]]:
        """The tokens of each prompt."""
        return [(ids,) for ids in self.texts.ids([(ask.user, ask.system) for ask in asks])]

    def size(self, row: Row) -> int:
        """Tokens of a row."""
        return len(row)

    def families(self, rows: Sequence[Row]) -> list[list[Row]]:
        """Every row alone."""
        return [[row] for row in rows]

    def begin(self, rows: Sequence[Row]) -> Callable[[], list[int]]:
        """Sleep on the other thread."""
        slept = self._device.submit(time.sleep, self._cell * len(rows))

        def results() -> list[int]:
            slept.result()
            return [sum(row) % len(LABELS) for row in rows]

        return results

    def doubtful(self, _: int) -> bool:
        """Never."""
        return False

    def reply(self, _: Request, /, rows: Sequence[Row], results: Sequence[int]) -> Reply:
        """A label that depends on the tokens."""
        return Reply("".join(LABELS[result] for _, result in zip(rows, results, strict=True)))

    def free(self) -> None:
        """Nothing."""


def main() -> None:
    """Grade in both ways and print what they took."""
    parser = argparse.ArgumentParser(description="Measure batches in flight.")
    parser.add_argument("--cells", type=int, default=6000)
    parser.add_argument("--cell", type=float, default=1.2, help="ms of the card for a cell")
    parser.add_argument("--other", type=float, default=0.4, help="ms of CPU for a reply")
    options = parser.parse_args()
    questions, passages = read_texts()
    tokenizer = make_tokenizer([PROMPT.user, *questions, *passages, " ".join(LABELS)])
    asks = make_asks(tokenizer, min(options.cells, 500), 10)
    took, said = [], []
    for in_flight in (0, IN_FLIGHT["cuda"]):
        with ThreadPoolExecutor(1) as device:
            model = StandIn(PlainTexts(tokenizer), options.cell / 1000, device)
            ahead = LOOK_AHEAD["cuda"] if in_flight else LOOK_AHEAD["cuda"] // 3
            batcher = Batcher(
                model, budget=BATCH_TOKENS["cuda"], look_ahead=ahead, in_flight=in_flight
            )
            start, replies = time.perf_counter(), {}
            for ask, reply in batcher.answer(cells(asks, options.cells)):
                replies[ask.key] = reply.text
                until = time.thread_time() + options.other / 1000
                while time.thread_time() < until:
                    pass
            took.append(time.perf_counter() - start)
            said.append(replies)
        share = options.cells * options.cell / 1000 / took[-1]
        print(f"{in_flight} in flight: {took[-1]:.1f} s, the card works {share:.0%} of it")
    print(f"ratio {took[0] / took[1]:.2f}, same replies {said[0] == said[1]}")


if __name__ == "__main__":
    main()
