"""An exam of matches: what does an item of one bank ask for, beside an item of a reference bank?

    with exampp.bank_matches.collect_matches("my.matches.exam", exam, "manual") as matches:
        matches.grade("openai", model=..., prompt="item-match")
        print(matches.grades("item-match").banks())

The items of the other banks are passages, each bank is a system that returns its items in their
order, and the reference bank is the bank. Grading, cache, decisions and pages work as for any exam.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from exampp.analysis.banks import MatchedBanks, matched_passage, matched_query
from exampp.collection import Collection, create
from exampp.graders.function import ItemToGrade, PassageToGrade
from exampp.records import Item
from exampp.stats.item_matches import DIFFERENT, SAME


def collect_matches(
    path: str | Path,
    exam: Collection,
    reference: str,
    banks: Sequence[str] = (),
    matcher: str = "text",
    grader: str | None = None,
) -> Collection:
    """Collect the items of banks of `exam` beside those of the bank `reference` in a collection.

    They are matched by `matcher`, as the grades of a grader of this name; other graders and people
    can then match them, too. An existing collection gets what changed. See
    `Collection.compare_banks` for the arguments and errors.
    """
    matched = exam.matched_banks(reference, banks, matcher, grader)
    matches = create(path, exist_ok=True)
    texts = exam.query_texts()
    units = {matched_query(one.query_id, one.subtopic_id): one for one in matched.queries}
    matches.add(
        queries={
            unit: " / ".join(filter(None, (texts.get(one.query_id), one.subtopic_id))) or unit
            for unit, one in units.items()
        },
        bank={
            unit: [
                {item.kind: item.text, "item_id": item.item_id, "weight": item.weight}
                for item in one.reference
            ]
            for unit, one in units.items()
        },
        passages={
            _passage(bank, item): item.text
            for one in matched.queries
            for bank, items in one.items.items()
            for item in items
        },
        runs={
            bank: {
                unit: [_passage(bank, item) for item in one.items[bank]]
                for unit, one in units.items()
                if one.items[bank]
            }
            for bank in matched.banks
            if any(one.items[bank] for one in matched.queries)
        },
        bank_name=reference,
        update=True,
    )
    _grade(matches, matched, matcher)
    return matches


def _passage(bank: str, item: Item) -> str:
    """Return the id of a passage that is an item; ids of items may repeat in other queries."""
    if item.item_id.startswith(f"{item.query_id}/"):
        return matched_passage(bank, item.item_id)
    return matched_passage(bank, f"{quote(item.query_id, safe='')}/{item.item_id}")


def _grade(matches: Collection, matched: MatchedBanks, name: str) -> None:
    """Store the relations that were found without a model as grades."""
    relations = {
        (unit, one.reference[column].item_id, _passage(bank, item)): int(of[row, column])
        for one in matched.queries
        for unit in [matched_query(one.query_id, one.subtopic_id)]
        for bank, of in one.relations.items()
        for row, item in enumerate(one.items[bank])
        for column in range(len(one.reference))
    }

    def relation(item: ItemToGrade, passage: PassageToGrade) -> int:
        return relations.get((item.query_id, item.item_id, passage.passage_id), DIFFERENT)

    longest = max(len(items) for one in matched.queries for items in one.items.values())
    for kind in dict.fromkeys(item.kind for one in matched.queries for item in one.reference):
        matches.grade(relation, name=name, scale=(DIFFERENT, SAME), kind=kind, depth=longest)
