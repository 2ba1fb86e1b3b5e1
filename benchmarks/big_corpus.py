"""Import time and peak memory of runs over a corpus of millions of documents.

Writes a JSON-lines corpus and runs, and imports them in a process of its own:
`python benchmarks/big_corpus.py [--documents 2000000] [--systems 60] [--queries 200]`.
"""

from __future__ import annotations

import argparse
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from exampp import Collection

WORDS = [f"word{number}" for number in range(5000)]


def write_corpus(path: Path, documents: int) -> None:
    rng = random.Random(7)
    # distinct endings to a few hundred texts: making two million random ones takes longer than all
    texts = [" ".join(rng.choices(WORDS, k=90)) for _ in range(500)]
    with path.open("w") as stream:
        for number in range(documents):
            text = texts[number % len(texts)]
            stream.write(
                f'{{"_id": "msmarco_doc_{number:08d}", "title": "Title {number}", '
                f'"text": "{text} {number}", "metadata": {{"url": "http://x.y/{number}"}}}}\n'
            )


def write_runs(folder: Path, documents: int, systems: int, queries: int, depth: int) -> list[Path]:
    rng = random.Random(8)
    paths = []
    for system in range(systems):
        path = folder / f"system{system}.run"
        with path.open("w") as stream:
            for query in range(queries):
                near = (query * 7919) % (documents - 3 * depth)
                for rank, offset in enumerate(rng.sample(range(3 * depth), depth), 1):
                    doc = f"msmarco_doc_{near + offset:08d}"
                    stream.write(f"q{query} Q0 {doc} {rank} {1 / rank:.6f} s{system}\n")
        paths.append(path)
    return paths


def import_all(folder: Path) -> None:
    started = time.monotonic()
    runs = sorted(folder.glob("*.run"))
    with Collection.create(folder / "big.exam") as collection:
        report = collection.import_files(
            folder / "topics.tsv", *runs, corpus=folder / "corpus.jsonl", depth=20
        )
        seconds = time.monotonic() - started
        started = time.monotonic()
        systems, _ = collection.pool()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"import          {seconds:.1f} s")
    print(f"pool            {time.monotonic() - started:.1f} s, {systems.caption}")
    print(f"passages        {report.after['passages']}, missing {len(report.missing)}")
    print(f"peak memory     {peak:.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=2_000_000)
    parser.add_argument("--systems", type=int, default=60)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--depth", type=int, default=100, help="lines of a run for each query")
    parser.add_argument("--import", dest="folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.folder:
        import_all(given.folder)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_corpus(folder / "corpus.jsonl", given.documents)
        write_runs(folder, given.documents, given.systems, given.queries, given.depth)
        topics = "".join(f"q{query}\ttopic {query}\n" for query in range(given.queries))
        (folder / "topics.tsv").write_text(topics)
        size = (folder / "corpus.jsonl").stat().st_size / 2**30
        print(f"corpus          {given.documents} documents, {size:.2f} GB", flush=True)
        subprocess.run([sys.executable, __file__, "--import", name], check=True)


if __name__ == "__main__":
    main()
