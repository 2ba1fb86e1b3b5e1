"""A battery: every attack and its control as texts in a collection of their own, to be graded.

It lies beside the exam, as `my.attacks.exam` beside `my.exam`. It holds the same queries and bank,
and texts that no system returned: `exampp grade` grades it like any collection, and nothing in it
can come into a leaderboard or a pool of the exam.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import msgspec

from exampp.analysis.attacks.families import (
    ATTACKS,
    BY_NAME,
    LACKING,
    NUMBERS,
    Attack,
    AttackedQuery,
    Harm,
    Material,
    Onto,
    SourcePassage,
    prn,
)
from exampp.errors import InputError
from exampp.formats import queries
from exampp.formats.output import writing
from exampp.prompts import catalogue
from exampp.records import ITEM_KINDS, BankEntry, Item, Passage, Query
from exampp.records.wording import counted
from exampp.results.result import Result, Table
from exampp.results.view import Column
from exampp.sanitize import check_integer
from exampp.stopping import MAX_FAILURES
from exampp.store.bank import edit_by
from exampp.store.battery import (
    JudgedText,
    about_battery,
    put_battery,
    read_bank,
    read_judged_texts,
)
from exampp.store.connection import connect, is_collection, transaction
from exampp.store.inputs import counts, highest_judgment

TARGETS = 20
PROMPT = "question-self-rating"
ATTACK, CONTROL = "attack", "control"
_NO_TARGET = SourcePassage("", "")
_CHARACTERS_PER_TOKEN = 4
_DRAWS = 3
"""So often as many passages of other queries are drawn as are wanted: some are drawn twice."""


@dataclass(frozen=True, slots=True)
class BatterySettings:
    """How a battery is made.

    `targets` passages of each query are attacked; `attacks` are the numbers of those made, such as
    A3, by default all; `answers` are a model's answers to the items of a query without a passage,
    by query id; `prompt` is the prompt whose delimiters are imitated, and `rating` what forged
    verdicts name.

    Raises:
        InputError: A number makes no sense, or there is no such attack.
    """

    targets: int = TARGETS
    seed: int = 0
    attacks: Sequence[str] = ()
    answers: Mapping[str, str] = field(default_factory=dict)
    prompt: str = PROMPT
    rating: int = 5

    def __post_init__(self) -> None:
        check_integer("targets", self.targets, 1)
        check_integer("the seed", self.seed, 0)
        for name in self.attacks:
            if name not in NUMBERS:
                raise InputError(
                    f"there is no attack {name!r}", mend=f"Choose from {', '.join(NUMBERS)}"
                )

    @property
    def chosen(self) -> Sequence[Attack]:
        """The attacks to be made."""
        wanted = self.attacks or NUMBERS
        return [attack for attack in ATTACKS if attack.number in wanted]


class BatteryText(NamedTuple):
    """One text: of which attack, whether it is the control, and of which passage it was made.

    `number` counts the targets of a query from 0, the same for an attack and its control.
    """

    attack: str
    role: str
    query_id: str
    number: int
    target: str
    text: str

    @property
    def passage_id(self) -> str:
        """The id of the text in the battery."""
        return f"{self.attack}/{self.role}/{self.query_id}/{self.number}"


class TextPlace(NamedTuple):
    """What the id of a text says: which attack, attack or control, which target of its query."""

    attack: Attack
    is_control: bool
    number: int


def place_of(passage_id: str) -> TextPlace | None:
    """What an id says; None where it is not that of a text of a battery."""
    name, _, rest = passage_id.partition("/")
    role, _, rest = rest.partition("/")
    number = rest.rpartition("/")[2]
    if name not in BY_NAME or role not in (ATTACK, CONTROL) or not number.isdecimal():
        return None
    return TextPlace(BY_NAME[name], role == CONTROL, int(number))


class AttackCount(NamedTuple):
    """What there is of an attack: texts and controls, their cells, and tokens of the texts."""

    attack: str
    about: str
    targets: int
    texts: int
    cells: int
    tokens: int


@dataclass(frozen=True, slots=True, repr=False)
class Battery(Result):
    """What was made: how much of each attack, what could not be made and why, the hash of all.

    `tokens` are those of texts and items, four characters each, without what a prompt adds.
    `items` are the most that a query has; `path` is where it was written, None where it was only to
    be looked at.
    """

    counts: tuple[AttackCount, ...]
    lacking: tuple[tuple[str, str], ...]
    digest: str
    settings: BatterySettings
    bank: str
    items: int
    notes: tuple[str, ...] = ()
    path: Path | None = None

    @property
    def cells(self) -> int:
        """How many cells a grader is asked for."""
        return sum(one.cells for one in self.counts)

    @property
    def command(self) -> str:
        """The command that has it graded."""
        # a grader that gives no grade to an empty text does so for every item of a query
        patience = f" --max-failures {self.items + 1}" if self.items >= MAX_FAILURES else ""
        return f"exampp grade {self.path} --grader NAME{patience}"

    def tables(self) -> Mapping[str, Table]:
        """A row an attack."""
        texts = sum(one.texts for one in self.counts)
        tokens = sum(one.tokens for one in self.counts)
        unmade = [f"{name} is left out: {why}." for name, why in self.lacking]
        done = (
            [f"Written to {self.path}. Grade it: {self.command}"]
            if self.path
            else ["Nothing was written: this is what would be."]
        )
        costs = (
            f"To grade: {texts:,} texts, {self.cells:,} cells, about {tokens:,} tokens of texts "
            "and items, and what the prompt adds to each cell (`exampp grade --dry-run` tells time "
            "and cost)."
        )
        columns = ["attack", "what it is", "targets", "texts", "cells"]
        rows = [(c.attack, c.about, c.targets, c.texts, c.cells) for c in self.counts]
        notes = [costs, *unmade, *self.notes, f"SHA-256 of all texts: {self.digest}", *done]
        return {"battery": Table.of(columns, rows, notes=notes)}

    def records(self) -> Mapping[str, Table]:
        """A row an attack, with tokens, and what was left out."""
        columns = [Column(name) for name in AttackCount._fields]
        made = Table.of(columns, self.counts, notes=[f"SHA-256 of all texts: {self.digest}"])
        left = Table.of(["attack", "reason"], self.lacking)
        how = Table.of(
            ["digest", "seed", "targets", "bank", "prompt", "rating"],
            [(self.digest, *_plain(self.settings, self.bank).values())],
        )
        return {"battery": made, "left_out": left, "settings": how}


class _Exam(NamedTuple):
    """What is read of the collection: queries, its bank, what attacks are made of."""

    queries: list[Query]
    entries: list[BankEntry]
    material: Material


def build_battery(
    connection: sqlite3.Connection,
    bank: str,
    kind: str | None,
    settings: BatterySettings,
    *,
    path: Path | None,
    texts: Path | None = None,
) -> Battery:
    """Make a battery from a collection, and write it to `path`, and its texts to the file `texts`.

    The same collection, settings and seed give the same texts on every machine. Without `path`
    nothing is written but `texts`.

    Raises:
        InputError: There are no items, or no two queries with passages; the file exists.
    """
    if path is not None and _holds_something(path):
        raise InputError("exists already", file=path, mend="Remove it, or name another: --battery")
    exam = _read(connection, bank, kind, settings)
    made = list(battery_texts(exam.material, settings))
    digest = digest_of(made)
    if texts is not None:
        write_texts(made, texts)
    if path is not None:
        _write(path, bank, exam, made, digest, settings)
    missing = [
        (number, LACKING.get(number, "it could be made for no query"))
        for number in dict.fromkeys(attack.number for attack in settings.chosen)
        if not any(BY_NAME[one.attack].number == number for one in made)
    ]
    return Battery(
        tuple(_counts(made, exam.material, settings)),
        tuple(missing),
        digest,
        settings,
        bank,
        max(len(query.items) for query in exam.material.queries),
        tuple(_notes(exam.material, settings)),
        path,
    )


def _holds_something(path: Path) -> bool:
    """Whether a file is there that is more than a killed build leaves: a bare collection."""
    if not path.exists() or not path.stat().st_size:
        return False
    if not is_collection(path):
        return True
    with closing(connect(path)) as connection:
        return any(counts(connection).values())


def battery_texts(material: Material, settings: BatterySettings) -> Iterator[BatteryText]:
    """All texts, query by query, attack by attack; each attack before its control."""
    for query in material.queries:
        for attack in settings.chosen:
            for number, passage in enumerate(_targets(material, query, attack, settings.targets)):
                found = attack.make(material, query, passage)
                if found is None:
                    continue
                named = (query.query_id, number, passage.passage_id)
                yield BatteryText(attack.name, ATTACK, *named, found.attack)
                if found.control is not None:
                    yield BatteryText(attack.name, CONTROL, *named, found.control)


def digest_of(texts: Iterable[BatteryText]) -> str:
    """SHA-256 (hexadecimal) over ids and texts."""
    found = hashlib.sha256()
    for one in texts:
        found.update(f"{one.passage_id}\0{one.text}\0".encode())
    return found.hexdigest()


def write_texts(texts: Iterable[BatteryText], path: Path) -> None:
    """Write the texts as JSON Lines, for people to read."""
    encode = msgspec.json.Encoder().encode
    with writing(path) as stream:
        for one in texts:
            stream.write(encode({"passage_id": one.passage_id, **one._asdict()}) + b"\n")


def beside(path: Path) -> Path:
    """Where the battery of a collection lies: `my.attacks.exam` beside `my.exam`."""
    return path.with_name(f"{path.stem}.attacks{path.suffix}")


def read_answers(path: Path) -> Mapping[str, str]:
    """What a model answered, by query id; a file is of the form of queries.

    Raises InputError as the reader of queries does.
    """
    return {query.query_id: query.text for query in queries.read(path)}


def how_made(connection: sqlite3.Connection, path: Path) -> Mapping[str, str | int]:
    """The bank, digest and settings of a battery. Raises InputError for any other collection."""
    about = about_battery(connection)
    if about is None:
        raise InputError(
            "is no battery of attacks",
            file=path,
            mend="Make one: exampp analyze attacks COLLECTION --build",
        )
    return dict(json.loads(about))


# ---- reading -------------------------------------------------------------------------------------


def _read(
    connection: sqlite3.Connection, bank: str, asked: str | None, settings: BatterySettings
) -> _Exam:
    entries = read_bank(connection, bank)
    kinds = {item.kind for entry in entries for item in entry.items}
    kind = asked or next((one for one in ITEM_KINDS if one in kinds), ITEM_KINDS[0])
    items = {
        entry.query_id: tuple(item for item in entry.items if item.kind == kind)
        for entry in entries
    }
    if not any(items.values()):
        raise InputError(
            f"the bank {bank!r} has no {kind}s with a text", mend="Import a bank, or name another"
        )
    highest = highest_judgment(connection) or None
    known, attacked = [], []
    for query, passages in read_judged_texts(connection):
        known.append(query)
        if own := items.get(query.query_id):
            ordered = tuple(sorted(own, key=lambda item: item.item_id))
            attacked.append(_attacked(query, ordered, passages, highest, settings.seed))
    prompt = catalogue.load(settings.prompt)
    material = Material(tuple(attacked), settings.seed, prompt, settings.answers, settings.rating)
    return _Exam(known, entries, material)


def _attacked(
    query: Query,
    items: tuple[Item, ...],
    passages: Sequence[JudgedText],
    highest: int | None,
    seed: int,
) -> AttackedQuery:
    known = [one for one in passages if one.text.strip()]
    zero = [one for one in known if one.relevance is not None and one.relevance <= 0]
    best = [one for one in known if highest is not None and one.relevance == highest]
    return AttackedQuery(
        query.query_id,
        query.text,
        items,
        _ordered(zero or known, query.query_id, seed),
        _ordered(best, query.query_id, seed),
        bool(zero),
        frozenset(one.passage_id for one in passages),
    )


def _ordered(passages: Iterable[JudgedText], query_id: str, seed: int) -> tuple[SourcePassage, ...]:
    def place(one: JudgedText) -> float:
        return prn("target", seed, query_id, one.passage_id)

    return tuple(SourcePassage(one.passage_id, one.text) for one in sorted(passages, key=place))


def _targets(
    material: Material, query: AttackedQuery, attack: Attack, most: int
) -> Iterator[SourcePassage]:
    """The passages of which an attack on a query is made."""
    if attack.onto is Onto.NONE:
        yield _NO_TARGET
    elif attack.onto is Onto.RELEVANT:
        yield from query.relevant[:most]
    elif attack.onto is Onto.IRRELEVANT and query.judged:
        yield from query.irrelevant[:most]
    else:
        find = material.foreign_relevant if attack.onto is Onto.FOREIGN else material.foreign
        drawn = (find(query, number) for number in range(_DRAWS * most))
        distinct = {found.passage_id: found for found in drawn if found is not None}
        yield from islice(distinct.values(), most)


# ---- writing and counting ------------------------------------------------------------------------


def _plain(settings: BatterySettings, bank: str) -> dict[str, str | int]:
    return {
        "seed": settings.seed,
        "targets": settings.targets,
        "bank": bank,
        "prompt": settings.prompt,
        "rating": settings.rating,
    }


def _write(
    path: Path,
    bank: str,
    exam: _Exam,
    texts: Sequence[BatteryText],
    digest: str,
    settings: BatterySettings,
) -> None:
    about = json.dumps({"digest": digest, **_plain(settings, bank)}, sort_keys=True)
    passages = (
        (one.query_id, Passage(one.passage_id, one.text, extra={"target": one.target}))
        for one in texts
    )
    try:
        connection = connect(path, create=True)
        try:
            with connection, transaction(connection):
                put_battery(
                    connection,
                    exam.queries,
                    bank,
                    exam.entries,
                    passages,
                    about,
                    edit_by(None, "battery"),
                )
        finally:
            connection.close()
    except BaseException:
        # half a battery would be taken for a whole one, and nothing else is in the file
        for ending in ("", "-wal", "-shm"):
            Path(f"{path}{ending}").unlink(missing_ok=True)
        raise


def _counts(
    texts: Iterable[BatteryText], material: Material, settings: BatterySettings
) -> Iterator[AttackCount]:
    items = {query.query_id: len(query.items) for query in material.queries}
    asked = {query.query_id: sum(len(i.text) for i in query.items) for query in material.queries}
    targets, count, cells, characters = (Counter[str]() for _ in range(4))
    seen = set()
    for one in texts:
        targets[one.attack] += one.role == ATTACK
        if (one.query_id, one.text) in seen:
            continue
        seen.add((one.query_id, one.text))
        count[one.attack] += 1
        cells[one.attack] += items[one.query_id]
        characters[one.attack] += len(one.text) * items[one.query_id] + asked[one.query_id]
    for attack in settings.chosen:
        name = attack.name
        if targets[name]:
            tokens = -(-characters[name] // _CHARACTERS_PER_TOKEN)
            yield AttackCount(name, attack.about, targets[name], count[name], cells[name], tokens)


def _notes(material: Material, settings: BatterySettings) -> Iterator[str]:
    yield "Texts of a query that are equal are graded, and counted here, once."
    made_for = material.queries
    unjudged = sum(not query.judged for query in made_for)
    if unjudged:
        yield (
            f"Nobody judged a passage 0 for {unjudged} of {counted(len(made_for), 'query')}: there "
            "passages of other queries are attacked."
        )
    few = sum(query.judged and len(query.irrelevant) < settings.targets for query in made_for)
    if few:
        yield (
            f"{counted(few, 'query')} {'has' if few == 1 else 'have'} fewer than "
            f"{settings.targets} passages judged 0: all of them are attacked."
        )
    mute = sum(not query.text.split() for query in made_for)
    if mute:
        yield f"Attacks by the words of the query leave out {counted(mute, 'query')} without text."
    if any(attack.harm is Harm.FALL for attack in settings.chosen) and not all(
        query.relevant for query in made_for
    ):
        without = sum(not query.relevant for query in made_for)
        yield f"No passage is judged highest for {counted(without, 'query')}: no A10, no A13 there."
