"""Presets: where the records and fields of a RAG program are in its files (TOML)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import asdict, astuple, replace

from exampp.errors import InputError
from exampp.formats.columns import CERTAIN_ANSWERS, SYNONYMS, names_of, roles_of
from exampp.formats.fields import normalize_name
from exampp.plugins import LazyMapping, Registry, declared_text
from exampp.records.toml import parse_toml, read_toml

_FOLDER = Path(__file__).parent / "presets"
FIELD_OF_ROLE = {
    "question": "query",
    "query_id": "query_id",
    "contexts": "contexts",
    "context_ids": "ids",
    "answer": "response",
    "reference": "reference",
    "reference_contexts": "relevant",
    "relevant_ids": "relevant_ids",
}
"""The field of a preset for each name in `--columns`."""
NUMBERED_CONTEXT = re.compile(r"(?:retrieved_)?(?:context|document|doc|passage|chunk)_?(\d{1,4})")
OUTER = "$"
"""The field of a record for the objects around it: `$.model` is a field of one of them."""


Paths = tuple[str, ...]
"""Dotted paths to one value; the first path in the record is used. Paths may cross lists."""


class Spans(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Fields that join the spans of a trace.

    `root`, `retriever` and `reranker` are values of `kind`; without `root`, the span without a
    parent is the root. `children` is a field of a span with the spans below it.
    """

    trace: Paths
    parent: Paths
    kind: Paths
    retriever: str
    reranker: str = ""
    root: str = ""
    children: str = ""


