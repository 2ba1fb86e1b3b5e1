"""The two parts of a bank, public and sealed, side by side: does the secret one agree?"""

from __future__ import annotations

from exampp.evaluate.board import Leaderboard, caption, heading
from exampp.report.notes import About, grouped
from exampp.report.table import Table, Value
from exampp.stats.rank_correlation import correlate


def parts_table(public: Leaderboard, sealed: Leaderboard) -> Table:
    """One row per system, best by the sealed part first: its score on either part, and by how much
    the public one is higher. Both boards have one column, of the same measure.

    A system that was tuned to the public items is higher there than on the sealed ones, by more
    than others are. The notes give the rank correlation of the two.
    """
    (one,), (other,) = public.columns, sealed.columns
    means = dict(zip(public.column_systems, one.values.means(), strict=True))
    hidden = dict(zip(sealed.column_systems, other.values.means(), strict=True))
    rows: list[tuple[Value, ...]] = []
    for system in sealed.systems:
        a, b = means[system], hidden[system]
        gap = None if a.mean is None or b.mean is None else a.mean - b.mean
        rows.append((system, a.mean, a.stderr, b.mean, b.stderr, gap))
    name = heading(str(one.measure), one.min_rating)
    columns = [
        "system",
        f"{name} public",
        "\u00b1",
        f"{name} sealed",
        "\u00b1 sealed",
        "difference",
    ]
    ranks = {system: -score for system, score in sealed.scores(other.measure).items()}
    agreement = correlate(public.scores(one.measure), ranks)
    tau = agreement.kendall
    value = tau.reason if tau.value is None else f"{tau.value:.3f}"
    notes = [
        f"Kendall's tau of the two parts over {agreement.systems} systems: {value}",
        *grouped(
            About("", part, f": {note}")
            for part, board in (("public", public), ("sealed", sealed))
            for note in board.notes
        ),
    ]
    return Table.of(columns, rows, caption(public).replace(", public part", "", 1), notes)
