"""How reliable scores are when several graders made them: graders as a facet of the study."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from exampp.analysis.phrases import worst_systems
from exampp.analysis.reliability import (
    ORDER,
    SUMMARY,
    TIMES,
    GraderEstimate,
    Reliability,
    ReliabilitySettings,
    Scored,
    among,
    component_records,
    components_table,
    left_out,
    method,
    reliability,
    summary,
    undefined_because,
)
from exampp.records.wording import counted
from exampp.results.result import Result, Table
from exampp.results.view import Column
from exampp.sanitize import or_default
from exampp.stats import generalizability as theory

Floats = NDArray[np.float64]
_FEW = 5


@dataclass(frozen=True, slots=True, repr=False)
class GraderReliability(Result):
    """The reliability of every grader's scores, and of graders as a facet of one study."""

    members: Mapping[str, Reliability]
    studies: tuple[GraderEstimate, ...]
    queries: int
    notes: tuple[str, ...] = field(default=())

    def tables(self) -> Mapping[str, Table]:
        """Every grader's reliability, and the components with graders as a facet."""
        first = next(iter(self.members.values()))
        rows = [
            [name, left_out(study), len(study.systems), *summary(study)]
            for name, one in self.members.items()
            for study in one.studies
        ]
        columns: list[str | Column] = ["grader", "left out", "systems", *SUMMARY]
        notes = [*_grader_sentences(self), *_grader_undefined(self), *method(first.settings.level)]
        notes += self.notes
        caption = f"Reliability of {first.scored.name} by grader"
        tables = {"reliability": Table.of(columns, rows, caption, notes, grouped=True)}
        if any(study.found for study in self.studies):
            tables["graders"] = components_table(
                {left_out(one): one.found.raw for one in self.studies if one.found},
                f"Where the variance comes from: {counted(len(self.members), 'grader')}",
            )
        for name, one in self.members.items():
            for part, table in one.tables().items():
                if part in ("queries", "sizes", "designs"):
                    tables[f"{name}: {part}"] = replace(table, caption=f"{name}: {table.caption}")
        return tables

    def records(self) -> Mapping[str, Table]:
        """The same, a row a value."""
        tables: dict[str, Table] = {}
        for part in ("reliability", "components", "sizes", "designs"):
            several = {name: one.records()[part] for name, one in self.members.items()}
            first = next(iter(several.values()))
            rows = [[name, *row] for name, table in several.items() for row in table.rows]
            notes = list(dict.fromkeys(note for table in several.values() for note in table.notes))
            headings: list[str | Column] = ["grader", *first.columns]
            tables[part] = Table.of(headings, rows, first.caption, notes)
        notes = [*_grader_sentences(self), *_grader_undefined(self)]
        records = component_records(_raw_by_drop(self), "Graders as a facet", notes)
        return {**tables, "graders": records}


def grader_reliability(
    scored: Mapping[str, Scored], settings: ReliabilitySettings | None = None
) -> GraderReliability:
    """Study the scores of several graders, each by itself and together.

    Together they are studied on the systems and queries that count with every grader.
    """
    settings = or_default("settings", settings, ReliabilitySettings)
    members = {name: reliability(one, settings) for name, one in scored.items()}
    tables = list(scored.values())
    systems = [s for s in tables[0].systems if all(s in one.systems for one in tables)]
    queries = [
        query
        for query in tables[0].query_ids
        if all(_counts(one, query, systems) for one in tables)
    ]
    cube = np.stack([_taken(one, systems, queries) for one in tables], axis=-1)
    studies = tuple(_grader_study(cube, systems, drop) for drop in settings.drop)
    notes = dict.fromkeys(note for one in tables for note in one.notes)
    return GraderReliability(members, studies, len(queries), tuple(notes))


def _counts(scored: Scored, query: str, systems: Sequence[str]) -> bool:
    if query not in scored.query_ids:
        return False
    rows = [scored.systems.index(system) for system in systems]
    return bool(scored.values.counts[rows, scored.query_ids.index(query)].all())


def _taken(scored: Scored, systems: Sequence[str], queries: Sequence[str]) -> Floats:
    rows = [scored.systems.index(system) for system in systems]
    columns = [scored.query_ids.index(query) for query in queries]
    taken: Floats = scored.values.values[np.ix_(rows, columns)]
    return taken


def _grader_study(cube: Floats, systems: Sequence[str], drop: float) -> GraderEstimate:
    if min(cube.shape[:2]) < 2:
        few = theory.FEW_SYSTEMS if len(cube) < 2 else "fewer than 2 queries count with all graders"
        return GraderEstimate(drop, len(cube), "", None, few)
    kept = theory.kept_systems(cube.mean(axis=2), drop)
    names = [name for name, stays in zip(systems, kept, strict=True) if not stays]
    left, without = int(kept.sum()), worst_systems(names, len(systems))
    if left < 2:
        return GraderEstimate(drop, left, without, None, "fewer than 2 systems are left")
    found = theory.with_graders(cube[kept])
    if not any(value > 0 for value in found.raw.values()):
        return GraderEstimate(drop, left, without, None, theory.ALL_ALIKE)
    return GraderEstimate(drop, left, without, found)


# ---- several graders -----------------------------------------------------------------------------


def _grader_sentences(found: GraderReliability) -> Iterator[str]:
    graders = len(found.members)
    for study in found.studies:
        if study.found is None:
            continue
        raw = {name: max(0.0, value) for name, value in study.found.raw.items()}
        of = among(study)
        if not raw["s"]:
            yield f"Together the graders tell no systems apart ({of})."
            continue
        one, all_of = (study.found.relative(study.found.queries, n) for n in (1, graders))
        yield (
            f"How much the order depends on the grader ({of}): the variance of systems {TIMES} "
            f"graders is {raw['sg'] / raw['s']:.0%} of that of systems; {ORDER} over graders and "
            f"queries is {one:.3f} with one grader, {all_of:.3f} with the mean of {graders}."
        )
    if graders < _FEW and any(study.found for study in found.studies):
        yield (
            f"{graders} graders are few to tell how graders in general differ: the variances of "
            "graders are rough."
        )


def _grader_undefined(found: GraderReliability) -> Iterator[str]:
    for study in found.studies:
        if study.reason:
            yield (f"Graders are no facet ({among(study)}), because {study.reason}.")
    for name, one in found.members.items():
        for said in undefined_because(one.studies):
            yield f"{name}: {said}"


def _raw_by_drop(found: GraderReliability) -> dict[float, dict[str, float]]:
    return {study.drop: study.found.raw for study in found.studies if study.found}
