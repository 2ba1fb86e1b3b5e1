"""Attack battery: every attack and its control as texts in a separate collection.

The battery is stored beside the exam, as `my.attacks.exam` beside `my.exam`. It has the same
queries and bank, and texts that no system returned: `exampp grade` grades it like any collection,
and its texts never enter a leaderboard or a pool of the exam.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import msgspec

from exampp.analysis.attacks.families import (
    ATTACKS,
    BY_NAME,
    MISSING_MATERIAL,
    NUMBERS,
    Attack,
    AttackedQuery,
    Harm,
    Material,
    TargetKind,
    prn,
)
from exampp.errors import InputError
from exampp.formats.output import writing
from exampp.graders.base import CHARACTERS_PER_TOKEN
from exampp.prompts import catalogue
from exampp.records import ITEM_KINDS, BankEntry, Item, Passage, Query
from exampp.records.wording import counted
from exampp.results.notes import Note, note
from exampp.results.result import Result, Table
from exampp.results.view import Column, programs_only
from exampp.sanitize import check_integer, parse_digits
from exampp.stopping import MAX_FAILURES
from exampp.store.bank import edit_by
from exampp.store.battery import (
    JudgedText,
    about_battery,
    put_battery,
    read_items_by_query,
    read_judged_texts,
)
from exampp.store.connection import connect, is_collection, transaction
from exampp.store.inputs import counts, highest_judgment

TARGETS = 20
PROMPT = "question-self-rating"
ATTACK, CONTROL = "attack", "control"
_NO_TARGET = JudgedText("", "", None)
_DRAWS = 3
"""So many times the passages of other queries that are wanted are drawn: some are drawn twice."""


@dataclass(frozen=True, slots=True)
class BatterySettings:
    """Settings of a battery.

    `targets` passages of each query are attacked. `attacks` are the ids of the attacks, such as A3,
    by default all. `prompt` is the prompt whose delimiters are imitated, `rating` the rating in
    forged verdicts.

    Raises:
        InputError: A number is out of range, or an attack is unknown.
    """

    targets: int = TARGETS
    seed: int = 0
    attacks: Sequence[str] = ()
    prompt: str = PROMPT
    rating: int = 5

    def __post_init__(self) -> None:
        check_integer("targets", self.targets, 1)
        check_integer("the seed", self.seed, 0)
        for name in self.attacks:
            if name not in NUMBERS:
                hint = f"Choose from {', '.join(NUMBERS)}"
                raise InputError(f"unknown attack {name!r}", hint=hint)

    @property
    def selected(self) -> Sequence[Attack]:
        """The selected attacks."""
        wanted = self.attacks or NUMBERS
        return [attack for attack in ATTACKS if attack.number in wanted]


class BatteryText(NamedTuple):
    """One text of a battery: its attack, whether it is the control, and its original passage.

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


def place_of(passage_id: str) -> tuple[Attack, bool, int] | None:
    """Return (attack, is it the control, number of the target); None for any other id."""
    name, _, rest = passage_id.partition("/")
    role, _, rest = rest.partition("/")
    number = parse_digits(rest.rpartition("/")[2])
    if name not in BY_NAME or role not in (ATTACK, CONTROL) or number is None:
        return None
    return BY_NAME[name], role == CONTROL, number


class AttackCount(NamedTuple):
    """The size of an attack: texts and controls, their cells, and tokens of the texts."""

    attack: str
    about: str
    targets: int
    texts: int
    cells: int
    tokens: int


