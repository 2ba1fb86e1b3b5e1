"""Bank items and their importance: vital, okay, or unknown.

A vital nugget has weight 1, an okay nugget one half, so Cover counts required content twice as much
as optional content. The original word is stored in `Item.extra["importance"]` (for ARGUE under
`argue`); editing the weight changes the importance but not the word.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from exampp.records.wording import quoted

_NAMES = re.compile(
    r"(?:.+_)?model(?:_name|_id)?|llm|generator|generated_by|created_by|creator|made_by"
)
"""Keys for the model that made an item: `gpt_model` in Workbench banks."""
MODEL = "model"
"""The key of the model in an item; blank: written by a person."""
IMPROVES = "improves"
"""The key of the systems whose passages the writer of an item was shown."""
TURN = "turn"
"""The key of an item's turn of the user in a conversation, from 1."""
MODEL_KEYS = (MODEL, "generator", "llm", "gpt_model", "model_name", "generated_by", "made_by")
"""Column names for that key; likely misspellings are reported."""
_DEEPEST = 3
_VERSION = re.compile(r"(?:[-@:](?:\d{4}-?\d\d-?\d\d|latest|\d{4})|\.gguf|/)+$")


def models_in(extra: Any, depth: int = 0) -> Iterator[str]:
    """Yield model names in the provenance of an item or of a line of a bank."""
    if depth > _DEEPEST:
        return
    if isinstance(extra, list | tuple):
        for one in extra:
            yield from models_in(one, depth + 1)
    elif isinstance(extra, Mapping):
        for key, value in extra.items():
            match = _NAMES.fullmatch(str(key).lower().replace("-", "_"))
            by_machine = key == "assessor" and extra.get("is_human") is False
            if not (match or by_machine):
                yield from models_in(value, depth + 1)
                continue
            for one in value if isinstance(value, list | tuple) else (value,):
                if isinstance(one, str) and one.strip():
                    yield one.strip()
                else:
                    yield from models_in(one, depth + 1)


