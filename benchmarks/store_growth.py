"""Measure the time of the store per grade and passage as a shard grows, without a grader.

python benchmarks/store_growth.py [--passages 1000000] [--items 10]

Writes the rows that a grading run would write, passages and ten grades each, by the functions that
write them, and prints CPU and bytes for every tenth part. A grade has a reply of two characters.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from exampp.records import Grade, GraderIdentity, Passage, State
from exampp.store.bank import Edit, graded_versions, now
from exampp.store.connection import connect, transaction
from exampp.store.grades import grade_row, put_grader, put_grades
from exampp.store.inputs import add_query, put_passages, put_pool

OF_QUERY = 1000
"""Passages of a query."""


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--passages", type=int, default=1_000_000)
    parser.add_argument("--items", type=int, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        grow(Path(folder) / "shard.exam", options.passages, options.items)


def grow(path: Path, passages: int, items: int) -> None:
    """Fill a collection, and print what every tenth part took."""
    connection = connect(path, create=True)
    words = " ".join(f"word{number}" for number in range(55))
    edit = Edit("benchmark", "benchmark", now())
    queries = passages // OF_QUERY
    print("| passages | grades | CPU us a passage | CPU us a grade | bytes a passage with grades |")
    print("|---|---|---|---|---|", flush=True)
    texts = grades = 0.0
    for number in range(queries):
        with connection, transaction(connection):
            began = time.process_time()
            query = add_query(connection, f"q{number}", f"subject {number}")
            found = put_passages(
                connection,
                (
                    Passage(f"p{number}-{row}", f"Passage {number} {row}: {words}")
                    for row in range(OF_QUERY)
                ),
            )
            put_pool(connection, query, [(passage, None) for passage, _ in found.values()])
            texts += time.process_time() - began
        began = time.process_time()
        with connection, transaction(connection):
            grader = put_grader(connection, GraderIdentity("model", "prompt", "question"))
            named = [("question", f"q{number}/{item}") for item in range(items)]
            versions = graded_versions(connection, query, f"q{number}", named, edit)
            put_grades(
                connection,
                (
                    grade_row(
                        grader,
                        versions[item],
                        version,
                        Grade(item[1], State.GRADED, row % 6, "4\n", "rated"),
                    )
                    for row, (_, version) in enumerate(found.values())
                    for item in named
                ),
            )
        grades += time.process_time() - began
        if (number + 1) % max(1, queries // 10) == 0:
            done = (number + 1) * OF_QUERY
            per = queries // 10 * OF_QUERY
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            size = path.stat().st_size / done
            print(
                f"| {done:,} | {done * items:,} | {texts / per * 1e6:.0f} | "
                f"{grades / per / items * 1e6:.1f} | {size:.0f} |",
                flush=True,
            )
            texts = grades = 0.0


if __name__ == "__main__":
    main()
