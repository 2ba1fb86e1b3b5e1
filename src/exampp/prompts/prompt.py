"""Prompts declared in TOML, and how their slots are filled.

Slot texts are inserted literally and in a single pass: braces inside a passage are preserved, and
no slot text is searched for further slots. If the result is too long for the model, only the slot
named by `cut` is truncated; instructions and question stay complete.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exampp.errors import InputError
from exampp.prompts.replies import read_reply, reading_names
from exampp.prompts.reply_fields import TEXT_FIELDS
from exampp.records.graders import State
from exampp.records.ids import content_hash as hash_of
from exampp.records.turns import NO_TURNS, earlier_turns, question_of
from exampp.records.wording import suggest

GRADES = ("question", "nugget", "query", "answer")
SLOTS = {
    "question": "the item's text, in a prompt that grades questions or nuggets",
    "nugget": "the same",
    "nuggets": "the same, as a Python list",
    "items": "the items of one request, each on a line with its number",
    "count": "their number",
    "query": "the query's text, with all turns of a conversation",
    "conversation": "the earlier turns; {query} is then the last one",
    "context": "the passage",
    "correct_answer": "the item's known answers, joined by 'or'",
    "answer": "the extracted answer, in a prompt that verifies answers",
}
"""The slots of prompts, and their content."""
_ITEM = ("question", "nugget")
_SHARED = ("items", "nuggets", "count", "query", "conversation", "context")
"""Slots of a prompt with several items: lists of the items, and texts that they share."""
_ITEM_OF = {"nuggets": "nugget", "items": "nugget"}
_NEEDED: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "question": (_ITEM, ("context",)),
    "nugget": (_ITEM, ("context",)),
    "query": (("query", *_ITEM), ("context",)),
    "answer": ((*_ITEM, "correct_answer"), ("answer",)),
}
"""Slots that a prompt needs, by its kind: one for the item, and one for the text to grade."""
_WITHOUT = ("all items would get the same prompt", "the model would not see what it grades")
PLACEHOLDER = re.compile(r"\{\{([A-Za-z_]\w*)\}\}|\{([A-Za-z_]\w*)\}", re.ASCII)
TEMPLATE_FREE = "thresholds"
MOST_ITEMS = 100
NAME = re.compile(r"[a-z0-9][a-z0-9._-]*", re.ASCII)


@dataclasses.dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt for a grader, and how to read its replies.

    A prompt is data: text with `{slots}`, the scale of its replies, and the name of the rules that
    read them. A template writes `{question}` for a slot and `{{question}}` for literal braces; all
    other braces, such as those of a JSON example, are text.

    Attributes:
        grades: Kinds of item that it can grade (question, nugget, query; `answer` for a
            verification).
        lowest: Lowest rating; 0 for a verdict.
        highest: Highest rating; 1 for a verdict.
        labels: The possible replies if they are few and single tokens.
        field: The relevant value of a JSON reply.
        reply: The fields of a JSON reply in order, if it has more than the rating: `field`,
            `reason`, `evidence`.
        items: Maximum items of one passage in a request. With more than one, a JSON reply has the
            ratings by number, and `field` is `1`; a reply of support labels is a list in order.
        properties: The fields of a JSON reply without a rating, as properties of a JSON schema.
        cut: The slot that is truncated if the prompt is too long.
        user: Text for the model; without it, nothing is sent.
        workbench: Fields of the reference's `prompt_info`; under `verified` those that differ if
            known answers were compared.
    """

    name: str
    title: str
    source: str
    grades: tuple[str, ...]
    reading: str
    lowest: int
    highest: int
    slots: tuple[str, ...] = ()
    cut: str = ""
    user: str = ""
    system: str = ""
    labels: tuple[str, ...] = ()
    field: str = ""
    reply: tuple[str, ...] = ()
    items: int = 1
    workbench: Mapping[str, Any] = dataclasses.field(default_factory=dict, hash=False)
    properties: Mapping[str, Any] = dataclasses.field(default_factory=dict, hash=False)

    @property
    def reply_field(self) -> str:
        """Return the value that counts in a JSON reply: by default `grade`, if labels are few."""
        return self.field or ("grade" if self.labels else "")

    @property
    def scored_labels(self) -> tuple[str, ...]:
        """Return the labels if a single one is the whole reply, so that they can be scored."""
        return () if self.reply or self.items > 1 else self.labels

    @property
    def verifies(self) -> bool:
        """Return whether known answers matter, in the prompt or in reading its reply."""
        return self.reading == "extraction" or self.asks_key

    @property
    def asks_key(self) -> bool:
        """Return whether the prompt shows the known answers, so that its reply depends on them."""
        return "correct_answer" in self.slots


