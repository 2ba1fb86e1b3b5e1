"""What the pages about single cells have in common: the dossier, and whether a person is blind."""

from __future__ import annotations

from exampp.collection import Collection
from exampp.errors import InputError
from exampp.records.dossier import Cell, Dossier
from exampp.web.page_request import PageRequest
from exampp.web.pages.cells import has_decided

BLIND = "blind"
"""What a browser keeps: whether a person decides blind, where they have said so."""


def is_blind(visit: PageRequest) -> bool:
    """Whether grades are hidden from this person until they have decided."""
    said = visit.kept(BLIND)
    return visit.room.blind if said not in ("0", "1") else said == "1"


def dossier(
    visit: PageRequest, collection: Collection, query_id: str, passage_id: str | None = None
) -> Dossier:
    """One query as it is now. InputError where there is none of that id.

    For a page of one passage, what the grader said of undecided others is not read.
    """
    grades = visit.choice.of(collection)
    asked = [query_id]
    for found in (
        grades.dossiers(asked) if passage_id is None else grades.brief_dossiers(asked, [passage_id])
    ):
        return found
    raise InputError("there is no query of that id", field="query")


def seen(found: Dossier, visit: PageRequest, *, blind: bool) -> frozenset[Cell] | None:
    """The cells whose grades this person may see; None: all of them."""
    if not blind:
        return None
    decisions = found.decisions.items()
    return frozenset(cell for cell, made in decisions if has_decided(made, visit.assessor))
