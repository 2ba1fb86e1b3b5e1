"""Prompts that generate the items of a bank, and parsers of their replies.

A template may use the slots `{query_text}` and `{query_title}` (both are the query's text),
`{query_subtopic}`, `{count}` (the number of items) and `{instruction}`. The last one is the reply
format, and may use these slots; if a template does not use it, it is appended. `{passages}` are
numbered passages, `{known}` the existing items, as a Python list, and `{known_count}` their number.

The items of a prompt with `trial = true` go on trial, with weight 0: `{passages}` are then those
that one of two systems with the same score returns, and `{known}` the items with their faults.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from exampp.errors import InputError
from exampp.prompts.answers import is_refusal
from exampp.prompts.prompt import (
    NAME,
    DeclaredKey,
    check_keys,
    insert_texts,
    is_text,
    no_slot,
    placeholders,
    used_slots,
)
from exampp.prompts.replies import strip_thoughts
from exampp.records.ids import content_hash
from exampp.sanitize import sanitize

MAKES = ("question", "nugget")
SLOTS = ("query_text", "query_title", "query_subtopic", "count", "passages", "known", "known_count")
WINDOW = 10
"""Default number of passages for a prompt with `{passages}`, as in nuggetizer."""
PASSAGE_CHARACTERS = 2000
"""Characters after which a passage in a prompt is truncated, at a word."""
MOST_ITEMS = 200
"""Maximum number of items that a request can ask for."""
UNCOUNTED_ITEMS = 40
"""Maximum items of a JSON reply to a prompt without a number; a model may repeat itself forever."""
_KEYS: dict[str, DeclaredKey] = {
    "name": (is_text, "a text", True),
    "makes": (is_text, "a text", True),
    "count": (
        lambda v: type(v) is int and 1 <= v <= MOST_ITEMS,
        f"a number from 1 to {MOST_ITEMS}",
        False,
    ),
    "trial": (lambda v: isinstance(v, bool), "true or false", False),
    "title": (is_text, "a text", False),
    "source": (is_text, "a text", False),
    "user": (is_text, "a text", True),
    "system": (is_text, "a text", False),
    "instruction": (is_text, "a text", False),
    "keys_instruction": (is_text, "a text", False),
}
_INSTRUCTION = (
    "Give the {one} set in the following JSON format: "
    '```json {{ "{many}" : [{one}_text_1, {one}_text_2, ...] }}```'
)
_KEYS_INSTRUCTION = (
    "Give the {one} set, each {one} with a short correct answer, in the following JSON format: "
    '```json {{ "{many}" : [{{ "{one}" : {one}_text_1, "answer" : answer_text_1 }}, '
    '{{ "{one}" : {one}_text_2, "answer" : answer_text_2 }}, ...] }}```'
)
_MORE = (
    "The test bank has the following {many} already:\n{known}\nGive exactly {count} new {many} "
    "instead, about what none of these covers. "
)
_GROUNDED = "Ask only for what these passages say.\n{passages}\n"


@dataclass(frozen=True, slots=True)
class GenerationPrompt:
    """A prompt for generating items; `makes` is their kind, question or nugget.

    `instruction` is the reply format, `keys_instruction` the same with answer keys. `count` is the
    number of items that it asks for; 0 if it names none. Items of a `trial` go on trial.
    """

    name: str
    title: str
    source: str
    makes: str
    user: str
    system: str
    instruction: str
    keys_instruction: str
    count: int = 0
    trial: bool = False

    @property
    def needs_subtopic(self) -> bool:
        """Return whether it needs a subtopic of a query."""
        texts = (self.user, self.system, self.instruction, self.keys_instruction)
        return any("query_subtopic" in placeholders(text) for text in texts)

    @property
    def needs_passages(self) -> bool:
        """Return whether it generates items from passages."""
        return "passages" in placeholders(self.user)


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """Options of a generation request besides the prompt.

    `keys` requests answers, `more` is the number of items beyond the known ones (0: none),
    `grounded` is the number of passages shown, `count` the number of items (0: that of the prompt).
    """

    keys: bool = False
    more: int = 0
    grounded: int = 0
    count: int = 0

    def asked(self, prompt: GenerationPrompt) -> int:
        """Return the number of items that a request asks for; 0 if it names none."""
        return self.more or self.count or prompt.count


def prompt_hash(prompt: GenerationPrompt, wish: GenerationRequest) -> str:
    """Hash (SHA-256) all that determines the request, except the texts of query and passages."""
    instruction = prompt.keys_instruction if wish.keys else prompt.instruction
    extras = [str(wish.grounded)] if wish.grounded else []
    extras += [f"more {wish.more}"] if wish.more else []
    count = str(wish.count or prompt.count)
    texts = [text.replace("{count}", count) for text in (prompt.system, prompt.user, instruction)]
    if wish.count and texts == [prompt.system, prompt.user, instruction]:
        extras.append(f"count {wish.count}")
    return content_hash(prompt.makes, *texts, *extras)


def asks_for_json(prompt: GenerationPrompt, wish: GenerationRequest) -> bool:
    """Return whether the prompt asks for a reply in JSON."""
    instruction = prompt.keys_instruction if wish.keys else prompt.instruction
    return "json" in f"{prompt.system} {prompt.user} {instruction}".lower()


def reply_properties(prompt: GenerationPrompt, wish: GenerationRequest) -> dict[str, Any]:
    """Return the fields of a reply in JSON, as properties of a JSON schema.

    The maximum number of items ends a reply that would repeat itself.
    """
    item: dict[str, Any] = {"type": "string"}
    if wish.keys:
        names = (prompt.makes, "answer")
        item = {"type": "object", "properties": dict.fromkeys(names, item), "required": [*names]}
        item["additionalProperties"] = False
    most = wish.asked(prompt) or UNCOUNTED_ITEMS
    return {f"{prompt.makes}s": {"type": "array", "items": item, "minItems": 1, "maxItems": most}}


def fill_request(
    prompt: GenerationPrompt,
    wish: GenerationRequest,
    query_text: str,
    subtopic: str = "",
    *,
    known: Sequence[str] = (),
    passages: Sequence[str] = (),
) -> tuple[str, str]:
    """Return the system and the user text of one request; slot texts are inserted literally."""
    slots = {
        "query_text": query_text,
        "query_title": query_text,
        "query_subtopic": subtopic,
        "count": str(wish.count or prompt.count),
        "passages": "\n".join(f"[{number}] {text}" for number, text in enumerate(passages, 1)),
        "known": repr(list(known)),
        "known_count": str(len(known)),
    }
    template = prompt.keys_instruction if wish.keys else prompt.instruction
    instruction = insert_texts(template, slots)
    many = f"{prompt.makes}s"
    used = {*placeholders(prompt.user), *placeholders(prompt.system), *placeholders(template)}
    if "known" in used:
        pass
    elif wish.more and known:
        numbered = "\n".join(f"- {text}" for text in known)
        instruction = _MORE.format(many=many, known=numbered, count=wish.more) + instruction
    elif number := wish.more or ("count" not in used and wish.count):
        instruction = f"Give exactly {number} {many}. {instruction}"
    if passages and "passages" not in used:
        numbered = "\n".join(
            f"Passage {n}: {_shortened(text)}" for n, text in enumerate(passages, 1)
        )
        instruction = _GROUNDED.format(passages=numbered) + instruction
    slots["instruction"] = instruction
    user = insert_texts(prompt.user, slots)
    if instruction and "instruction" not in used:
        user = f"{user.rstrip()} {instruction}"
    return insert_texts(prompt.system, slots), user


def _shortened(text: str) -> str:
    flat = " ".join(text.split())
    if len(flat) <= PASSAGE_CHARACTERS:
        return flat
    return flat[:PASSAGE_CHARACTERS].rpartition(" ")[0] or flat[:PASSAGE_CHARACTERS]


# ---- declarations --------------------------------------------------------------------------------


def build_generation_prompt(
    data: Mapping[str, Any], file: str | Path | None = None
) -> GenerationPrompt:
    """Return the prompt of a declaration; raise InputError with place and fix if it is invalid."""
    check_keys(data, _KEYS, file)
    for field, what, hint in _faults(data):
        raise InputError(what, file=file, field=field, hint=hint)
    words = {"one": data["makes"], "many": f"{data['makes']}s"}
    usual = {
        **dict.fromkeys(("title", "source", "system"), ""),
        "instruction": _INSTRUCTION.format(**words),
        "keys_instruction": _KEYS_INSTRUCTION.format(**words),
    }
    return GenerationPrompt(**{**usual, **data})


def _faults(data: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield the faults of the values of a declaration: the key, the fault, the hint."""
    if not NAME.fullmatch(data["name"]):
        yield "name", f"'{data['name']}' is not a valid name", "Use a-z, 0-9, dots and dashes"
    if data["makes"] not in MAKES:
        yield (
            "makes",
            f"a bank cannot have '{data['makes']}'",
            f"Use one of {', '.join(MAKES)}",
        )
    texts = used_slots(data, ("user", "system"))
    instructions = used_slots(data, ("instruction", "keys_instruction"))
    for used, known in ((texts, (*SLOTS, "instruction")), (instructions, SLOTS[:4])):
        for slot, key in used.items():
            if slot not in known:
                what, hint = no_slot(slot, known)
                yield key, what, hint
    if "count" in {**texts, **instructions} and "count" not in data:
        yield "count", "the prompt uses {count}, which has no default", "Add count = 10"
    if not {"query_text", "query_title"} & set(texts):
        yield "user", "the text does not name the query", "Add {query_text} to it"