def prompt_content_hash(prompt: Prompt) -> str:
    """Hash (SHA-256, hex) all that determines a reply: texts, slot to cut, labels, JSON fields.

    Name, title, source and Workbench names are excluded, as are scale and rules of reading: the raw
    reply is stored and can be reread.
    """
    content = {
        "system": prompt.system,
        "user": prompt.user,
        "cut": prompt.cut,
        "labels": prompt.labels,
        "field": prompt.field,
        **({"reply": prompt.reply} if prompt.reply else {}),
        **({"items": prompt.items} if prompt.items > 1 else {}),
    }
    return hash_of(json.dumps(content, sort_keys=True, ensure_ascii=False))


def placeholders(template: str) -> tuple[str, ...]:
    """Return the names of the slots in a template, in order of appearance."""
    return tuple(dict.fromkeys(m[2] for m in PLACEHOLDER.finditer(template) if m[2]))


def used_slots(data: Mapping[str, Any], keys: Iterable[str] = ("user", "system")) -> dict[str, str]:
    """Return the slots that a declaration uses, each with the first key that uses it."""
    used: dict[str, str] = {}
    for key in keys:
        for slot in placeholders(str(data.get(key, ""))):
            used.setdefault(slot, key)
    return used


def no_slot(name: str, known: Iterable[str]) -> tuple[str, str]:
    """Return the fault of an unknown slot, and the hint."""
    slots = ", ".join(f"{{{slot}}}" for slot in known)
    near = suggest(name, known)
    return (
        f"the prompt uses {{{name}}}, which is not a slot",
        f"{near} " * bool(near)
        + f"The slots are {slots}; write {{{{{name}}}}} for the braces themselves",
    )


def is_text(value: object) -> bool:
    """Return whether a value is a text."""
    return isinstance(value, str)


def _is_strings(value: object) -> bool:
    return isinstance(value, list) and all(map(is_text, value))


DeclaredKey = tuple[Callable[[Any], bool], str, bool]
"""A key of a declaration: the test of its value, what the value must be, whether it is required."""
_KEYS: dict[str, DeclaredKey] = {
    "name": (lambda v: is_text(v) and bool(NAME.fullmatch(v)), "a short name", True),
    "title": (is_text, "a text", True),
    "source": (is_text, "a text", False),
    "grades": (lambda v: is_text(v) or _is_strings(v), "a text or a list of texts", True),
    "reading": (is_text, "a text", True),
    "scale": (lambda v: isinstance(v, dict), "a table such as { lowest = 0, highest = 5 }", False),
    "verdict": (lambda v: v is True, "true (for a scale, remove it)", False),
    "slots": (_is_strings, 'a list of texts such as ["question", "context"]', False),
    "cut": (is_text, "the name of a slot", False),
    "labels": (_is_strings, 'a list of texts such as ["0", "1"]', False),
    "field": (is_text, "a text", False),
    "reply": (_is_strings, 'a list of texts such as ["evidence", "reason", "grade"]', False),
    "items": (lambda v: type(v) is int and 1 <= v <= MOST_ITEMS, "a number from 1 to 100", False),
    "user": (lambda v: is_text(v) and v.strip() != "", "a text that is not empty", False),
    "system": (is_text, "a text", False),
    "workbench": (lambda v: isinstance(v, dict), "a table", False),
}


