"""Check an extracted answer against the known answers, and recognise replies that decline.

The `rubric_` functions read replies as the reference implementation does, to reproduce published
numbers.

Source: EXAM++, section 4.2.1, and FLAN-T5-EXAM, section 3.2.2: normalised strings match if their
edit distance is less than 20 % of the longer one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

from exampp.errors import InputError
from exampp.prompts.matching import guarded_match
from exampp.prompts.words import (
    drop_punctuation,
    edit_distance,
    find_words,
    fuzz_ratio,
    normalise,
    stem,
    stopwords,
)

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
_SIMILAR = 80
_LONGEST = 40
_OPENING = 2_000
"""Characters at the start of a reply that are checked for a refusal."""

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


def _stems_and_negations(text: str) -> tuple[str, list[str]]:
    words = " ".join(drop_punctuation(text.lower()).split())
    return " ".join(map(stem, words.split())), _NEGATION.findall(words)


@cache
def _unanswerable_stems() -> tuple[tuple[str, list[str]], ...]:
    return tuple(map(_stems_and_negations, UNANSWERABLE))


def is_unanswerable(reply: str) -> bool:
    """Return whether the whole reply is an expression of unanswerability or an ill-formed answer.

    Case, outer punctuation and spaces are ignored, and stemmed words may differ in a letter or two
    (similarity above 0.8). An empty reply matches. Source: EXAM++, section 4.2.1.

    Fuzzy comparison must not lose a negation: "it is possible to tell" is 0.87 similar to "it is
    not possible to tell". A reply therefore only matches an expression with the same negations.
    """
    text = reply.strip(_QUOTES)
    if len(text) > _LONGEST:
        return False
    if _ILL_FORMED.fullmatch(text):
        return True
    stemmed, negations = _stems_and_negations(text)
    known = _unanswerable_stems()
    if not stemmed or any(stemmed == expression for expression, _ in known):
        return True
    alike = (expression for expression, marks in known if marks == negations)
    return fuzz_ratio(stemmed, alike) > _SIMILAR


def is_unanswerable_sentence(reply: str) -> bool:
    """Return whether a sentence says that the passage does not answer the question.

    For replies to a request for a rating, where a sentence such as "The passage does not mention
    it" is not an answer; an extracted sentence may read like this.
    """
    return _AT_LENGTH.match(reply.strip()[:_OPENING]) is not None


def is_refusal(reply: str) -> bool:
    """Return whether the model refused to do the work ("I'm sorry, but I can't ...")."""
    return _REFUSAL.match(reply.strip()[:_OPENING]) is not None and not is_unanswerable_sentence(
        reply
    )


def is_error(reply: str) -> bool:
    """Return whether the reply is an error message of a program or server ("Error 429")."""
    return _ERROR.match(reply.strip()[:_OPENING]) is not None


def is_blank_answer(reply: str) -> bool:
    """Return whether the reply has no word, or a placeholder (`N/A`, `null`)."""
    text = reply.strip()
    return not _WORD.search(text) or (len(text) <= _LONGEST and bool(_NOTHING.fullmatch(text)))


MAX_RATING = 5
_LONGEST_LIKE = 100
"""Characters beyond which no reply is similar to any of the expressions."""
_LONE_DIGIT = re.compile(r"[^\w]*([0-9])[^\w]*")
_LETTERS = (*"ABCDabcd", "i", "ii", "iii", "iv")
_MARKS = ("{})", "({})", "[{}]", "{}.", "{}")
_YES = frozenset({"yes", "correct", "true"})
_NO = frozenset({"no", "incorrect", "false"})
_TRUE_FALSE = {frozenset({"true"}): _YES, frozenset({"false"}): _NO}
# Other stopwords of the reference's list: negations, and remains of tokenized contractions.
_FRAGMENTS = """no nor not s t d ll m o re ve y ma ain aren couldn didn doesn don hadn hasn haven
isn mightn mustn needn shan shouldn wasn weren won wouldn"""


def _stemmed(text: str) -> str:
    return stem(text.lower())


@cache
def _rubric_expressions() -> tuple[frozenset[str], frozenset[str]]:
    options = (mark.format(letter) for letter in _LETTERS for mark in _MARKS)
    known = frozenset((*UNANSWERABLE, *options))
    return known, frozenset(map(_stemmed, known))


def rubric_is_answer(reply: str) -> bool:
    """Return whether the reference accepts the reply as a real answer."""
    known, stems = _rubric_expressions()
    if reply in known:
        return False
    stemmed = _stemmed(reply)
    if len(stemmed) > _LONGEST_LIKE:
        return True
    return bool(stemmed) and fuzz_ratio(stemmed, stems) <= _SIMILAR


def rubric_self_rating(reply: str, highest: int = MAX_RATING) -> int:
    """Return the rating that the reference reads; above `highest` it is 0.

    Its rules deviate from the papers: only a lone digit is a rating, the rule for replies without
    one is inverted (a text gets 0, an expression of unanswerability 1), and a phrase is stemmed as
    if it were one word. Option letters count as expressions of unanswerability for every prompt, as
    in the published grades; later versions of the reference omit them for self-rated questions.
    """
    digit = _LONE_DIGIT.fullmatch(reply)
    if digit and int(digit[1]) <= MAX_RATING:
        rating = int(digit[1])
    else:
        rating = 0 if rubric_is_answer(reply) else 1
    return rating if rating <= highest else 0


def rubric_is_yes(reply: str) -> bool:
    """Return whether the reference reads the reply to a direct relevance prompt as a yes."""
    return rubric_is_answer(reply) and reply.lower() in _YES


def _rubric_without_period(text: str) -> str:
    return text.strip().removesuffix(".")


def rubric_is_correct(answer: str, keys: Iterable[str]) -> bool:
    """Return whether the reference's second answer key accepts the answer."""
    answer = _rubric_without_period(answer)
    golds = frozenset(map(_rubric_without_period, keys))
    truths = _TRUE_FALSE.get(frozenset(gold.lower().strip() for gold in golds))
    if truths is not None:
        return answer.lower() in truths
    dropped = stopwords() | frozenset(_FRAGMENTS.split())
    normal = normalise(answer, dropped)
    known = {normalise(gold, dropped) for gold in golds}
    if len(normal) >= 2 and normal in known:
        return True
    if len(normal) >= 4:
        return fuzz_ratio(normal, known) > _SIMILAR
    return answer in golds


