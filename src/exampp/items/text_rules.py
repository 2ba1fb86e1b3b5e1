"""Faults that the text of one item shows: rules for English questions and nuggets.

Every rule takes the text of an item and returns the words that it found, or None. How often each
rule is right was measured by reading (`items.lint.RULES`, benchmarks/lint.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

AUXILIARY = (
    r"(?:is|are|was|were|am|do|does|did|has|have|had|can|could|will|would|shall|should|may|might|"
    r"must)(?:n't| not)?"
)
_ASKING = r"(?:what|why|how|when|where|which|who|whom|whose)"
_PRONOUN = r"(?:it|they|this|these|that|those|he|she|there|its|their)"
_LIST_MARK = re.compile(r"\A\s*(?:[-*\u2022]|\(?\d{1,2}[.):])\s+(?=\S)")

# ---- fragments and references --------------------------------------------------------------------

_CUT_END = re.compile(
    r"\b(?:the|an?|of|in|on|at|to|for|by|with|from|and|or|but|is|are|was|were|be|been|has|have|had|"
    r"can|could|will|would|may|might|must|should|that|which|who|where|than|into|as|its|their|his|"
    r"her|some|such|very|[Tt]he most|about|during|against|through|towards|without|within|upon|"
    r"among|between|because|while|if|various|several|"
    r"(?:an?|the|for|by|on|of|in|with) (?:true|actual|potential|limited|certain|specific|other))"
    r"[.\u2026]*\s*$"
)
_CUT_START = re.compile(
    r"(?:and|or|but|that|which|are|is|was|were|been|than|to|of|by|after|because)\b"
)
_LAST_WORD = re.compile(r"[a-z]{4,}[.?]")
_OPEN_END = re.compile(r"\b(?:the|an|and|or|their|its|because|if|than)\W*$", re.IGNORECASE)
_BARE_SUBJECT = re.compile(
    r"\s*(?:[Tt]hey|[Ii]t|[Hh]e|[Ss]he|[Tt]hese|[Tt]hose|[Tt]his|[Ii]ts|[Tt]heir|[Hh]is|[Hh]er)\b"
)
_FILLER = re.compile(
    rf"(?:{_ASKING}|{AUXILIARY}|in|on|at|for|to|by|from|of|with|and|so|then|much|many|long|often|far|"
    r"an?|the|kinds?|types?|ways?|main|exactly|been|be|there|you|tell|me|explain)\W+",
    re.IGNORECASE,
)
_UNRESOLVED = re.compile(r"(?:it|they|he|she|him|her|them|his|its|their)\b", re.IGNORECASE)
_BARE_OBJECT = re.compile(r"\W*(?:\w+ ){1,3}(it|them|him|her)\W*$", re.IGNORECASE)
_EXPLETIVE = re.compile(r"it\b.*\b(?:to|for|that|mean|means|when|if|rain|snow)\b", re.IGNORECASE)
_DEMONSTRATIVE = re.compile(
    r"\b(?:this|these) (?!(?:year|centur|month|week|decade|time|season|way|day|question|is|are|be|"
    r"was|were|type|kind)\w{0,3}\b)(?P<one>\w+)(?: (?P<two>\w+))?|(?-i:\bhere\b)"
    r"|\b(?:does|did|do) that \w+",
    re.IGNORECASE,
)
_CLAUSE = re.compile(rf"[?;:,]|\b(?:and|but) (?:{_ASKING}|{AUXILIARY})\b", re.IGNORECASE)
_TO_READER = re.compile(
    r"\s*(?:are|do|have|did|were|will|would|should) you\b(?! know\b)|\s*\w+ your\b", re.IGNORECASE
)
_SOURCE = re.compile(
    r"\b(?:according to|based on|per|in|from|of|by) (?:the|this) "
    r"(?:(?:given|above|provided|following) )?"
    r"(?:text|article|document|author|passage|paragraph|excerpt|snippet)s?\b"
    r"(?! (?:called|named|titled|known|of)\b)"
    r"|\b(?:the|this|these) (?:passage|paragraph|excerpt|snippet)s?\b"
    r"|\bthis (?:article|text|document)\b"
    r"|\bthe (?:given|above|provided|following) (?:text|article|document|context|information)\b"
    r"|\bthe (?:text|article|document|context) (?:above|says?|states?|mentions?|describes?)\b"
    r"|\b(?:does|do|did) the author\b"
    r"|\b(?:as )?(?:mentioned|described|stated|discussed|noted|listed) "
    r"(?:above|earlier|previously|in the (?:text|passage|article|document|paragraph))"
    r"|\bthe author(?:'s)? (?:stat|mention|argu|sa[iy]|describ|claim|suggest|believ|mean|"
    r"think|explain|discuss|view|opinion|purpose)"
    r"|\b(?:is|are) there any (?:information|details?|data) (?:provided|given)\b",
    re.IGNORECASE,
)
_PROMPT = re.compile(
    r"\bnuggets?\b|\bjson\b|\b(?:max(?:imum)?|limit(?:ed)?)(?: of| to)? \d+ (?:words?|nuggets?)\b"
    r"|\b(?:information|definition|data|details?)\b.*"
    r"\b(?:provided|given|available|revealed|mentioned)\W*$"
    r"|^\W*(?:no )?(?:insightful|relevant|basic|introductory|concise)\W+(?:\w+ )?information\W*$",
    re.IGNORECASE,
)

# ---- questions -----------------------------------------------------------------------------------

_DOUBLE = re.compile(
    rf"(?:,? (?:and|or|as well as)|;) (?:also )?(?:(?:in|on|at|to|for|by|from|of) )?{_ASKING}\b"
    rf"|,? and {AUXILIARY} (?:{_PRONOUN}|any|certain|some|all|other)\b"
    r"|[,;?] (?:and )?if (?:so|yes|not)\b",
    re.IGNORECASE,
)
_SECOND_TASK = re.compile(
    r",? and (?:also )?(?:explain|describe|discuss|give|list|provide|compare|identify|state|"
    r"outline)(?= \w)",
    re.IGNORECASE,
)
_IMPERATIVE = re.compile(
    r"\W*(?:(?:can|could|would|will) you )?(?:please )?(?:explain|describe|discuss|define|list|"
    r"name|compare|identify|give|provide|state|outline)\b",
    re.IGNORECASE,
)
_WHY = re.compile(r"[,;]? ?(?:and |or )?(?:why|how) (?:or|not)\b", re.IGNORECASE)
_AFTER_MARK = re.compile(r"\?\W+(?P<more>\w+\W+\w.*)$", re.DOTALL)
_INDIRECT = re.compile(
    r"(?:(?:can|could|would|will) you (?:please )?(?:tell|say|confirm|explain|clarify)(?: me| us)?|"
    r"(?:please )?(?:tell|let) (?:me|us)(?: know)?|i wonder|"
    r"do (?:you|we) know|is it known) (?:if|whether)\b",
    re.IGNORECASE,
)
_REQUEST = re.compile(
    rf"(?:can|could|would|will) you (?:please )?\w+|do (?:you|we) know {_ASKING}\b", re.IGNORECASE
)
_POLAR = re.compile(
    rf"(?:[^,?.;:]{{1,60}}, |(?:and|so|or|but) )?(?P<verb>{AUXILIARY})\s", re.IGNORECASE
)
_EXISTENCE = re.compile(
    r"\b(?:any|certain|specific|other|additional|different|particular|notable|significant|"
    r"potential|known|some|ever)\b|\bthere be\b"
    r"|\b(?:is|are|was|were|has|have|had|be) there\b|\bthere (?:is|are|been)\b"
    r"|\b(?:is|was|would) it (?:be |always |ever )?(?:possible|true)\b|\bdoes there\b"
    r"|\b(?:vary|varies|differ|differs|depend|depends|affect|affects|affected|impact|impacts|"
    r"impacted|influence|influences|influenced|contribute|contributes|play|plays)\b",
    re.IGNORECASE,
)
_CHOICE = re.compile(
    r"(?=(?:is|are|was|were|do|does|did)\b|\S+,? or\b).*?\b(?P<choice>[\w-]+,? or (?:an? |the )?"
    r"[\w-]+(?: [\w-]+)?)\?\s*$",
    re.IGNORECASE,
)
_TIME = re.compile(
    r"\b(?:how old is|net worth|exchange rate|(?:stock|share) price|how(?:'s| is) the weather|"
    r"what(?:'s| is) the (?:weather|forecast)(?: like| in| for| today| now|\W*$)|"
    r"still (?:alive|married|active|open|at war|in use|in business)|"
    r"currently|nowadays|presently|recently|lately|"
    r"today'?s?|tonight|tomorrow|these days|so far|until now|up to now|as of now|"
    r"to date(?=\W*$)|at (?:the moment|present)|right now|"
    r"(?:worth|cost|age) now\b|now(?=\W*$)|latest|newest|most recent(?! common)|in recent|"
    r"recent (?:years|months|decades|times|developments?|advance(?:ment)?s|research|studies|"
    r"discover(?:y|ies)|trends?|changes|news|events|findings)|"
    r"(?:this|last|next|past|previous|coming) (?:year|month|week|decade|century|season|summer|"
    r"winter)|this time of year|upcoming|near future|weather (?:advisor|warning)\w*|"
    r"expected (?:in|for|to hit)\b)",
    re.IGNORECASE,
)
_CURRENT = re.compile(
    r"\bcurrent (?!understanding|knowledge|theor|scientific|existence|view|thinking)\w+",
    re.IGNORECASE,
)
_FLOW = re.compile(
    r"\b(?:electr\w*|circuits?|ocean\w*|sea|gulf|volt\w*|wires?|amp\w*|resist\w*|magnet\w*|charges?|"
    r"alternating|direct|conduct\w*|currents|flow\w*|coils?|batter\w*|eddy|rip)\b",
    re.IGNORECASE,
)


def cut_question(text: str) -> str | None:
    """Find a question that ends within a phrase, or that is a single word."""
    ending = _OPEN_END.search(text) or ("?" not in text and _CUT_END.search(text))
    if ending:
        return f"ends in {ending[0].strip(' ?.')!r}"
    return "one word" if _LAST_WORD.fullmatch(text.strip()) else None


def cut_nugget(text: str) -> str | None:
    """Find a nugget that is a piece of a sentence."""
    if match := _CUT_END.search(text):
        return f"ends in {match[0].strip(' .')!r}"
    if match := _CUT_START.match(text.strip()):
        return f"starts with {match[0]!r}"
    return "one word" if _LAST_WORD.fullmatch(text.strip()) else None


def unresolved(text: str) -> str | None:
    """Find a question about something that it does not name ("How is this disease treated?")."""
    rest = _LIST_MARK.sub("", text.strip(), 1)
    while match := _FILLER.match(rest):
        rest = rest[match.end() :]
    if (match := _UNRESOLVED.match(rest)) and not _EXPLETIVE.match(rest):
        return match[0]
    if match := _BARE_OBJECT.match(text):
        return match[1]
    match = _DEMONSTRATIVE.search(text)
    before = text[: match.start()].lower() if match else ""
    if match is None or _CLAUSE.search(before):
        return None
    named = (word[:4].lower() for word in match.group("one", "two") if word)
    return None if any(word in before for word in named) else match[0]


def _words_of(match: re.Match[str] | None) -> str | None:
    return None if match is None else match[0].strip()


def double_barrelled(text: str) -> str | None:
    """Find a second question in a question."""
    start = _LIST_MARK.sub("", text, 1)
    # "How and why ..." is a single question
    if (match := _DOUBLE.search(start, 12)) and not _WHY.match(start, match.start()):
        return match[0].strip(" ,;?")
    task = _SECOND_TASK.search(start, 12) if _IMPERATIVE.match(start) else None
    if task:
        return task[0].strip(" ,")
    return "?" if _AFTER_MARK.search(start) else None


def _polar(text: str) -> re.Match[str] | None:
    """Match the opening of a question whose answer is yes or no."""
    start = _LIST_MARK.sub("", text.strip(), 1)
    if match := _INDIRECT.match(start):
        return match
    match = _POLAR.match(start)
    if not match or _REQUEST.match(start) or re.search(rf"\b{_ASKING}\b", match[0], re.I):
        return None
    return match


def opens_yes_no(text: str) -> bool:
    """Return whether a text is a yes-no question."""
    return _polar(text) is not None


def yes_no(text: str) -> str | None:
    """Find a yes-no question about existence or influence ("Are there any ...")."""
    match = _polar(text)
    exists = match and not double_barrelled(text) and _EXISTENCE.search(text)
    return _opening(match) if match and exists else None


def yes_no_fact(text: str) -> str | None:
    """Find a yes-no question about one fact ("Can a judgment be appealed?")."""
    match = _polar(text)
    plain = match and not double_barrelled(text) and not _EXISTENCE.search(text)
    return _opening(match) if match and plain else None


def _opening(match: re.Match[str]) -> str:
    return (match.groupdict().get("verb") or match[0]).strip().lower()


def alternatives(text: str) -> str | None:
    """Find a question that lists its possible answers ("1977 or 1978?")."""
    match = _CHOICE.match(_LIST_MARK.sub("", text.strip(), 1))
    plain = match and not _EXISTENCE.search(text) and not _WHY.match(match["choice"])
    return match["choice"] if match and plain else None


def time_dependent(text: str) -> str | None:
    """Find words that make an answer depend on the date."""
    text = text.lower()
    current = None if _FLOW.search(text) else _CURRENT.search(text)
    return _words_of(_TIME.search(text) or current)


TextRule = Callable[[str], str | None]
_ANY_KIND: Mapping[str, TextRule] = {
    "list-mark": lambda text: _words_of(_LIST_MARK.match(text)),
    "source-reference": lambda text: _words_of(_SOURCE.search(text.lower())),
    "time-dependent": time_dependent,
}
QUESTION_RULES: Mapping[str, TextRule] = {
    **_ANY_KIND,
    "fragment": cut_question,
    "unresolved": unresolved,
    "reader": lambda text: _words_of(_TO_READER.match(text)),
    "gives-away": alternatives,
    "double-barrelled": double_barrelled,
    "yes-no": yes_no,
    "yes-no-fact": yes_no_fact,
}
NUGGET_RULES: Mapping[str, TextRule] = {
    **_ANY_KIND,
    "fragment": cut_nugget,
    "prompt-echo": lambda text: _words_of(_PROMPT.search(text.lower())),
    "unresolved": lambda text: _words_of(_BARE_SUBJECT.match(text)),
}