def build_prompt(data: Mapping[str, Any], file: str | Path | None = None) -> Prompt:
    """Return the prompt of a declaration; raise InputError with place and fix if it is invalid."""
    try:
        check_keys(data, _KEYS)
        lowest, highest = _scale(data)
        grades = data["grades"]
        prompt = Prompt(
            name=data["name"],
            title=data["title"],
            source=data.get("source", ""),
            grades=(grades,) if isinstance(grades, str) else tuple(grades),
            reading=data["reading"],
            lowest=lowest,
            highest=highest,
            slots=tuple(data.get("slots", used_slots(data))),
            cut=data.get("cut", ""),
            user=data.get("user", ""),
            system=data.get("system", ""),
            labels=tuple(data.get("labels", ())),
            field=data.get("field", ""),
            reply=tuple(data.get("reply", ())),
            items=data.get("items", 1),
            workbench=_workbench(data.get("workbench", {})),
        )
        _check_values(prompt)
        _check_slots(prompt)
    except InputError as error:
        raise error.at(file) from None
    return prompt


def check_keys(
    data: Mapping[str, Any], keys: Mapping[str, DeclaredKey], file: str | Path | None = None
) -> None:
    """Reject unknown and missing keys of a declaration, and values of the wrong form."""
    for key, value in data.items():
        if key not in keys:
            raise InputError(
                f"unknown key '{key}'",
                file=file,
                field=key,
                hint=suggest(key, keys) or f"Known keys are {', '.join(keys)}",
            )
        test, form, _ = keys[key]
        if not test(value):
            what = f"'{key}' is {json.dumps(value, default=str)}"
            raise InputError(what, file=file, field=key, hint=f"Use {form}")
    for key, (_, form, required) in keys.items():
        if required and key not in data:
            raise InputError(f"'{key}' is missing", file=file, field=key, hint=f"Add {form}")


def _scale(data: Mapping[str, Any]) -> tuple[int, int]:
    if ("scale" in data) == ("verdict" in data):
        raise InputError(
            "a prompt has either a scale or a verdict",
            field="scale",
            hint="Use one of: scale = { lowest = 0, highest = 5 }, verdict = true",
        )
    if "verdict" in data:
        return 0, 1
    scale = data["scale"]
    ends = (scale.get("lowest"), scale.get("highest"))
    whole = all(type(end) is int and end >= 0 for end in ends)
    if set(scale) != {"lowest", "highest"} or not whole or ends[0] >= ends[1]:
        raise InputError(
            f"the scale is {json.dumps(scale, default=str)}",
            field="scale",
            hint="Use whole numbers, lowest below highest: scale = { lowest = 0, highest = 5 }",
        )
    return ends


def _workbench(table: Mapping[str, Any]) -> dict[str, Any]:
    for place, part in (("workbench", table), ("workbench.verified", table.get("verified", {}))):
        named = part.get("prompt_class", "") if isinstance(part, dict) else None
        if not isinstance(named, str) and not _is_strings(named):
            raise InputError(
                "'prompt_class' is not a text",
                field=f"{place}.prompt_class",
                hint='Write it as prompt_class = "MyPrompt"',
            )
    return dict(table)