_QUESTION_WORDS = (
    r"(?:what|which|who|whom|whose|when|where|why|how|in what|in which|to what|for what|on what|"
    r"under what|is|are|was|were|do|does|did|can|could|has|have|had|will|would|should|may|might|"
    r"describe|explain|name|list|define|question|q\d{0,3})"
)
_NUMBER = re.compile(r"\(?(?P<number>[0-9]{1,3}|[A-Za-z])[.):](?:\s+|(?=[^\W\d_a-z]|[\"“*]))")
_LABEL = r"(?:question|nugget|key ?fact|fact|item|q)"
_OPENINGS = (
    # a bullet, a quoted line, a heading, a checkbox
    re.compile(r"(?:[-*+•‣◦▪·\u2013\u2014>]|#{2,6})\s+(?:\[[ xX]?\]\s+)?"),
    # Question: Q1. Nugget 2) Key fact #3 - **Question 1:** **Question 1**:
    re.compile(
        rf"(?i)(?P<bold>\*\*|__)?(?:{_LABEL}\s*"
        r"(?:#?\s*\d{1,3}(?:(?P=bold))?\s*(?:[.:)]|[-\u2013\u2014](?=\s))|(?:(?P=bold))?:)|q\.)"
        r"(?:(?P=bold))?(?:\s+|(?=[\"“*]))"
    ),
)
_NUMBER_BEFORE_A_QUESTION = re.compile(
    rf"\(?(?:\d{{1,3}}[.):]+\s*(?=[\"“*_]*(?i:{_QUESTION_WORDS})\b)"
    rf"|(?:[A-Za-z]|[IVXivx]{{2,5}})[.):]+\s*(?=[\"“*_]*(?=[A-Z])(?i:{_QUESTION_WORDS})\b))"
)
_AROUND = tuple(
    re.compile(rf"{start}(?=\S)(?P<inner>{inner})(?<=\S){end}", re.DOTALL)
    for start, end, inner in (
        (r"\*\*", r"\*\*", r"(?:(?!\*\*).)+"),
        ("__", "__", "(?:(?!__).)+"),
        (r"\*", r"\*", r"[^*]+"),
        ("_", "_", "[^_]+"),
        ("`", "`", "[^`]+"),
        ('"', '",?', '[^"]+'),
        ("“", "”,?", "[^“”]+"),
        ("«", "»,?", "[^«»]+"),
        ("\u2018", "\u2019,?", "[^\u2018\u2019]+"),
        ("'", "',?", "(?:[^']|(?<=\\w)'(?=\\w))+"),
    )
)
_BOLD = re.compile(r"(?<![\w*])\*\*(?=[^\s*])((?:(?!\*\*).)+?)(?<=[^\s*])\*\*(?![\w*])")