def makers_of(item: Mapping[str, Any], line: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the models that made an item: from `MODEL`, else from any key, else from its line.

    `item` and `line` are the `extra` fields of the item and of its entry.
    """
    if item.get(MODEL) is not None:
        return tuple(dict.fromkeys(models_in({MODEL: item[MODEL]})))
    return tuple(dict.fromkeys(models_in(item))) or tuple(dict.fromkeys(models_in(line)))


def same_model(one: str, other: str) -> bool:
    """Return whether two names mean one model, ignoring owner, folder, release date and case."""
    return bool(_short(one)) and _short(one) == _short(other)


def _short(model: str) -> str:
    return _VERSION.sub("", model.strip().casefold()).replace("\\", "/").rpartition("/")[2]


def own_bank(model: str, makers: Mapping[str, int], items: int) -> str:
    """Return the warning that a model grades its own questions; "" if it does not.

    `makers` counts the items that each model made, of `items` in the bank.
    """
    same = Counter({name: count for name, count in makers.items() if same_model(model, name)})
    if not same:
        return ""
    count = min(same.total(), items)
    subject = "The bank was" if count == items else f"{count} of the {items} items of the bank were"
    names = ", ".join(map(quoted, same))
    return f"{subject} made by the grading model ({names}), which may ask what it finds easy."


@dataclass(frozen=True, slots=True)
class Item:
    """One question or nugget of a bank.

    `kind` is "question" or "nugget"; `answers` is its answer key (possibly empty); an item to avoid
    has a negative `weight`; `extra` holds the other fields of its file, JSON-able.
    """

    item_id: str
    query_id: str
    text: str
    kind: str = "question"
    subtopic_id: str | None = None
    answers: tuple[str, ...] = ()
    weight: float = 1.0
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_avoided(self) -> bool:
        """Return whether a response should not cover it."""
        return self.weight < 0

    @property
    def turn(self) -> int | None:
        """Return the turn of the conversation to which it belongs, from 1; None: all of it."""
        turn = self.extra.get(TURN)
        return turn if isinstance(turn, int) else None


@dataclass(frozen=True, slots=True)
class BankEntry:
    """The items of one query, or of one subtopic of it, as one line of a bank file.

    `extra` holds the other fields of the line (test_collection, info, hash ...), JSON-able. `bank`
    is the bank that the file names; "" for the bank of the import.
    """

    query_id: str
    items: tuple[Item, ...]
    query_text: str = ""
    subtopic_id: str | None = None
    subtopic_text: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)
    bank: str = ""


class ItemEvidence(NamedTuple):
    """Evidence on an item from grades and judgments; None if too few passages are judged.

    `share` is the part of its query's Cover that hangs on the item. `relevant` and `not_relevant`
    are the shares of passages judged so that cover it, `wrongly` the number of the latter, and
    `wrong` the share of the judged covering passages that are not relevant.
    """

    share: float
    relevant: float | None = None
    not_relevant: float | None = None
    wrongly: int = 0
    wrong: float | None = None

    @property
    def gap(self) -> float | None:
        """The covered share of relevant passages minus that of the others."""
        if self.relevant is None or self.not_relevant is None:
            return None
        return self.relevant - self.not_relevant


@dataclass(frozen=True, slots=True)
class BankTexts:
    """A bank without grades: entries and query texts.

    `sealed` are the (query id, item id) of its sealed part; None if it was never split.
    """

    entries: tuple[BankEntry, ...] = ()
    queries: Mapping[str, str] = field(default_factory=dict)
    sealed: frozenset[tuple[str, str]] | None = None

    @property
    def items(self) -> tuple[Item, ...]:
        """The items of all queries."""
        return tuple(item for entry in self.entries for item in entry.items)

    @property
    def item_texts(self) -> dict[tuple[str, str], str]:
        """The texts of the items, by query id and item id."""
        return {(one.query_id, one.item_id): one.text for one in self.items}


def origin_tags(extra: Mapping[str, Any]) -> tuple[str, ...]:
    """Return "generated" for an item that a model wrote, and "paraphrase" if it was marked so."""
    origin = extra.get("generated")
    if not isinstance(origin, Mapping) or not origin.get("machine_made"):
        return ()
    near = origin.get("near")
    marked = isinstance(near, Mapping) and bool(near.get("differs"))
    return ("generated", *("paraphrase",) * marked)


SAME, DIFFERENT = "same_as", "different_from"
"""Keys of `Item.extra`: the ids of items that people marked as duplicates, or as different."""


def marked_items(extra: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """Return the ids of the items in a mark, `SAME` or `DIFFERENT`."""
    ids = extra.get(key)
    return tuple(one for one in ids if isinstance(one, str)) if isinstance(ids, list) else ()


def marked_pairs(extras: Mapping[str, Mapping[str, Any]], key: str) -> list[tuple[int, int]]:
    """Return the places of two items for each mark, `SAME` or `DIFFERENT`; extras by item id."""
    places = {item_id: at for at, item_id in enumerate(extras)}
    return [
        (at, places[other])
        for at, extra in enumerate(extras.values())
        for other in marked_items(extra, key)
        if other in places
    ]


def joined_groups(size: int, pairs: Iterable[tuple[int, int]]) -> tuple[int, ...]:
    """Return the group of every item: the first item that pairs join it with, or itself."""
    group = list(range(size))
    for one, other in pairs:
        low, high = sorted((group[one], group[other]))
        group = [low if number == high else number for number in group]
    return tuple(group)


VITAL, OKAY = "vital", "okay"
WEIGHTS: Mapping[str, float] = {VITAL: 1.0, OKAY: 0.5}
"""The words for importance, and their weights."""
AVOID = "avoid"
WORD_WEIGHTS: Mapping[str, float] = {**WEIGHTS, AVOID: -1.0}
"""All words for importance that files may have; `avoid` marks an item to avoid."""


def importance_of(weight: float) -> str | None:
    """Return the word for a weight; None if there is none."""
    return next((word for word, known in WEIGHTS.items() if known == weight), None)


def importance(extra: Mapping[str, Any], weight: float) -> str | None:
    """Return the importance of an item, from the word in its file and its current weight.

    This is `vital`, `okay`, or another word in the file, such as that of nuggetizer for an
    unreadable reply; None if unknown.
    """
    written = extra.get("importance")
    if written is None and isinstance(extra.get("argue"), dict):
        written = extra["argue"].get("importance")
    if not isinstance(written, str):
        return None
    return importance_of_word(written.strip().lower(), weight)


def importance_of_word(word: str | None, weight: float) -> str | None:
    """Return the importance for a `word` in the file and a current weight."""
    if word == AVOID and weight >= 0:
        return importance_of(weight)
    return importance_of(weight) or word if word in WEIGHTS else word