def _check_values(prompt: Prompt) -> None:
    for kind in prompt.grades:
        if kind not in GRADES:
            raise InputError(
                f"'{kind}' cannot be graded",
                field="grades",
                hint=suggest(kind, GRADES) or f"Use one of {', '.join(GRADES)}",
            )
    if prompt.reading not in reading_names():
        raise InputError(
            f"unknown rules of reading '{prompt.reading}'",
            field="reading",
            hint=suggest(prompt.reading, reading_names())
            or f"Use one of {', '.join(reading_names())}",
        )
    if (prompt.items > 1) != bool({"items", "count"} & set(prompt.slots)):
        raise InputError(
            f"a request has up to {prompt.items} items",
            field="items",
            hint="Set items = 10, for example, in a prompt with {items} or {count}, and only there",
        )
    if prompt.items > 1 and (single := [one for one in prompt.slots if one not in _SHARED]):
        raise InputError(
            f"a request for several items has no {{{single[0]}}}",
            field="slots",
            hint=f"Use only {', '.join(f'{{{slot}}}' for slot in _SHARED)}",
        )
    if prompt.items > 1 and (prompt.reply or prompt.field not in ("", "1")):
        raise InputError(
            "the replies of several items have only their ratings, by number",
            field="reply" if prompt.reply else "field",
            hint='Remove reply, and write field = "1"',
        )
    known = (prompt.reply_field, *TEXT_FIELDS)
    if prompt.reply and (
        not set(prompt.reply) <= set(known)
        or prompt.reply.count(prompt.reply_field) != 1
        or len(set(prompt.reply)) < len(prompt.reply)
    ):
        raise InputError(
            f"the fields of the reply are {', '.join(prompt.reply)}",
            field="reply",
            hint=f"List {prompt.reply_field or 'the rating, named by field'!r} once, and reason or "
            "evidence before or after it",
        )
    for label in prompt.labels:
        outcome = read_reply(prompt.reading, label, lowest=prompt.lowest, highest=prompt.highest)
        if outcome.state is not State.GRADED:
            raise InputError(
                f"the label '{label}' cannot be read as a grade",
                field="labels",
                hint=f"Use labels that '{prompt.reading}' reads on the scale {prompt.lowest} to "
                f"{prompt.highest}, or remove labels",
            )


def _check_slots(prompt: Prompt) -> None:
    if not prompt.user and (prompt.reading != TEMPLATE_FREE or prompt.slots or prompt.system):
        raise InputError(
            "'user' is missing",
            field="user",
            hint="Add the text for the model, with its slots in braces",
        )
    used = used_slots({"user": prompt.user, "system": prompt.system})
    known = _slots_of(prompt.grades)
    idle = dict.fromkeys((name for name in prompt.slots if name not in used), "slots")
    for name, key in {**used, **idle}.items():
        if name not in known:
            what, hint = no_slot(name, known)
            grades = f" of a prompt that grades {' and '.join(prompt.grades)}"
            raise InputError(what + grades * (name in SLOTS), field=key, hint=hint)
        if name not in prompt.slots:
            raise InputError(
                f"the text uses {{{name}}}, which is not among the slots",
                field=key,
                hint="Add it to slots, or remove slots",
            )
        if name in idle:
            raise InputError(
                f"the slot '{name}' is declared but not used",
                field="slots",
                hint=f"Write {{{name}}} into the text, or remove it from slots",
            )
    _check_needed(prompt, used)
    if prompt.user and prompt.cut not in prompt.slots:
        what = f"'{prompt.cut}' is not among the slots" if prompt.cut else "'cut' is missing"
        raise InputError(
            what,
            field="cut",
            hint="Name the slot to truncate if the prompt is too long: one of "
            f"{', '.join(prompt.slots) or '(declare slots first)'}",
        )


def _check_needed(prompt: Prompt, used: Collection[str]) -> None:
    for kind in prompt.grades if prompt.user else ():
        for needed, why in zip(_NEEDED[kind], _WITHOUT, strict=True):
            if not set(needed) & {_ITEM_OF.get(slot, slot) for slot in used}:
                slots = " or ".join(f"{{{slot}}}" for slot in needed)
                raise InputError(
                    f"the text has no {slots}: {why}", field="user", hint=f"Add {slots} to it"
                )


def _slots_of(grades: Iterable[str]) -> tuple[str, ...]:
    """Return the slots of a prompt by its kinds: extracted answers replace passages."""
    verifies = "answer" in grades
    return tuple(slot for slot in SLOTS if slot != ("context" if verifies else "answer"))


def query_slots(prompt: Prompt, text: str) -> dict[str, str]:
    """Return the slots of a prompt for a query; a conversation is divided if the prompt does so."""
    if "conversation" not in prompt.slots:
        return {"query": text}
    return {"query": question_of(text), "conversation": earlier_turns(text) or NO_TURNS}


