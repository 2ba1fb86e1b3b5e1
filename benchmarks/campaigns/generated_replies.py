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

from exampp.prompts.generation import read_items

SLOWEST = 1.0
"""Seconds of the processor that a reply may take."""
WORDS = (
    *("tides", "moon's", "the “sea”", 'a "spring" tide', "NaCl (salt)", "Åland", "rock, sand"),
    *("0.5", "ice [old]", "C++", "a\\b", "{braces}", "water: fresh", "n't", "7 km/s", "日本"),
    "it; them",
)
OPENINGS = ("What is", "Why do", "How does", "Which of", "Who named", "When did", "Is there")
PROSE = ("", "Sure! Here they are:\n", "Of course [1].\n\n", "<think>What to ask?</think>\n")
AFTER = ("", "\nI hope this helps!", "\n\nLet me know.", "\n")


class Form(NamedTuple):
    """A way to write items; `end` gives the text that completes each of them in the reply."""

    write: Callable[[Sequence[str]], str]
    end: Callable[[str], str] = json.dumps
    is_list: bool = False


def keyed(item: str) -> dict[str, str]:
    """Return an item as an object with an answer."""
    return {"question": item, "answer": "yes"}


def keyed_end(item: str) -> str:
    """Return an item as an object of JSON."""
    return json.dumps(keyed(item))


def line_end(item: str) -> str:
    """Return an item with the end of its line."""
    return f"{item}\n"


def call(name: str, items: Sequence[str]) -> str:
    """Return the call of a tool with the items."""
    return json.dumps({"name": name, "arguments": {"questions": items}})


FORMS: Mapping[str, Form] = {
    "object": Form(lambda items: json.dumps({"questions": items})),
    "indented": Form(lambda items: json.dumps({"questions": items}, indent=2)),
    "list": Form(json.dumps),
    "with answers": Form(
        lambda items: json.dumps({"questions": list(map(keyed, items))}), keyed_end
    ),
    "lines": Form(lambda items: "\n".join(map(keyed_end, items)), keyed_end),
    "fenced": Form(lambda items: f"```json\n{json.dumps(items)}\n```"),
    "numbered keys": Form(
        lambda items: json.dumps({f"question_{n}": one for n, one in enumerate(items, 1)})
    ),
    "python": Form(repr, repr),
    "tool": Form(lambda items: call("reply", items)),
    "marked tool": Form(lambda items: f"<tool_call>{call('r', items)}</tool_call>"),
    "several tools": Form(
        lambda items: "\n".join(json.dumps({"questions": [one]}) for one in items)
    ),
    "numbers": Form(
        lambda items: "\n".join(f"{n}. {one}" for n, one in enumerate(items, 1)),
        line_end,
        is_list=True,
    ),
    "bullets": Form(lambda items: "\n".join(f"- {one}" for one in items), line_end, is_list=True),
    "labels": Form(
        lambda items: "\n\n".join(f"**Question {n}:** {one}" for n, one in enumerate(items, 1)),
        line_end,
        is_list=True,
    ),
}


class Built(NamedTuple):
    """A reply, the items that must be read, and those that may be."""

    reply: str
    truncated: bool
    must: tuple[str, ...] | None
    may: frozenset[str] | None


def whole(form: Form, items: Sequence[str], chance: random.Random) -> Built:
    """Write a reply with text around the items."""
    before = chance.choice(PROSE)
    reply = before + form.write(items) + chance.choice(AFTER if not form.is_list else AFTER[:1])
    return Built(reply, False, tuple(items), frozenset(items))


def cut(form: Form, items: Sequence[str], chance: random.Random) -> Built:
    """Cut a reply anywhere."""
    reply = chance.choice(PROSE[:3]) + form.write(items)
    reply = reply[: chance.randint(0, len(reply))]
    complete = tuple(one for one in items if form.end(one) in reply)
    truncated = form.is_list or chance.random() < 0.5
    return Built(reply, truncated, complete, frozenset(items))


def repeated(form: Form, items: Sequence[str], chance: random.Random) -> Built:
    """Repeat the items up to a limit of tokens, as small models do."""
    built = cut(form, [*items] * chance.randint(2, 12), chance)
    return built._replace(must=tuple(dict.fromkeys(built.must or ())))


def changed(form: Form, items: Sequence[str], chance: random.Random) -> Built:
    """Change random characters; what is then read is unknown."""
    characters = list(form.write(items))
    for _ in range(chance.randint(1, 12)):
        place = chance.randrange(len(characters) + 1)
        sign = chance.choice("\"'[]{},:\\`\n\0\ud800 <>*-1?")
        characters[place : place + chance.randint(0, 2)] = [sign] * chance.randint(0, 3)
    return Built("".join(characters), chance.random() < 0.5, None, None)


DAMAGES = {"whole": whole, "cut": cut, "repeated": repeated, "changed": changed}


def draw(chance: random.Random) -> list[str]:
    """Draw distinct items."""
    count = chance.randint(1, 12)
    made = (
        f"{chance.choice(OPENINGS)} {chance.choice(WORDS)} in {chance.choice(WORDS)} {number}?"
        for number in range(count)
    )
    return list(dict.fromkeys(made))


def fault(built: Built) -> str:
    """Return what is wrong with how a reply is read, or an empty text."""
    began = time.process_time()
    try:
        found = [
            one.text for one in read_items(built.reply, "question", truncated=built.truncated).made
        ]
    except Exception as error:  # the campaign reports every error
        return type(error).__name__
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
