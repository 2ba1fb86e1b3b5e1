"""Plans and runs a million due cells with a scripted grader: CPU per cell, and memory as it goes.

python benchmarks/million_cells.py [--queries 200] [--passages 500] [--items 10]
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path

import psutil

import exampp
from exampp.graders.scripted import ScriptedGrader


def write_inputs(folder: Path, queries: int, passages: int, items: int) -> list[Path]:
    """Queries, passages of about 60 words, one run of all of them, and a bank."""
    files = [folder / name for name in ("queries.tsv", "passages.jsonl", "all.run", "bank.tsv")]
    words = " ".join(f"word{number}" for number in range(55))
    with (
        files[0].open("w") as topics,
        files[1].open("w") as texts,
        files[2].open("w") as run,
        files[3].open("w") as bank,
    ):
        bank.write("query_id\tquestion\n")
        for query in range(queries):
            topics.write(f"q{query}\tthe subject number {query}\n")
            for item in range(items):
                bank.write(f"q{query}\tWhat is point {item} of subject {query}?\n")
            for rank in range(passages):
                name = f"p{query}-{rank}"
                text = f"Passage {name}: {words}"
                texts.write(f'{{"passage_id": "{name}", "text": "{text}"}}\n')
                run.write(f"q{query} Q0 {name} {rank + 1} {passages - rank} all\n")
    return files


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--passages", type=int, default=500)
    parser.add_argument("--items", type=int, default=10)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    files = write_inputs(folder, options.queries, options.passages, options.items)
    process = psutil.Process()
    with exampp.Collection.create(folder / "big.exam") as collection:
        started = time.process_time()
        collection.import_files(*files)
        print(f"import: {time.process_time() - started:.1f} s of CPU")
        started = time.process_time()
        run = collection.grading(
            ScriptedGrader("4", look_ahead=64, record=False),
            model="scripted",
            depth=options.passages,
        )
        cells = sum(len(one.cells) for one in run.pending())
        print(f"plan: {cells} cells, {time.process_time() - started:.1f} s of CPU")
        started = time.process_time()
        seen = 0
        for progress in run.steps():
            if progress.done - seen >= cells / 10:
                seen = progress.done
                print(f"  {progress.done:>9} cells, {process.memory_info().rss >> 20} MB")
        spent = time.process_time() - started
        print(f"run: {spent:.1f} s of CPU, {spent / cells * 1e6:.1f} microseconds a cell")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MB")


if __name__ == "__main__":
    main()