def item_slots(items: Sequence[str]) -> dict[str, str]:
    """Return the slots of a prompt for the items of one request, in `items` on one line each."""
    lines = (" ".join(text.split()) for text in items)
    return {
        "items": "\n".join(f"{number}. {line}" for number, line in enumerate(lines, 1)),
        "nuggets": repr(list(items)),
        "count": str(len(items)),
    }


Offsets = Callable[[str], Sequence[tuple[int, int]]]
Length = Callable[[str, str], int]


@dataclass(frozen=True, slots=True)
class Filled:
    """A prompt ready to send; `kept` counts the remaining characters of a truncated slot."""

    system: str
    user: str
    cut: bool = False
    kept: int | None = None


def fill(prompt: Prompt, slots: Mapping[str, str]) -> Filled:
    """Insert the slot texts into the prompt, literally and in a single pass.

    Texts for other slots are ignored, so one mapping serves all prompts.

    Raises:
        InputError: A declared slot has no text, or the prompt has no text to fill.
    """
    if not prompt.user:
        raise InputError(
            f"the prompt '{prompt.name}' has no text for a model",
            hint="Use another prompt for this grader (exampp prompts)",
        )
    for name in prompt.slots:
        if name not in slots:
            raise InputError(
                f"the prompt '{prompt.name}' needs a text for {{{name}}}",
                field=name,
                hint=f"The prompt grades items of the kind {' or '.join(prompt.grades)}",
            )

    return Filled(insert_texts(prompt.system, slots), insert_texts(prompt.user, slots))


def insert_texts(template: str, slots: Mapping[str, str]) -> str:
    """Insert texts into the slots of a template, and write its literal braces."""
    return PLACEHOLDER.sub(lambda m: slots[m[2]] if m[2] else f"{{{m[1]}}}", template)


def fit_prompt(
    prompt: Prompt,
    slots: Mapping[str, str],
    limit: int,
    length: Length,
    offsets: Offsets,
) -> Filled:
    """Fill the prompt within `limit` tokens, truncating its `cut` slot if necessary.

    The slot is cut at the end of a token of the slot's text, which is sliced and never decoded from
    ids. A text can have other tokens inside the prompt than alone, so every candidate is counted as
    a whole.

    Args:
        prompt: The prompt.
        slots: Texts by slot.
        limit: Maximum tokens.
        length: Returns the tokens of a user and a system text, with those of a chat template.
        offsets: Returns the (start, end) characters of the model's tokens, without special tokens.

    Raises:
        InputError: Instructions and question alone exceed the limit, or leave no room for a token
            of the slot.

    Source: FLAN-T5-EXAM, section 3.2.2 (the question remains intact).
    """

    def count(filled: Filled) -> int:
        return length(filled.user, filled.system)

    whole = fill(prompt, slots)
    if count(whole) <= limit:
        return whole
    text = slots[prompt.cut]
    alone = count(fill(prompt, {**slots, prompt.cut: ""}))
    if alone > limit:
        raise _no_room(prompt, f"has {alone} tokens without its {prompt.cut}", limit)
    ends = [end for _, end in offsets(text)]
    room = limit - alone
    keep = min(len(ends), room)
    while keep > 0 and ends[keep - 1] > 0:
        end = ends[keep - 1]
        filled = fill(prompt, {**slots, prompt.cut: text[:end]})
        excess = count(filled) - limit
        if excess <= 0:
            return Filled(filled.system, filled.user, cut=True, kept=end)
        keep = min(keep - 1, keep * room // (room + excess))
    raise _no_room(
        prompt, f"leaves no room for its {prompt.cut} ({alone} tokens without it)", limit
    )


def _no_room(prompt: Prompt, what: str, limit: int) -> InputError:
    return InputError(
        f"the prompt '{prompt.name}' {what}; the limit is {limit}",
        hint="Shorten the item's text, or grade with a model with a higher limit",
    )