_LEADING_NO = re.compile(r"(?i)^\W*no\W+")
LARGEST_SHARE = 0.2
_LEAST_EQUAL = 2
_LEAST_FUZZY = 4
_ALL_NONE = re.compile(r"(?i)\s*(?P<which>all|none|neither) of (?:the |these )?(?:above|these)\W*")
_MANY = 3
_AROUND = " \t\r\n\"'\u201c\u201d\u2018\u2019."


@dataclass(frozen=True, slots=True)
class Verified:
    """The result of verifying an answer: correct or not, the rule, the known answer, the span.

    `rule` is exact, true-false, normalised, edit-distance, or unmatched; by the guarded rule exact,
    true-false, contained, or unmatched. `span` is the place of the answer in the passage (character
    offsets), if it occurs there.
    """

    correct: bool
    rule: str
    key: str | None = None
    span: tuple[int, int] | None = None


def verify_answer(
    answer: str,
    keys: Sequence[str],
    passage: str | None = None,
    mode: str = "exam",
    question: str = "",
) -> Verified:
    """Check an answer against the known answers `keys`.

    Args:
        answer: The extracted answer.
        keys: The known answers; one suffices.
        passage: The passage, to find the span of the answer.
        mode: `exam` for the papers' rule, `guarded` for the rule of `matching`, `rubric` for that
            of the reference implementation.
        question: The question, which the guarded rule uses.

    Raises:
        InputError: There is no known answer.
    """
    if not any(key.strip() for key in keys):
        raise InputError(
            "the item has no known answer to verify against",
            field="gold_answers",
            hint="Add gold_answers to the question, or grade without verification",
        )
    span = None if passage is None else find_span(answer, passage)
    if mode == "rubric":
        return Verified(rubric_is_correct(answer, keys), "rubric", span=span)
    if mode == "guarded":
        declines = is_unanswerable_sentence(_LEADING_NO.sub("", answer))
        rule, key = guarded_match("" if declines else answer, keys, question)
    else:
        rule, key = _match(answer, tuple(keys))
    return Verified(key is not None, rule, key, span)


