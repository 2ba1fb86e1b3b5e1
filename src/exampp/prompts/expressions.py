"""Replies that decline: expressions of unanswerability, ill-formed answers, refusals.

Fuzzy comparison must not lose a negation: "it is possible to tell" is 0.87 similar to "it is not
possible to tell". So a reply only matches an expression that has the same negations.
"""

from __future__ import annotations

import re
from functools import cache

from exampp.prompts.languages import ENGLISH, languages
from exampp.prompts.normal_form import drop_punctuation, fuzz_ratio, stem

UNANSWERABLE = (
    "unanswerable",
    "no",
    "no answer",
    "not enough information",
    "unknown",
    "it is not possible to tell",
    "it does not say",
    "no relevant information",
)
_FUZZY = 80
_LONGEST = 40
_OPENING = 2_000
"""Characters of a reply that tell whether it declines."""

_ILL_FORMED = re.compile(
    r"""(?ix)
    [a-d] | i{1,3} | iv                                    # an option letter or roman numeral
  | [(\[{]?\s*(?:[a-h]|i{1,3}|iv|vi{0,3}|ix|x)\s*[)\]}.:]+ # the same with its marks
  | [(\[{]\s*(?:[a-h]|i{1,3}|iv|vi{0,3}|ix|x)
    """
)
_QUOTES = " \t\r\n\"'`*_\u201c\u201d\u2018\u2019"

_SOURCE = r"passage|context|text|document|paragraph|article|excerpt|information|key\ fact|nugget"
_AT_LENGTH = re.compile(
    rf"""(?ix)^\W*
    (?:(?:i['\u2019]?m\ |i\ am\ )?sorry,?\ (?:but\ )?|unfortunately,?\ )?
    (?:(?:based\ on|according\ to|from)\ [^.!?,\n]{{0,40}},\s*)?(?:
    (?:no|unanswerable|unknown|not\ enough\ information|no\ answer|no\ relevant\ information)
        \s*[,.;:\n]\s*\D
  | no,?\ the\ (?:question|{_SOURCE})\b
  | (?:the\ )?(?:provided\ |given\ |available\ )?(?:{_SOURCE})\ [^.!?\n]{{0,20}}?
        \b(?:does|do|did)(?:\ not|n['\u2019]t)\ (?:\w+\ )?
        (?:say|mention|contain|provide|specify|state|address|answer|include|give|discuss|cover)\b
  | (?:the\ )?(?:answer|key\ fact|nugget)\ (?:is\ not|isn['\u2019]t|can\ ?not\ be)
        \ (?:\w+\ ){{0,2}}?
        (?:in|mentioned|given|found|provided|stated|contained|included|present|determined)\b
  | (?:the\ |this\ )?question\ (?:can\ ?not|can['\u2019]t|could\ not|is\ not)\ (?:be\ )?answer
  | (?:i\ |we\ |one\ )?(?:can\ ?not|can['\u2019]t)\ (?:be\ )?(?:answer|determine|tell)\w*\b
  | i\ (?:can\ ?not|can['\u2019]t|could\ not|am\ unable\ to)
        \ (?:find|determine|tell|see|locate|infer|answer)\b[^.!?\n]*\b(?:{_SOURCE})\b
    )"""
)

_CANNOT = r"""i(?:\ (?:can\ ?not|can['\u2019]?t|will\ not|won['\u2019]?t|must\ decline|decline)
    |(?:\ am|['\u2019]?m)\ (?:unable|not\ able|not\ comfortable|not\ going))\b"""
_REFUSAL = re.compile(
    rf"""(?ix)^\W*(?:
    (?:i(?:['\u2019]?m|\ am)\ (?:\w+\ )?sorry|(?:\w+\ )?sorry|i\ apologi[sz]e|my\ apologies
        |unfortunately)\b[^.!?\n]{{0,40}}?\b{_CANNOT}
  | as\ an?\ (?:\w+\ )?(?:ai|artificial\ intelligence|language\ model)\b
  | {_CANNOT}\ (?:to\ )?(?:help|assist|comply|fulfil|provide|rate|grade|evaluate|discuss|continue
        |engage|participate|respond|process|do\ (?:that|this)|with)
    )"""
)


