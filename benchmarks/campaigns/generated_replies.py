"""Builds replies of models that write banks, damages them, and checks which items are read.

    python benchmarks/campaigns/generated_replies.py [--count 20000] [--seed 1]

Items are drawn, written in every form that models use, and damaged: cut anywhere, repeated, wrapped
in prose or in a call of a tool, or with random characters changed. A reply is wrong if reading
raises anything or takes more than a second; unless characters were changed, it is also wrong if a
complete item is not read, or an item is read that was not written. Exits with 1 if any is.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from exampp.prompts.generation import ParsedItem, read_items

SLOWEST = 1.0
"""Seconds of the processor that a reply may take."""
WORDS = (
    *(
        "tides",
        "moon's",
        "the “sea”",
        'a "spring" tide',
        "NaCl (salt)",
        "Åland",
        "rock, sand",
        "0.5",
    ),
    *("ice [old]", "C++", "a\\b", "{braces}", "water: fresh", "n't", "7 km/s", "日本", "it; them"),
)
OPENINGS = ("What is", "Why do", "How does", "Which of", "Who named", "When did", "Is there")
PROSE = ("", "Sure! Here they are:\n", "Of course [1].\n\n", "<think>What to ask?</think>\n")
AFTER = ("", "\nI hope this helps!", "\n\nLet me know.", "\n")

Item = ParsedItem


class Form(NamedTuple):
    """A way to write items; `ends` gives the text that completes each of them in the reply."""

    write: Callable[[Sequence[Item]], str]
    ends: Callable[[Item], str]
    is_list: bool = False


def texts(items: Sequence[Item]) -> list[str]:
    """Return the texts of items."""
    return [one.text for one in items]


def keyed(items: Sequence[Item]) -> list[dict[str, str]]:
    """Return items as objects with an answer."""
    return [{"question": one.text, "answer": "yes"} for one in items]


def quoted(item: Item) -> str:
    """Return the text of an item as JSON."""
    return json.dumps(item.text)


def of_object(item: Item) -> str:
    """Return an item as an object of JSON."""
    return json.dumps(*keyed([item]))


FORMS: Mapping[str, Form] = {
    "object": Form(lambda some: json.dumps({"questions": texts(some)}), quoted),
    "indented": Form(lambda some: json.dumps({"questions": texts(some)}, indent=2), quoted),
    "list": Form(lambda some: json.dumps(texts(some)), quoted),
    "with answers": Form(lambda some: json.dumps({"questions": keyed(some)}), of_object),
    "lines": Form(lambda some: "\n".join(map(json.dumps, keyed(some))), of_object),
    "fenced": Form(lambda some: f"```json\n{json.dumps(texts(some))}\n```", quoted),
    "numbered keys": Form(
        lambda some: json.dumps({f"question_{n}": one.text for n, one in enumerate(some, 1)}),
        quoted,
    ),
    "python": Form(lambda some: repr(texts(some)), lambda one: repr(one.text)),
    "tool": Form(
        lambda some: json.dumps({"name": "reply", "arguments": {"questions": texts(some)}}), quoted
    ),
    "marked tool": Form(
        lambda some: (
            f"<tool_call>{json.dumps({'name': 'r', 'arguments': {'questions': texts(some)}})}"
            "</tool_call>"
        ),
        quoted,
    ),
    "several tools": Form(
        lambda some: "\n".join(json.dumps({"questions": [text]}) for text in texts(some)), quoted
    ),
    "numbers": Form(
        lambda some: "\n".join(f"{n}. {text}" for n, text in enumerate(texts(some), 1)),
        lambda one: f"{one.text}\n",
        is_list=True,
    ),
    "bullets": Form(
        lambda some: "\n".join(f"- {text}" for text in texts(some)),
        lambda one: f"{one.text}\n",
        is_list=True,
    ),
    "labels": Form(
        lambda some: "\n\n".join(f"**Question {n}:** {t}" for n, t in enumerate(texts(some), 1)),
        lambda one: f"{one.text}\n",
        is_list=True,
    ),
}


class Built(NamedTuple):
    """A reply, the items that must be read, and those that may be."""

    reply: str
    truncated: bool
    must: tuple[str, ...] | None
    may: frozenset[str] | None


def whole(form: Form, items: Sequence[Item], chance: random.Random) -> Built:
    """Write a reply with text around the items."""
    before = chance.choice(PROSE)
    reply = before + form.write(items) + chance.choice(AFTER if not form.is_list else AFTER[:1])
    return Built(reply, False, tuple(texts(items)), frozenset(texts(items)))


def cut(form: Form, items: Sequence[Item], chance: random.Random) -> Built:
    """Cut a reply anywhere."""
    reply = chance.choice(PROSE[:3]) + form.write(items)
    reply = reply[: chance.randint(0, len(reply))]
    complete = tuple(one.text for one in items if form.ends(one) in reply)
    truncated = form.is_list or chance.random() < 0.5
    return Built(reply, truncated, complete, frozenset(texts(items)))


def repeated(form: Form, items: Sequence[Item], chance: random.Random) -> Built:
    """Repeat the items up to a limit of tokens, as small models do."""
    built = cut(form, [*items] * chance.randint(2, 12), chance)
    return built._replace(must=tuple(dict.fromkeys(built.must or ())))


def changed(form: Form, items: Sequence[Item], chance: random.Random) -> Built:
    """Change random characters; what is then read is unknown."""
    characters = list(form.write(items))
    for _ in range(chance.randint(1, 12)):
        place = chance.randrange(len(characters) + 1)
        sign = chance.choice("\"'[]{},:\\`\n\0\ud800 <>*-1?")
        characters[place : place + chance.randint(0, 2)] = [sign] * chance.randint(0, 3)
    return Built("".join(characters), chance.random() < 0.5, None, None)


DAMAGES = {"whole": whole, "cut": cut, "repeated": repeated, "changed": changed}


def draw(chance: random.Random) -> list[Item]:
    """Draw distinct items."""
    count = chance.randint(1, 12)
    made = (
        f"{chance.choice(OPENINGS)} {chance.choice(WORDS)} in {chance.choice(WORDS)} {number}?"
        for number in range(count)
    )
    return [Item(text) for text in dict.fromkeys(made)]


def fault(built: Built) -> str:
    """Return what is wrong with how a reply is read, or an empty text."""
    began = time.process_time()
    try:
        found = [
            one.text for one in read_items(built.reply, "question", truncated=built.truncated).made
        ]
    except Exception as error:  # the campaign reports every error
        return f"{type(error).__name__}"
    if time.process_time() - began > SLOWEST:
        return "slow"
    if built.must is not None and not {*built.must} <= {*found}:
        return "lost"
    if built.may is not None and not {*found} <= built.may:
        return "invented"
    return ""


def main() -> None:
    """Run the campaign."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    read: Counter[str] = Counter()
    wrong: Counter[tuple[str, str, str]] = Counter()
    shown: dict[tuple[str, str, str], str] = {}
    for number in range(given.count):
        chance = random.Random(f"{given.seed}/{number}")
        name, damage = chance.choice(sorted(FORMS)), chance.choice(sorted(DAMAGES))
        built = DAMAGES[damage](FORMS[name], draw(chance), chance)
        read[damage] += 1
        if what := fault(built):
            wrong[what, damage, name] += 1
            shown.setdefault((what, damage, name), built.reply)
    counts = ", ".join(f"{count:,} {damage}" for damage, count in sorted(read.items()))
    print(f"{given.count:,} replies ({counts}): {wrong.total()} wrong")
    for key, count in wrong.most_common():
        print(f"{count:7,} {' / '.join(key)}: {shown[key]!a:.300}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