def is_no_answer(answer: str, keys: Sequence[str]) -> bool:
    """Return whether an extracted answer means "no answer", unless a known answer does, too.

    Such an answer counts as incorrect, without a model.
    """
    if not (is_unanswerable(answer) or is_blank_answer(answer)):
        return False
    return any(key.strip() for key in keys) and not verify_answer(answer, keys).correct


def _without_period(text: str) -> str:
    return text.strip().removesuffix(".").rstrip()


@lru_cache(maxsize=4096)
def _normalised_keys(keys: tuple[str, ...]) -> tuple[tuple[str, str, str], ...]:
    golds = ((key, _without_period(key)) for key in keys)
    return tuple((key, gold, normalise(gold)) for key, gold in golds)


def _match(answer: str, keys: tuple[str, ...]) -> tuple[str, str | None]:
    answer = _without_period(answer)
    if not answer:
        return "unmatched", None
    known = _normalised_keys(keys)
    truths = _TRUE_FALSE.get(frozenset(gold.lower() for _, gold, _ in known))
    if truths is not None:
        plain = drop_punctuation(answer.lower()).strip()
        return ("true-false", keys[0]) if plain in truths else ("unmatched", None)
    normal = normalise(answer)
    for key, gold, _ in known:
        if answer == gold:
            return "exact", key
    for key, _, other in known:
        if len(normal) >= _LEAST_EQUAL and normal == other:
            return "normalised", key
    for key, _, other in known:
        if len(normal) >= _LEAST_FUZZY and is_close(normal, other):
            return "edit-distance", key
    return "unmatched", None


def is_close(one: str, other: str) -> bool:
    """Return whether the edit distance is less than 20 % of the longer string's length."""
    longer = max(len(one), len(other))
    far = abs(len(one) - len(other)) >= LARGEST_SHARE * longer
    return not far and edit_distance(one, other) < LARGEST_SHARE * longer


def find_span(answer: str, passage: str) -> tuple[int, int] | None:
    """Find the answer in the passage as whole words; return character offsets or None.

    Case and kind of white space are ignored, as are quotation marks and a period around it.
    """
    return find_words(answer.strip(_AROUND), passage)


def key_text(key: str, choices: Mapping[str, str]) -> str:
    """Return the text of a multiple-choice key, with "all (none) of the above" spelled out.

    `choices` maps letters to texts and is never shown to the model. Source: EXAM++, section 4.2.1
    (TQA questions).

    Raises:
        InputError: The key is not among the choices.
    """
    if key not in choices:
        raise InputError(
            f"the key '{key}' is not among the choices {', '.join(choices)}",
            field="correct",
            hint="Use the letter of one of the choices",
        )
    return spell_out(choices[key], list(choices.values()))


def spell_out(text: str, choices: Sequence[str]) -> str:
    """Replace "all of the above" and "none of the above" by the choices that they refer to."""
    phrase = _ALL_NONE.fullmatch(text)
    others = [choice for choice in choices if not _ALL_NONE.fullmatch(choice)]
    if not phrase or not others:
        return text
    if phrase["which"].lower() == "all":
        return f"{'both' if len(others) < _MANY else 'all of'} {' and '.join(others)}"
    return f"neither {' nor '.join(others)}"