class Messages(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Fields of rows that are each one message of a conversation.

    The messages of a conversation are in the order of the numbers in `order`, or of the file.
    """

    conversation: Paths
    role: Paths
    content: Paths
    order: Paths = ()


class Fields(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Places of the question, its contexts, the answer and the reference in records.

    Without `query`, records name questions of the collection by id. `ids` are those of the
    contexts; `relevant` are passages that make up a reference; `items` is the list of the items of
    a bank, and `judgments` that of the judged passages.
    """

    query: Paths = ()
    query_id: Paths = ()
    contexts: Paths = ()
    ids: Paths = ()
    response: Paths = ()
    reference: Paths = ()
    relevant: Paths = ()
    relevant_ids: Paths = ()
    items: Paths = ()
    judgments: Paths = ()


class Preset(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The fields of a program; docs/reference/formats.md lists all keys.

    Attributes:
        sniff: A file is from the program if it has a field of every set of one alternative;
            `@query` means the fields of the query, `sample/output` a field of an object. A
            preset named by `--as` needs neither `sniff` nor `name`.
        without: Fields that no record of the program has.
        rows: Places of the records in an object.
        separator: Separator of lists in a cell.
        system: Parts that name the system.
        variants: Parts added to the system name if they differ within a file.
        systems: Fields that each hold the results of the system that they are named after.
        system_columns: Pattern of columns with the answers of one system; its groups are the
            fields `system` and `prompt`. `@system_columns` in `sniff` means such a column.
        response_prefix: Pattern of what is left out at the start of responses.
        groups: Whether a row is one context; rows of one question and system are one record.
        messages: Fields of rows that are each one message; a question with its replies, and the
            messages before it, is one record with the field `messages`.
        contexts_may_be_gold: Whether contexts may be those of a data set.
        normalize_names: Whether the spelling of fields varies.
        document_id: Field of the id of contexts that are objects.
        document_text: Field of their text, besides the usual names.
        item_text: Field of the text of items that are objects.
        item_weight: Field of their weight.
        item_answers: Field of their answers; such items are questions, others nuggets.
        weights: Weights by the words of `item_weight`.
        json: Fields whose text is JSON or a Python literal, and objects that hold the text.
        ignored: Fields that are not counted as unread.
        looks: Layout, for the documentation.
        source: Programs, for the documentation.
        needs: Fields for the hint on unknown files.
    """

    fields: Fields
    name: str = ""
    sniff: tuple[tuple[str, ...], ...] = ()
    looks: str = ""
    source: str = ""
    needs: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    separator: str = ""
    system: tuple[Paths, ...] = ()
    variants: tuple[Paths, ...] = ()
    systems: tuple[str, ...] = ()
    system_columns: str = ""
    response_prefix: str = ""
    groups: bool = False
    contexts_may_be_gold: bool = False
    normalize_names: bool = False
    document_id: Paths = ()
    document_text: Paths = ()
    item_text: Paths = ()
    item_weight: Paths = ()
    item_answers: Paths = ()
    weights: dict[str, float] = {}
    json: Paths = ()
    ignored: Paths = ()
    spans: Spans | None = None
    messages: Messages | None = None

    @property
    def opens(self) -> bool:
        """Return whether texts may be in objects, or in JSON."""
        return bool(self.json or self.spans)

    @property
    def checks_paths(self) -> bool:
        """Return whether a path that ends before its field is an error.

        It is none where a known program has objects in some files and texts in others.
        """
        return not (self.opens and self.name)

    @property
    def has_questions_alone(self) -> bool:
        """Return whether records have a question, and neither results nor references."""
        others = {**asdict(self.fields), "query": (), "query_id": ()}
        return bool(self.fields.query) and not any(others.values())

    def paths(self, field: str) -> Paths:
        """Return the paths of a field."""
        paths_of_field: Paths = getattr(self.fields, field)
        return paths_of_field

    def fits(self, names: frozenset[str]) -> int | None:
        """Return the alternative of `sniff` that fits the fields of a record, or None."""
        if self.normalize_names:
            names = frozenset(map(normalize_name, names))
            names |= {"contexts"} if any(map(NUMBERED_CONTEXT.fullmatch, names)) else set()
        if not names.isdisjoint(self.without):
            return None
        pattern = self.system_columns
        wide = [name for name in names if re.fullmatch(pattern, name)] if pattern else []
        sets = ([self._names(one, wide) for one in some] for some in self.sniff)
        matches = (place for place, some in enumerate(sets) if all(names & {*one} for one in some))
        return next(matches, None)

    def _names(self, words: str, wide: Collection[str]) -> Collection[str]:
        """Return the names that a set of `sniff` stands for."""
        if words == "@system_columns":
            return wide
        return self.paths(words[1:]) if words[0] == "@" else words.split()

    def every_path(self) -> set[str]:
        """Return all paths that are read from a record."""
        of_spans = self.spans and (self.spans.trace, self.spans.parent, self.spans.kind)
        parts = (*astuple(self.fields), *self.system, *self.variants, *(of_spans or ()))
        return {*chain(*parts), *self.ignored}

    def objects(self) -> set[str]:
        """Return the fields of a record that are objects with the fields of dotted paths."""
        return {path.partition(".")[0] for path in self.every_path() if "." in path}

    def with_columns(self, columns: Mapping[str, str]) -> Preset:
        """Return the preset with the fields in `columns` replaced."""
        fields = {
            name: tuple(path for path in paths if path not in columns.values())
            for name, paths in asdict(self.fields).items()
        }
        fields |= {
            FIELD_OF_ROLE[name]: (column,)
            for name, column in columns.items()
            if name in FIELD_OF_ROLE
        }
        if "system" in columns:
            named = replace(self, system=((columns["system"],),), variants=())
            return replace(named, fields=Fields(**fields))
        return replace(self, fields=Fields(**fields))


@cache
def presets() -> Mapping[str, Preset]:
    """Return all presets by name: built-in ones, and those of packages that can be used."""
    added = {one.name: PRESETS.get(one.name) for one in PRESETS.plugins() if not one.fault}
    return {**_built_in(), **{name: one for name, one in added.items() if one}}


@cache
def _built_in() -> Mapping[str, Preset]:
    texts = ((path, path.read_text("utf-8")) for path in sorted(_FOLDER.glob("*.toml")))
    # usual names come last: programs use them, too
    known_presets = (
        *(_preset(parse_toml(text, path.name), path) for path, text in texts),
        _answers(),
    )
    return {one.name: one for one in known_presets}


def _answers() -> Preset:
    """Return the preset of custom tables and objects, whose fields have usual names."""
    fields = {field: names_of(role) for role, field in FIELD_OF_ROLE.items()}
    of_tables = ("question", "contexts", "system", "answer", "reference")
    query, contexts, system, answer, reference, *gold = (
        " ".join(chain(*SYNONYMS[role][:2]))
        for role in (*of_tables, "relevant_ids", "reference_contexts")
    )
    return Preset(
        Fields(**fields),
        name="answers",
        sniff=(
            (query, contexts),
            (query, answer, system),
            (query, " ".join(CERTAIN_ANSWERS)),
            (query, answer, reference),
            (query, " ".join(gold)),
        ),
        looks="a question with contexts or an answer under usual names, as a table or as JSON; "
        "see below",
        source="people",
        needs=("question", "contexts", "answer"),
        system=(names_of("system"),),
        contexts_may_be_gold=True,
        normalize_names=True,
    )


def _declared(name: str, declared: object) -> Preset:
    """Return the preset that a package declares under this name."""
    preset = _preset(parse_toml(declared_text(declared, "preset"), f"{name}.toml"), f"{name}.toml")
    if preset.name != name:
        raise InputError(
            f"its name is {preset.name!r}",
            field="name",
            hint=f"Use the name {name!r} in both places",
        )
    return preset


PRESETS: Registry[Preset] = Registry("exampp.presets", "preset", LazyMapping(_built_in), _declared)
"""All presets by name; names of built-in presets are reserved."""


def preset_of(kind: str) -> Preset | None:
    """Return the preset of this name, or of a TOML file of this name, or None."""
    if not kind.endswith(".toml"):
        return PRESETS.get(kind)
    return _preset(read_toml(kind), kind)


def _expanded(value: Any) -> Any:
    """Return a value with `a.{b,c}` in lists written as `a.b` and `a.c`."""
    if isinstance(value, dict):
        return {key: _expanded(one) for key, one in value.items()}
    if not isinstance(value, list):
        return value
    return [one for part in map(_expanded, value) for one in _alternatives(part)]


def _alternatives(path: Any) -> list[Any]:
    match = re.fullmatch(r"(.*?)\{(.*?)\}(.*)", path) if isinstance(path, str) else None
    if match is None:
        return [path]
    before, names, after = match.groups()
    ends = _alternatives(after)
    return [f"{before}{name}{end}" for name in names.split(",") for end in ends]


def _preset(value: dict[str, Any], path: str | Path) -> Preset:
    try:
        preset = msgspec.convert(_expanded(value), Preset)
    except msgspec.ValidationError as error:
        fault, _, place = str(error).partition(" - at `$.")
        raise InputError(
            f"is not a preset of RAG files: {fault}", file=path, field=place.rstrip("`")
        ) from None
    for name in ("system_columns", "response_prefix"):
        try:
            re.compile(getattr(preset, name))
        except re.error as error:
            raise InputError(f"is not a pattern ({error})", file=path, field=name) from None
    others = {**asdict(preset.fields), "query_id": ()}
    if not (preset.fields.query or (preset.fields.query_id and any(others.values()))):
        raise InputError(
            "the preset names neither the question, nor what belongs to a question by its id",
            file=path,
            field="fields",
            hint='Add query = ["question"], or query_id and response',
        )
    return preset


def record_names(row: Mapping[str, Any]) -> frozenset[str]:
    """Return the names by which a record is recognised.

    They are its fields, the first parts of dotted names, and the fields of objects: `sample/output`
    is in an object of the record, `$.model` in one around it.
    """
    names = {*row, *(name.partition(".")[0] for name in row if "." in name)} - {OUTER}
    heads = {name: of[0] if isinstance(of, list) and of else of for name, of in row.items()}
    inside = (f"{name}/{one}" for name, of in heads.items() if isinstance(of, dict) for one in of)
    return frozenset((*names, *inside, *(f"{OUTER}.{name}" for name in row.get(OUTER) or ())))


def fitting_presets(names: Collection[str]) -> list[tuple[Preset, int]]:
    """Return the presets that fit the fields of a record, each with its alternative.

    The one with the most conditions comes first, usual names come last.
    """
    wanted = frozenset(names)
    fitting = [
        (one, place) for one in presets().values() if (place := one.fits(wanted)) is not None
    ]
    return sorted(fitting, key=lambda pair: (pair[0].normalize_names, -len(pair[0].sniff[pair[1]])))


def is_readable(row: Mapping[str, Any]) -> bool:
    """Return whether a preset reads a record, or its question and reference are a bank."""
    names = record_names(row)
    wanted = "question", "reference"
    return bool(fitting_presets(names)) or {*wanted} <= roles_of(names, {}, wanted).keys()


def has_system_columns(names: Collection[str]) -> bool:
    """Return whether a table of a known program has a column for each system."""
    patterns = [one.system_columns for one in presets().values() if one.system_columns]
    return any(re.fullmatch(pattern, name) for pattern in patterns for name in names)


def known_places() -> Iterator[tuple[Preset, str]]:
    """Yield the places of records in the objects of known programs."""
    return ((preset, place) for preset in presets().values() for place in preset.rows)