_PROGRAM = r"(?:the\ |this\ )?(?:api|model|server|service|request|connection|engine|gateway)"
_ERROR = re.compile(
    rf"""(?ix)^\W*(?:
    <(?:html|!doctype)\b
  | traceback\ \(
  | (?:\w{{1,40}}(?:error|exception)|(?:\w{{1,40}}\ )?(?:error|exception))\b
        (?:\ (?:code|message|status))?["']?\s?(?:[:\#(\[]|-\ |\d{{3}}\b|\W*\Z)
  | http\W{{0,3}}(?:error\W)?[45]\d\d\b
  | [45]\d\d\W{{1,3}}(?:bad|unauthori[sz]ed|forbidden|not\ found|request|conflict|too\ many
        |internal|service|gateway|server|client|error|payment|overloaded)\b
  | {_PROGRAM}\ (?:is\ |was\ |has\ )?(?:currently\ |temporarily\ )?
        (?:unavailable|overloaded|busy|timed\ out|time-?out|refused|reset|aborted|failed)\b
  | (?:{_PROGRAM}\ )?rate\ limit(?:ed)?(?:\ (?:exceeded|reached|hit)\b|\W*\Z)
  | too\ many\ requests | internal\ server\ error | bad\ gateway
  | (?:quota|context\ length)\ exceeded
  | invalid\ api\ key | (?:request\ )?timed\ out\W*\Z
    )"""
)
_NOTHING = re.compile(r"(?i)\W*(?:n\W{0,2}a|none|null|nil|nan|undefined|not applicable|tbd)?\W*")


_WORD = re.compile(r"[^\W_]")
_NEGATION = re.compile(r"\b(?:no|not|un)(?:\b|(?<=un))")
_SEVERAL = 3
"""Words from which an expression is compared loosely, in a language whose prefixes are unknown."""


def _bare(text: str, language: str) -> tuple[str, list[str]]:
    words = " ".join(drop_punctuation(text.lower()).split())
    stems = " ".join(stem(word, language) for word in words.split())
    if language == ENGLISH:
        return stems, _NEGATION.findall(words)
    return stems, [word for word in words.split() if word in languages()[language].negations]


@cache
def _expressions(language: str) -> tuple[tuple[str, list[str]], ...]:
    found = UNANSWERABLE if language == ENGLISH else languages()[language].unanswerable
    return tuple(_bare(expression, language) for expression in found)


def is_unanswerable(reply: str, language: str = ENGLISH) -> bool:
    """Whether the whole reply is an expression of unanswerability or an ill-formed answer.

    Case, outer punctuation and spaces do not count, and stemmed words may differ in a letter or
    two (similarity above 0.8). An empty reply counts. Source: EXAM++, section 4.2.1. In another
    `language` its own expressions count beside the English ones, as models fall back on these.
    """
    if language != ENGLISH and is_unanswerable(reply):
        return True
    text = reply.strip(_QUOTES)
    if len(text) > _LONGEST:
        return False
    if _ILL_FORMED.fullmatch(text):
        return True
    stemmed, negations = _bare(text, language)
    if not stemmed:
        return True
    known = _expressions(language)
    if any(stemmed == expression for expression, _ in known):
        return True
    alike = (
        expression
        for expression, marks in known
        if marks == negations and (language == ENGLISH or expression.count(" ") >= _SEVERAL - 1)
    )
    return fuzz_ratio(stemmed, alike) > _FUZZY


def says_unanswerable(reply: str) -> bool:
    """Whether the reply says at length that the question has no answer in the passage.

    For replies to a request to rate, where a sentence such as "The passage does not mention it"
    is no answer; an extracted sentence may well read so.
    """
    return _AT_LENGTH.match(reply.strip()[:_OPENING]) is not None


def is_refusal(reply: str) -> bool:
    """Whether the model declined to do the work ("I'm sorry, but I can't ...", "As an AI ...")."""
    return _REFUSAL.match(reply.strip()[:_OPENING]) is not None and not says_unanswerable(reply)


def is_error(reply: str) -> bool:
    """Whether the reply is a message of a program or server that failed ("Error 429")."""
    return _ERROR.match(reply.strip()[:_OPENING]) is not None


def says_nothing(reply: str) -> bool:
    """Whether the reply has no word, or one that stands for none (`N/A`, `null`)."""
    text = reply.strip()
    return not _WORD.search(text) or (len(text) <= _LONGEST and bool(_NOTHING.fullmatch(text)))
