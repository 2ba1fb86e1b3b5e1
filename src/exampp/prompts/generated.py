"""Reading the items out of a reply: as JSON, broken JSON, a Python list, or a list in prose.

What cannot be read is a reason, never an item: a refusal, an empty reply, an echo of the
instruction, and the last item of a reply that was cut off within it.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from exampp.prompts.bare import bare, bare_list
from exampp.prompts.expressions import is_refusal
from exampp.prompts.thoughts import without_thoughts


class Made(NamedTuple):
    """An item as the model wrote it, with the answers that it gave to it."""

    text: str
    answers: tuple[str, ...] = ()


class Items(NamedTuple):
    """What a reply holds, and the rule that found it; without items, `rule` says why."""

    made: tuple[Made, ...]
    rule: str


_MOST = 200_000
"""Characters of a reply, without the thoughts of its model, that are read at most."""
UNFINISHED = "the reply ends within a thought of the model"
_MOST_STARTS = 200
_FENCE = re.compile(r"(?s)```[A-Za-z]*\s*(.*?)(?:```|\Z)")
_ECHO = re.compile(r"(?i)(?:question|nugget|answer)_text_\d+|\.{3}|…")
_NUMBERED = re.compile(
    r"(?i)\s*(?P<bold>\*\*)?(?:\(?\d{1,3}[.):]|[QN]\d{1,3}[.:)]"
    r"|(?:question|nugget|key ?fact|fact|item)\s*#?\d{0,3}(?P<early>\*\*)?[.:)])"
    r"(?P<closed>\*\*)?\s+(?P<said>\S.*)"
)
_BULLET = re.compile(r"\s*[-*•\u2013]\s+(?P<said>\S.*)")
_COUNTED = re.compile(r"(?i)(?:question|nugget|keyfact|fact|item|q|n)?(?:text)?\d+")
_WORD = re.compile(r"\w")
_CLOSED = re.compile(r"\]\s*\}?\s*`*\s*\n")
_OPENING = re.compile(r"[{\[]")
_CLOSING = re.compile(r"[}\]]")
_MOST_ENDS = 20
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
_ANSWERS = ("answer", "answers", "answertext", "correctanswer", "goldanswers", "answerkey", "key")


def read_items(reply: str, kind: str, *, truncated: bool = False) -> Items:
    """The items of a kind that a reply holds; `truncated` tells that the model was stopped."""
    said = without_thoughts(reply)
    if said is None:
        return Items((), UNFINISHED)
    text = said[:_MOST].strip()
    if not text:
        return Items((), "the reply is empty")
    if is_refusal(text):
        return Items((), "the model refused")
    for rule, found in _readings(text, kind, truncated):
        made = _cleaned(found)
        if made and all(is_refusal(one.text) for one in made):
            return Items((), "the model refused")
        made = tuple(one for one in made if not is_refusal(one.text))
        if made:
            return Items(made, rule)
    if truncated:
        return Items((), "the reply was cut off before a whole item")
    return Items((), f"no {kind}s can be read from the reply")


def _readings(text: str, kind: str, truncated: bool) -> Iterator[tuple[str, Sequence[Made]]]:
    """Every way in which the reply can be read, the surest first."""
    fenced = [part.strip() for part in _FENCE.findall(text)]
    yield "json", _from_data(_whole(text), kind)
    for part in reversed(fenced):
        yield "fenced", _from_data(_whole(part), kind)
    parts = [made for data in _values(text) if (made := _cleaned(_from_data(data, kind)))]
    if all(len(made) == 1 for made in parts):
        # one object a line
        parts = [tuple(one for made in parts for one in made)]
    for made in reversed(parts):
        yield "embedded", made
    for part in (*reversed(fenced), text):
        yield "python", _from_data(_literal(part), kind)
    for part in (*reversed(fenced), text):
        if start := _JSON_LIKE.search(part):
            yield "repaired", _repaired(part[start.start() :], kind)
    yield "list", _listed(text, kind, truncated)


# ---- data ----------------------------------------------------------------------------------------


def _whole(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _values(text: str) -> Iterator[Any]:
    """The objects and lists of JSON within a text, from left to right."""
    decoder = json.JSONDecoder()
    place = 0
    for _ in range(_MOST_STARTS):
        found = _OPENING.search(text, place)
        if found is None:
            return
        try:
            data, place = decoder.raw_decode(text, found.start())
        except (ValueError, RecursionError):
            if found[0] == "{" or _JSON_LIKE.match(text, found.start()):
                # what lies within something broken is not the whole: that is to be repaired
                return
            place = found.end()
        else:
            yield data


def _literal(text: str) -> Any:
    """What a text holds as Python: up to its last bracket that ends something."""
    start = _JSON_LIKE.search(text) or _OPENING.search(text)
    if start is None or _ADJACENT.search(text):
        return None
    ends = [found.end() for found in _CLOSING.finditer(text, start.end())]
    for end in ends[: -_MOST_ENDS - 1 : -1]:
        try:
            with warnings.catch_warnings():
                # a reply is no source of ours: its escapes are nobody's business
                warnings.simplefilter("ignore", SyntaxWarning)
                return ast.literal_eval(text[start.start() : end])
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
    return None


def _repaired(text: str, kind: str) -> list[Made]:
    import json_repair

    try:
        data = json_repair.loads(text)
    except (ValueError, RecursionError):
        return []
    names = {*_LISTS[kind], *_TEXTS[kind], *_ANSWERS}
    made = [one for one in _from_data(data, kind) if _key(one.text) not in names]
    return made[:-1] if _is_cut(text, made) else made


def _is_cut(text: str, made: Sequence[Made]) -> bool:
    """Whether broken JSON ends within its last item."""
    end = text.rstrip().rstrip("`").rstrip()
    if not made or end.endswith(("]", "}")) or _CLOSED.search(end):
        return False
    open_string, brackets = _open_at_end(end)
    if brackets[-1:] == ["{"] and "[" in brackets:
        return True
    return bool(open_string) and made[-1].text.strip() in open_string


def _open_at_end(text: str) -> tuple[str, list[str]]:
    """The string within which a text of JSON ends, and the brackets open there."""
    brackets: list[str] = []
    start = -1
    escaped = False
    quote = "'" if re.match(r"[{\[]\s*'", text) else '"'
    for place, sign in enumerate(text):
        if start >= 0:
            if sign == quote and not escaped:
                start = -1
            escaped = sign == "\\" and not escaped
        elif sign == quote:
            start = place + 1
        elif sign in "[{":
            brackets.append(sign)
        elif sign in "]}" and brackets:
            brackets.pop()
    return (text[start:] if start >= 0 else ""), brackets


def _from_data(data: Any, kind: str) -> list[Made]:
    """The items in decoded JSON or Python; a text is one item or a list in prose, never letters."""
    if isinstance(data, str):
        return _lines(data, kind)
    if isinstance(data, list | tuple):
        if len(data) == 1 and isinstance(data[0], dict | list):
            return _from_data(data[0], kind)
        return [made for one in data if (made := _item(one, kind)) is not None]
    if isinstance(data, dict):
        inner = _listing(data, kind)
        if inner is not None:
            return _from_data(list(inner.values()) if isinstance(inner, dict) else inner, kind)
        named = {_key(name): value for name, value in data.items()}
        if named and all(_COUNTED.fullmatch(name) for name in named):
            return _from_data(list(data.values()), kind)
        one = _item(data, kind)
        return [one] if one is not None else []
    return []


def _listing(data: dict[Any, Any], kind: str) -> Any:
    """What an object calls its items, or the only thing in it."""
    named = {_key(name): value for name, value in data.items()}
    for name in _LISTS[kind]:
        if name in named:
            return named[name]
    only = next(iter(data.values())) if len(data) == 1 else None
    return only if isinstance(only, dict | list) else None


def _item(value: Any, kind: str) -> Made | None:
    if isinstance(value, str):
        return Made(value)
    if not isinstance(value, dict):
        return None
    named = {_key(name): one for name, one in value.items()}
    text = next((named[name] for name in _TEXTS[kind] if isinstance(named.get(name), str)), None)
    if text is None:
        return None
    given = next((named[name] for name in _ANSWERS if name in named), ())
    given = list(given) if isinstance(given, list | tuple) else [given]
    plain = [one for one in given if isinstance(one, str | int | float)]
    return Made(text, tuple(str(one) for one in plain if not isinstance(one, bool)))


def _key(name: Any) -> str:
    return "".join(c for c in str(name).lower() if c.isalnum())


# ---- prose ---------------------------------------------------------------------------------------


def _lines(text: str, kind: str) -> list[Made]:
    listed = _listed(text, kind, truncated=False)
    return listed or [Made(line) for line in text.splitlines() if line.strip()]


def _listed(text: str, kind: str, truncated: bool) -> list[Made]:
    """The numbered lines of a text, else its bullets, else its lines that are questions."""
    lines = text.splitlines()
    found: list[str] = []
    last = ""
    for pattern in (_NUMBERED, _BULLET):
        if found:
            break
        marked = [(line, _said(match)) for line in lines if (match := pattern.match(line))]
        found = [said for _, said in marked if not said.rstrip("* ").endswith(":")]
        last = marked[-1][0] if marked else ""
    if not found and kind == "question":
        found = [line for line in lines if line.strip().endswith("?")]
        found = found if len(found) > 1 else []
        last = ""
    if truncated and found and last == lines[-1]:
        # the model was stopped within its last line
        found = found[:-1]
    return [Made(said) for said in found]


def _said(line: re.Match[str]) -> str:
    """A line of a list without its mark; what is bold from the mark on stays so."""
    groups = line.groupdict()
    whole = groups.get("bold") and not groups["early"] and not groups["closed"]
    return f"**{line['said']}" if whole else line["said"]


def _cleaned(found: Iterable[Made]) -> tuple[Made, ...]:
    """The items without marks, without what says nothing, and without repetitions."""
    made = list(found)
    texts = bare_list([one.text for one in made])
    made = [
        Made(text, tuple(map(bare, one.answers))) for text, one in zip(texts, made, strict=True)
    ]
    made = [one for one in made if _WORD.search(one.text) and not _ECHO.fullmatch(one.text)]
    once = {one.text: one for one in reversed(made)}
    return tuple(
        Made(text, tuple(a for a in once[text].answers if a and not _ECHO.fullmatch(a)))
        for text in dict.fromkeys(one.text for one in made)
    )
