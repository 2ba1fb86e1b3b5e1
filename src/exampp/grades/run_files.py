"""Run files in the place of a gradebook's own rankings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from exampp.errors import InputError
from exampp.measures.rankings import ScoredPassage, with_runs
from exampp.records.gradebook import Gradebook


def with_run_files(book: Gradebook, paths: Sequence[str | Path]) -> Gradebook:
    """The gradebook with the systems of run files in place of its own, if any are given.

    Raises InputError where no query of the runs is known.
    """
    if not paths:
        return book
    runs = read_run_files(paths)
    found = with_runs(book, runs)
    if not any(query.rankings for query in found.queries):
        queries = dict.fromkeys(query for run in runs.values() for query in run)
        shown = ", ".join(list(queries)[:3])
        raise InputError(f"none of the runs' queries is known, such as {shown}", file=paths[0])
    return found


def read_run_files(paths: Sequence[str | Path]) -> dict[str, dict[str, list[ScoredPassage]]]:
    """Run files, and folders of such, as system -> query -> (passage, score, rank).

    Raises InputError where two files hold rankings of one system for one query.
    """
    found: dict[str, dict[str, list[ScoredPassage]]] = {}
    source: dict[tuple[str, str], str | Path] = {}
    # which kinds there are loads with every format, and is needed for runs alone
    from exampp.formats import trec
    from exampp.inputs.files import GivenFile, tell_all

    given = [GivenFile(Path(path), role="runs") for path in paths]
    for path, kind, _, system in tell_all(given, system=False):
        read = trec.read_ranx if kind == "ranx" else trec.read_run
        for ranked in read(path, system=system):
            earlier = source.setdefault((ranked.system, ranked.query_id), path)
            if earlier is not path:
                raise InputError(
                    f"system {ranked.system!r} ranks for query {ranked.query_id!r} in "
                    f"{earlier} too",
                    file=path,
                    hint="Give the runs different names in their last column",
                )
            run = found.setdefault(ranked.system, {})
            returned = (ranked.passage_id, ranked.score, ranked.rank)
            run.setdefault(ranked.query_id, []).append(returned)
    return found