def strip_markup(text: str) -> str:
    """Return the item on one line, encodable, without markup; blank if nothing remains.

    A year, a quoted title or a list number that may belong to the item is not removed.
    """
    return _BOLD.sub(r"\1", _peeled(text, (*_OPENINGS, _NUMBER_BEFORE_A_QUESTION)))


def strip_list_markup(texts: Sequence[str]) -> list[str]:
    """Return the items of one list without markup, and without consecutive numbers.

    A mark is removed if it cannot be anything else. A number or letter with a dot may belong to the
    item ("2. Samuel", "A. Lincoln"): it is removed before a question word, or if those of all items
    are consecutive.
    """
    peeled = [_peeled(text, _OPENINGS) for text in texts]
    marks = [_NUMBER.match(text) for text in peeled]
    numbers = [_count(mark["number"]) for mark in marks if mark]
    counting = len(numbers) == len(texts) > 1
    if counting and all(later == number + 1 for number, later in pairwise(numbers)):
        peeled = [text[mark.end() :] for text, mark in zip(peeled, marks, strict=True) if mark]
    return [strip_markup(text) for text in peeled]


def _peeled(text: str, openings: Sequence[re.Pattern[str]]) -> str:
    text = " ".join(re.sub(r"[\x00-\x20\x7f\s]+", " ", sanitize(text)[0]).split())
    before = None
    while before != text:
        before = text
        for opening in openings:
            mark = opening.match(text)
            if mark and mark.end() < len(text):
                text = text[mark.end() :].strip()
        for around in _AROUND:
            if mark := around.fullmatch(text):
                text = mark["inner"].strip()
    return text


