"""Who made the bank, who graded, and which systems are known to share something with either."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from exampp.analysis.cautions import families_of
from exampp.formats.uses import SystemUse
from exampp.records.gradebook import Gradebook
from exampp.records.grading import GraderIdentity
from exampp.records.origin import same_model
from exampp.records.wording import counted

_ITS_NAME = "its name"


@dataclass(frozen=True, slots=True)
class SharedTie:
    """A system shares something with the grader or the bank.

    `shares` is what: a model, a family of models, the bank, the prompt; `whose` with whom; `known`
    from where.
    """

    system: str
    uses: str
    shares: str
    whose: str
    known: str


@dataclass(frozen=True, slots=True)
class Ledger:
    """The grader and the makers of the bank, with families; the ties of systems; who is unknown.

    `makers` counts the items that each model made, of `items`. `unknown` are systems of which
    nothing is said, and whose names speak of no model; `elsewhere` those of which something is
    said that are not in the exam.
    """

    grader: GraderIdentity
    bank: str
    makers: Mapping[str, int]
    items: int
    ties: tuple[SharedTie, ...]
    unknown: tuple[str, ...]
    systems: int
    elsewhere: tuple[str, ...] = ()

    @property
    def tied(self) -> Sequence[str]:
        """The systems that share something, each once."""
        return tuple(dict.fromkeys(tie.system for tie in self.ties))

    @property
    def notes(self) -> Iterator[str]:
        """Who graded, who made the bank, and of how many systems nothing is known."""
        model = self.grader.by_content.model
        yield f"Graded by {model}{_in_family(model)}, prompt {self.grader.prompt}."
        if self.makers:
            made = ", ".join(
                f"{name}{_in_family(name)} ({counted(count, 'item')})"
                for name, count in self.makers.items()
            )
            yield f"The bank {self.bank} has {counted(self.items, 'item')}, made by {made}."
        else:
            yield (
                f"Who made the bank {self.bank or 'of graded items'} is not said in it: neither "
                "its file nor `exampp bank generate` named a model."
            )
        own = [name for name in self.makers if same_model(name, model)]
        if own:
            yield f"The model that grades made items of the bank itself ({', '.join(own)})."
        if self.unknown:
            yield (
                f"Nothing is known of {len(self.unknown)} of {counted(self.systems, 'system')}: "
                "say what they use in a table with the columns system and uses (--uses FILE)."
            )
        if self.elsewhere:
            yield f"Not in the exam, and left out: {', '.join(self.elsewhere)}."


def ledger(
    book: Gradebook, makers: Mapping[str, int], items: int, uses: Sequence[SystemUse] = ()
) -> Ledger:
    """What is known of the systems of a gradebook: by their names, and by what people say."""
    said: dict[str, list[SystemUse]] = {}
    for one in uses:
        said.setdefault(one.system, []).append(one)
    ties: list[SharedTie] = []
    unknown = []
    for system in book.systems:
        named = SystemUse(system, system, _ITS_NAME)
        found = [tie for one in said.get(system, [named]) for tie in _ties(one, book, makers)]
        ties += found
        if system not in said and not families_of(system):
            unknown.append(system)
    return Ledger(
        book.grader,
        book.bank_label,
        makers,
        items,
        tuple(dict.fromkeys(ties)),
        tuple(unknown),
        len(book.systems),
        tuple(system for system in said if system not in book.systems),
    )


def _ties(one: SystemUse, book: Gradebook, makers: Mapping[str, int]) -> Iterator[SharedTie]:
    """What a system shares by one thing that it uses."""
    grader = book.grader
    model = grader.by_content.model
    tie = (one.system, "" if one.place == _ITS_NAME else one.uses)
    for other, whose in ((model, "grader"), *((maker, "bank") for maker in makers)):
        named = whose == "grader" and one.uses in (grader.name, grader.key)
        if named or same_model(one.uses, other):
            yield SharedTie(*tie, f"model {other}", whose, one.place)
        else:
            for family in sorted({*families_of(one.uses)} & {*families_of(other)}):
                yield SharedTie(*tie, f"family {family}", whose, one.place)
    if one.place == _ITS_NAME:
        return
    if one.uses.casefold() == book.bank.casefold():
        yield SharedTie(*tie, "the items", "bank", one.place)
    if one.uses.casefold() == grader.prompt.casefold():
        yield SharedTie(*tie, "the prompt", "grader", one.place)


def _in_family(model: str) -> str:
    families = families_of(model)
    return f" (family {', '.join(families)})" if families else ""