@dataclass(frozen=True, slots=True, repr=False)
class Battery(Result):
    """The texts of each attack, the attacks that are missing with reasons, and a hash of all texts.

    Tokens are those of texts and items, four characters each, without what a prompt adds. `items`
    are the most that a query has. `path` is None for a dry run.
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
    def command(self) -> str:
        """The command that grades the battery."""
        # a grader that gives no grade to an empty text does so for every item of a query
        patience = f" --max-failures {self.items + 1}" if self.items >= MAX_FAILURES else ""
        return f"exampp grade {self.path} --grader NAME{patience}"

    def tables(self) -> Mapping[str, Table]:
        """Return a row per attack."""
        texts, cells, tokens = (
            sum(getattr(one, name) for one in self.counts) for name in ("texts", "cells", "tokens")
        )
        written = "Nothing was written: this is a dry run."
        if self.path:
            written = f"Written to {self.path}. Grade it: {self.command}"
        verdict = f"To grade: {texts:,} texts, {cells:,} cells, about {tokens:,} tokens. {written}"
        notes = [
            *(note("attack-left-out", name=name, why=why) for name, why in self.lacking),
            *self.notes,
            note("battery-tokens"),
            note("battery-digest", digest=self.digest),
        ]
        return {"battery": Table.of(_COUNTS, self.counts, notes=notes, verdict=verdict)}

    def records(self) -> Mapping[str, Table]:
        """Return a row per attack, the attacks left out, and the settings."""
        provenance = {"digest": self.digest, **_settings(self.settings, self.bank)}
        return {
            **self.tables(),
            "left_out": Table.of(["attack", "reason"], self.lacking),
            "settings": Table.of(provenance, [provenance.values()]),
        }


_COUNTS = (
    Column("attack"),
    Column("what it is", key="about"),
    *map(Column, ("targets", "texts", "cells")),
    *programs_only("tokens"),
)


def _settings(settings: BatterySettings, bank: str) -> dict[str, str | int]:
    return {
        "seed": settings.seed,
        "targets": settings.targets,
        "bank": bank,
        "prompt": settings.prompt,
        "rating": settings.rating,
    }


def build_battery(
    connection: sqlite3.Connection,
    bank: str,
    kind: str | None,
    settings: BatterySettings,
    *,
    path: Path | None,
    texts: Path | None = None,
) -> Battery:
    """Build a battery from a collection and write it to `path`, and its texts to the file `texts`.

    The same collection, settings and seed give the same texts on every machine. Without `path` only
    `texts` is written.

    Raises:
        InputError: There are no items, or no two queries with passages; the file exists.
    """
    if path is not None and _holds_something(path):
        raise InputError("already exists", file=path, hint="Remove it, or name another: --battery")
    entries = read_items_by_query(connection, bank)
    known, material = _read(connection, bank, entries, kind, settings)
    attack_texts = list(battery_texts(material, settings))
    digest = hashlib.sha256("".join(f"{m.passage_id}\0{m.text}\0" for m in attack_texts).encode())
    if texts is not None:
        encode = msgspec.json.Encoder().encode
        with writing(texts) as stream:
            for one in attack_texts:
                stream.write(encode({"passage_id": one.passage_id, **one._asdict()}) + b"\n")
    if path is not None:
        about = {"digest": digest.hexdigest(), **_settings(settings, bank)}
        _write(path, bank, known, entries, attack_texts, json.dumps(about, sort_keys=True))
    there = {BY_NAME[one.attack].number for one in attack_texts}
    return Battery(
        tuple(_counts(attack_texts, material, settings)),
        tuple(
            (number, MISSING_MATERIAL.get(number, "it could be made for no query"))
            for number in dict.fromkeys(attack.number for attack in settings.selected)
            if number not in there
        ),
        digest.hexdigest(),
        settings,
        bank,
        max(len(query.items) for query in material.queries),
        tuple(_notes(material, settings)),
        path,
    )


def _holds_something(path: Path) -> bool:
    """Return whether a file has more than the bare collection that a killed build leaves.

    True for anything else than a file: a failed build removes what it wrote.
    """
    if not path.is_file():
        return path.exists()
    if not path.stat().st_size:
        return False
    if not is_collection(path):
        return True
    with closing(connect(path)) as connection:
        return any(counts(connection).values())


def battery_texts(material: Material, settings: BatterySettings) -> Iterator[BatteryText]:
    """Yield all texts, query by query, attack by attack; each attack before its control."""
    for query in material.queries:
        for attack in settings.selected:
            for number, passage in enumerate(_targets(material, query, attack, settings.targets)):
                found = attack.texts(material, query, passage) or ()
                for role, text in zip((ATTACK, CONTROL), found, strict=False):
                    if text is not None:
                        named = (query.query_id, number, passage.passage_id)
                        yield BatteryText(attack.name, role, *named, text)


def beside(path: Path) -> Path:
    """Return the path of the battery of a collection: `my.attacks.exam` beside `my.exam`."""
    return path.with_name(f"{path.stem}.attacks{path.suffix}")


def how_made(connection: sqlite3.Connection, path: Path) -> Mapping[str, str | int]:
    """Return bank, digest and settings of a battery. Raises InputError for other collections."""
    about = about_battery(connection)
    if about is None:
        raise InputError(
            "is not a battery of attacks",
            file=path,
            hint="Make one: exampp analyze attacks COLLECTION --build",
        )
    return dict(json.loads(about))


# ---- reading and writing -------------------------------------------------------------------------


def _read(
    connection: sqlite3.Connection,
    bank: str,
    entries: Sequence[BankEntry],
    item_kind: str | None,
    settings: BatterySettings,
) -> tuple[list[Query], Material]:
    """Return all queries and the material for attacks."""
    kinds = {item.kind for entry in entries for item in entry.items}
    kind = item_kind or next((one for one in ITEM_KINDS if one in kinds), ITEM_KINDS[0])
    items = {
        entry.query_id: sorted(
            (item for item in entry.items if item.kind == kind), key=lambda item: item.item_id
        )
        for entry in entries
    }
    if not any(items.values()):
        raise InputError(
            f"the bank {bank!r} has no {kind}s with a text", hint="Import a bank, or name another"
        )
    highest = highest_judgment(connection) or None
    known, attacked = [], []
    for query, passages in read_judged_texts(connection):
        known.append(query)
        if own := items.get(query.query_id):
            attacked.append(_attacked(query, tuple(own), passages, highest, settings.seed))
    prompt = catalogue.load_grading_prompt(settings.prompt)
    return known, Material(tuple(attacked), settings.seed, prompt, settings.rating)


def _attacked(
    query: Query,
    items: tuple[Item, ...],
    passages: Sequence[JudgedText],
    highest: int | None,
    seed: int,
) -> AttackedQuery:
    known = [one for one in passages if one.text.strip()]
    known.sort(key=lambda one: prn("target", seed, query.query_id, one.passage_id))
    zero = [one for one in known if one.relevance is not None and one.relevance <= 0]
    best = [one for one in known if highest is not None and one.relevance == highest]
    pool = frozenset(one.passage_id for one in passages)
    irrelevant, relevant = tuple(zero or known), tuple(best)
    return AttackedQuery(query.query_id, query.text, items, irrelevant, relevant, bool(zero), pool)


def _targets(
    material: Material, query: AttackedQuery, attack: Attack, most: int
) -> Iterator[JudgedText]:
    """Yield the passages of a query that are attacked."""
    if attack.target is TargetKind.NONE:
        yield _NO_TARGET
    elif attack.target is TargetKind.RELEVANT:
        yield from query.relevant[:most]
    elif attack.target is TargetKind.IRRELEVANT and query.judged:
        yield from query.irrelevant[:most]
    else:
        which = "relevant" if attack.target is TargetKind.FOREIGN else "irrelevant"
        drawn = (material.foreign(query, which, number) for number in range(_DRAWS * most))
        distinct = {found.passage_id: found for found in drawn if found is not None}
        yield from islice(distinct.values(), most)


def _write(
    path: Path,
    bank: str,
    known: Sequence[Query],
    entries: Sequence[BankEntry],
    texts: Sequence[BatteryText],
    about: str,
) -> None:
    passages = (
        (one.query_id, Passage(one.passage_id, one.text, extra={"target": one.target}))
        for one in texts
    )
    edit = edit_by(None, "battery")
    try:
        connection = connect(path, create=True)
        try:
            with connection, transaction(connection):
                put_battery(connection, known, bank, entries, passages, about, edit)
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
    """Yield the size of each attack; equal texts of a query count once."""
    items = {query.query_id: [len(item.text) for item in query.items] for query in material.queries}
    targets = dict.fromkeys((attack.name for attack in settings.selected), 0)
    sizes = {name: [0, 0, 0] for name in targets}
    seen: set[tuple[str, str]] = set()
    for one in texts:
        targets[one.attack] += one.role == ATTACK
        if (one.query_id, one.text) not in seen:
            seen.add((one.query_id, one.text))
            of = items[one.query_id]
            characters = len(one.text) * len(of) + sum(of)
            for at, more in enumerate((1, len(of), characters)):
                sizes[one.attack][at] += more
    for name, (count, cells, characters) in sizes.items():
        if targets[name]:
            tokens = -(-characters // CHARACTERS_PER_TOKEN)
            yield AttackCount(name, BY_NAME[name].about, targets[name], count, cells, tokens)


def _notes(material: Material, settings: BatterySettings) -> Iterator[Note]:
    made_for = material.queries
    unjudged = sum(not query.judged for query in made_for)
    few = sum(query.judged and len(query.irrelevant) < settings.targets for query in made_for)
    mute = sum(not query.text.split() for query in made_for)
    without = sum(not query.relevant for query in made_for)
    falls = any(attack.harm is Harm.FALL for attack in settings.selected)
    yield note("equal-texts")
    if unjudged:
        yield note("targets-elsewhere", count=unjudged, queries=counted(len(made_for), "query"))
    if few:
        yield note("few-targets", queries=counted(few, "query"), targets=settings.targets)
    if mute:
        yield note("queries-without-text", queries=counted(mute, "query"))
    if without and falls:
        yield note("no-best-passage", queries=counted(without, "query"))