def _count(number: str) -> int:
    """Return the number of a list mark, which may be digits or a letter."""
    return int(number) if number.isdecimal() else ord(number.lower()) - ord("a") + 1


class ParsedItem(NamedTuple):
    """An item as written by the model, with its answers."""

    text: str
    answers: tuple[str, ...] = ()


class ParsedItems(NamedTuple):
    """The distinct items of a reply, and the rule that found them or the reason for none.

    `repeated` is the number of items that repeat an earlier one of the reply.
    """

    made: tuple[ParsedItem, ...]
    rule: str
    repeated: int = 0


_MOST = 200_000
"""Maximum characters of a reply that are read, excluding reasoning."""
UNFINISHED_THOUGHT = "the reply ends within a thought of the model"
_MOST_STARTS = 200
_FENCE = re.compile(r"(?s)```[A-Za-z]*\s*(.*?)(?:```|\Z)")
_ECHO = re.compile(r"(?i)(?:question|nugget|answer)_text_\d+|\.{3}|…")
_NUMBERED_LINE = re.compile(
    r"(?i)\s*(?P<bold>\*\*)?(?:\(?\d{1,3}[.):]|[QN]\d{1,3}[.:)]"
    r"|(?:question|nugget|key ?fact|fact|item)\s*#?\d{0,3}(?P<early>\*\*)?[.:)])"
    r"(?P<closed>\*\*)?\s+(?P<said>\S.*)"
)
_BULLET = re.compile(r"\s*[-*•\u2013]\s+(?P<said>\S.*)")
_COUNTED = re.compile(r"(?i)(?:question|nugget|keyfact|fact|item|q|n)?(?:text)?\d+")
_WORD = re.compile(r"\w")
_OPENING = re.compile(r"[{\[]")
_CLOSING = re.compile(r"[}\]]")
_MOST_ENDS = 20
_BRACKETS = {"{": "}", "[": "]"}
_TOKEN = re.compile(
    r"\s*+(?:(?P<open>[{\[])|(?P<close>[}\]])|(?P<sign>[,:])"
    r"|(?P<value>\"(?:[^\"\\]|\\.)*+\"|'(?:[^'\\]|\\.|'(?!\s*+(?:[,:}\]]|\Z)))*+'|[\w.+-]++))",
    re.DOTALL,
)
"""A part of JSON, or of a Python literal in its notation."""
_AFTER_PART = re.compile(r"\s*+(?:[,:}\]]|\Z)")
_ADJACENT = re.compile(r"""["']\s+["']""")
_JSON_LIKE = re.compile(r"[{\[]\s*[\"'{\[“]")
_TEXTS = {
    "question": ("question", "questiontext", "text", "item"),
    "nugget": ("nugget", "nuggettext", "keyfact", "fact", "text", "item"),
}
_LISTS = {
    "question": ("questions", "questionset", "questionbank", "items"),
    "nugget": ("nuggets", "nuggetset", "keyfacts", "facts", "items"),
}
_CALLED = ("arguments", "parameters")
"""Keys of a call of a tool, beside its `name`."""
_ANSWERS = ("answer", "answers", "answertext", "correctanswer", "goldanswers", "answerkey", "key")


def read_items(reply: str, kind: str, *, truncated: bool = False) -> ParsedItems:
    """Read the items of a kind in a reply; `truncated`: the model was stopped.

    Anything unreadable gives a reason instead of an item: a refusal, an empty reply, an echo of the
    instruction, and an incomplete last item.
    """
    text_only = strip_thoughts(reply)
    if text_only is None:
        return ParsedItems((), UNFINISHED_THOUGHT)
    text = text_only[:_MOST].strip()
    if not text:
        return ParsedItems((), "the reply is empty")
    if is_refusal(text):
        return ParsedItems((), "the model refused")
    for rule, parsed in _readings(text, kind, truncated and not text_only.endswith("\n")):
        items = _cleaned(parsed)
        if items and all(is_refusal(one.text) for one in items):
            return ParsedItems((), "the model refused")
        items = [one for one in items if not is_refusal(one.text)]
        if items:
            first = {one.text: one for one in reversed(items)}
            distinct = tuple(first[text] for text in dict.fromkeys(one.text for one in items))
            return ParsedItems(distinct, rule, len(items) - len(distinct))
    if truncated:
        return ParsedItems((), "the reply ends before the first complete item")
    return ParsedItems((), f"the reply contains no readable {kind}s")


def _readings(text: str, kind: str, truncated: bool) -> Iterator[tuple[str, Sequence[ParsedItem]]]:
    """Yield every way to read the reply, the most reliable first."""
    fenced = [part.strip() for part in _FENCE.findall(text)]
    yield "json", _from_data(_complete_value(text), kind)
    for part in reversed(fenced):
        yield "fenced", _from_data(_complete_value(part), kind)
    values, around, rest = _values(text)
    parts = [parsed for data in values if (parsed := _cleaned(_from_data(data, kind)))]
    if parts and (all(len(one) == 1 for one in parts) or not around.strip(" \r\n\t,;")):
        # one object per line, or per call of a tool; the last one may be unfinished
        parts = [[one for parsed in (*parts, _from_data(_closed(rest), kind)) for one in parsed]]
    for parsed in reversed(parts):
        yield "embedded", parsed
    for part in (*reversed(fenced), text):
        yield "python", _from_data(_literal(part), kind)
    for part in (*reversed(fenced), text):
        yield "unfinished", _from_data(_closed(part), kind)
    if not any(part.startswith(("{", "[")) for part in (*fenced, text)):
        # the lines of broken JSON are not items
        yield "list", _list_items(text, kind, truncated=truncated)


# ---- data ----------------------------------------------------------------------------------------


def _complete_value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _values(text: str) -> tuple[list[Any], str, str]:
    """Return the objects and lists of JSON in a text, the text around, and an incomplete rest."""
    decoder = json.JSONDecoder()
    values: list[Any] = []
    around = ""
    place = end = 0
    for _ in range(_MOST_STARTS):
        opening = _OPENING.search(text, place)
        if opening is None:
            break
        try:
            data, place = decoder.raw_decode(text, opening.start())
        except (ValueError, RecursionError):
            if opening[0] == "{" or _JSON_LIKE.match(text, opening.start()):
                # a value inside a broken one is incomplete
                return values, around + text[end : opening.start()], text[opening.start() :]
            place = opening.end()
        else:
            around += text[end : opening.start()]
            values.append(data)
            end = place
    return values, around + text[end:], ""


def _literal(text: str) -> Any:
    """Return the Python value at the start of a text, up to the last matching bracket."""
    start = _JSON_LIKE.search(text) or _OPENING.search(text)
    if start is None or _ADJACENT.search(text):
        return None
    ends = [match.end() for match in _CLOSING.finditer(text, start.end())]
    for end in ends[: -_MOST_ENDS - 1 : -1]:
        if (value := _evaluated(text[start.start() : end])) is not None:
            return value
    return None


def _evaluated(text: str) -> Any:
    """Return a Python literal, or None."""
    try:
        with warnings.catch_warnings():
            # ignore SyntaxWarning raised by the reply text
            warnings.simplefilter("ignore", SyntaxWarning)
            return ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def _closed(text: str) -> Any:
    """Return the value that a text begins and does not finish, with its complete parts.

    A part is complete before a comma, a closing bracket, or the end of the text. Within a list,
    an object is complete as a whole.
    """
    start = _JSON_LIKE.search(text)
    if start is None:
        return None
    place, complete, named = start.start(), "", False
    closing: list[str] = []
    while token := _TOKEN.match(text, place):
        is_key, named = not named, token["sign"] == ":"
        place = token.end()
        if token["open"]:
            closing.append(_BRACKETS[token["open"]])
        elif token["close"] and (not closing or closing.pop() != token["close"]):
            break
        if not (token["close"] or token["value"]):
            continue
        if not _AFTER_PART.match(text, place):
            break
        in_list = closing[-1:] == ["]"]
        if in_list or (closing and "]" not in closing and not (is_key and token["value"])):
            complete = text[start.start() : place] + "".join(reversed(closing))
    value = _complete_value(complete)
    return _evaluated(complete) if value is None and complete else value


def _from_data(data: Any, kind: str) -> list[ParsedItem]:
    """Return the items in decoded JSON or Python; a text is one item or a list in prose."""
    if isinstance(data, str):
        inner = _complete_value(data) if data.lstrip().startswith(("{", "[")) else None
        return _parsed_lines(data, kind) if inner is None else _from_data(inner, kind)
    if isinstance(data, list | tuple):
        if len(data) == 1 and isinstance(data[0], dict | list):
            return _from_data(data[0], kind)
        return [item for one in data if (item := _parsed_item(one, kind)) is not None]
    if isinstance(data, dict):
        inner = _listing(data, kind)
        if inner is not None:
            return _from_data(list(inner.values()) if isinstance(inner, dict) else inner, kind)
        named = {_key(name): value for name, value in data.items()}
        if named and all(_COUNTED.fullmatch(name) for name in named):
            return _from_data(list(data.values()), kind)
        one = _parsed_item(data, kind)
        return [one] if one is not None else []
    return []


def _listing(data: dict[Any, Any], kind: str) -> Any:
    """Return the value under a key for items in an object, or its only value."""
    named = {_key(name): value for name, value in data.items()}
    lists = _LISTS[kind] if "name" not in named else (*_LISTS[kind], *_CALLED)
    for name in lists:
        if name in named:
            return named[name]
    only = next(iter(data.values())) if len(data) == 1 else None
    return only if isinstance(only, dict | list) else None


def _parsed_item(value: Any, kind: str) -> ParsedItem | None:
    if isinstance(value, str):
        return ParsedItem(value)
    if not isinstance(value, dict):
        return None
    named = {_key(name): one for name, one in value.items()}
    text = next((named[name] for name in _TEXTS[kind] if isinstance(named.get(name), str)), None)
    if text is None:
        return None
    answers = next((named[name] for name in _ANSWERS if name in named), ())
    answers = list(answers) if isinstance(answers, list | tuple) else [answers]
    plain = [one for one in answers if isinstance(one, str | int | float)]
    return ParsedItem(text, tuple(str(one) for one in plain if not isinstance(one, bool)))


def _key(name: Any) -> str:
    return "".join(c for c in str(name).lower() if c.isalnum())


# ---- prose ---------------------------------------------------------------------------------------


def _parsed_lines(text: str, kind: str) -> list[ParsedItem]:
    texts = _list_items(text, kind, truncated=False)
    return texts or [ParsedItem(line) for line in text.splitlines() if line.strip()]


def _list_items(text: str, kind: str, *, truncated: bool) -> list[ParsedItem]:
    """Return the numbered lines of a text, else its bullets, else its lines that are questions."""
    lines = text.splitlines()
    asks = [line.rstrip("* ").endswith("?") for line in lines]
    if truncated and not (kind == "question" and asks[-1]):
        # the model was stopped within its last line
        lines = lines[:-1]
    items: list[str] = []
    for pattern in (_NUMBERED_LINE, _BULLET):
        if not items:
            texts = (_without_list_mark(match) for line in lines if (match := pattern.match(line)))
            items = [text for text in texts if not text.rstrip("* ").endswith(":")]
    if not items and kind == "question":
        items = [line for line, asking in zip(lines, asks, strict=False) if asking]
        items = items if len(items) > 1 else []
    return [ParsedItem(text_of_item) for text_of_item in items]


def _without_list_mark(line: re.Match[str]) -> str:
    """Return a line of a list without its mark; bold text that starts at the mark stays bold."""
    groups = line.groupdict()
    whole = groups.get("bold") and not groups["early"] and not groups["closed"]
    return f"**{line['said']}" if whole else line["said"]


def _cleaned(parsed: Iterable[ParsedItem]) -> list[ParsedItem]:
    """Return the items without marks, and without empty ones."""
    items = list(parsed)
    texts = strip_list_markup([one.text for one in items])
    return [
        ParsedItem(text, tuple(a for a in map(strip_markup, one.answers) if not _is_empty(a)))
        for text, one in zip(texts, items, strict=True)
        if _WORD.search(text) and not _is_empty(text)
    ]


def _is_empty(text: str) -> bool:
    """Return whether a text is blank or repeats the instruction."""
    return not text or _ECHO.fullmatch(text) is not None
