"""Recognise responses that abstain: that say they have no answer, and give none.

A response is split into clauses. Each abstains ("the sources do not say when"), is filler (thanks,
advice to ask elsewhere, what the sources are about) or has content. A response abstains if a clause
abstains and none has content. A response that only asks back abstains, too. The rule is for
English; `benchmarks/abstention.py` measures its errors. For other languages, grade with the prompt
`abstention`.
"""

from __future__ import annotations

import re

_NOT = r"(?:not|n't|n\u2019t|never|hardly)"
_SOURCE = (
    r"(?:documents?|passages?|contexts?|texts?|sources?|articles?|(?:search )?results?|materials?"
    r"|excerpts?|snippets?|references?|paragraphs?|content|information (?:given|provided))"
)
_TELL = (
    r"(?:contain|mention|say|state|specif|provid|includ|giv|discuss|address|answer|cover|describ"
    r"|return|tell|nam|offer|indicat|list|explain|reveal|detail|refer)\w*"
)
_KNOWLEDGE = r"(?:information|details?|knowledge|data|context|answers?|access|idea|clue|means)"
_HELP = (
    r"(?:know|say|tell|answer|find|determine|help|assist|provide|give|respond|see|confirm|comment"
    r"|locate|identify|advise|offer|share|comply)"
)
_ABSTAINS = re.compile(
    "|".join(
        (
            # I do not know, I am unable to find
            rf"\bi(?:\s+\w+)?\s+(?:do|can|could|would|will|wo|ca)\s*{_NOT}\s+(?:\w+\s+){{0,2}}"
            rf"(?:be able to\s+)?(?:{_HELP}\b|have\b[^,]*\b{_KNOWLEDGE}\b)",
            r"\bi(?:\s+am|['\u2019]m|\s+was)\s+(?:\w+\s+)?"
            r"(?:unable|unsure|not (?:able|sure|certain))",
            r"\bi\s+(?:\w+\s+)?(?:lack|have no|must decline|have to decline|decline)\b",
            r"\b(?:that|this|it)\s+i\s+(?:can|do)\s*not\s+(?:say|know|tell)",
            r"^\s*(?:can['\u2019]?t|cannot)\s+(?:say|tell|answer|be determined)",
            # the sources do not say
            rf"\b{_SOURCE}\b[^.;]*?\b(?:do|does|did)\s*{_NOT}\s+(?:\w+\s+)?{_TELL}",
            rf"\b(?:they|it)\s+(?:do|does|did)\s*{_NOT}\s+(?:\w+\s+)?{_TELL}",
            rf"\b(?:none|neither|nothing)\b[^.;]*\b{_SOURCE}\b[^.;]*\b{_TELL}",
            rf"\b{_SOURCE}\b[^.;]*\b(?:make|makes|contain|contains|give|gives|have|has)\s+no\s+",
            # there is no information
            rf"\bno\s+(?:\w+\s+)?(?:{_KNOWLEDGE}|mention|indication|reference)\s*"
            r"(?:$|[.!]|(?:is|are|was|about|on|of|for|in|to|regarding|concerning|available|given|"
            r"provided|found)\b)",
            rf"\b(?:not|n['\u2019]t)\s+(?:enough|sufficient)\s+(?:\w+\s+)?{_KNOWLEDGE}",
            rf"\binsufficient\s+{_KNOWLEDGE}",
            # it cannot be determined
            r"\b(?:can|could)\s*(?:not|n['\u2019]t)\s+be\s+(?:determined|answered|found|known|said)",
            r"\b(?:not|im)\s*possible\s+to\s+(?:determine|answer|say|tell|know|find)",
            rf"\bnot\s+(?:stated|specified|mentioned|covered|given|provided|found|available|included"
            rf"|discussed|addressed|contained)\b[^.;]*\b(?:in|by)\s+(?:the\s+)?(?:\w+\s+)?{_SOURCE}",
            r"\b(?:do|does)\s*(?:not|n['\u2019]t)\s+appear\s+in\s+(?:them|it|the)\b",
            r"\bbeyond\s+(?:what\s+i\s+know|my\s+knowledge|the\s+scope)",
        )
    ),
    re.IGNORECASE,
)
_WHOLE = re.compile(
    r"\W*(?:(?:sorry|honestly|unfortunately)\W+)?"
    r"(?:n/?a|none|unknown|unanswerable|no (?:answer|idea)"
    r"|not (?:specified|stated|known|available|given|mentioned|sure)"
    r"|can(?:not| not|['\u2019]t) be (?:determined|answered)"
    rf"|(?:insufficient|not enough|no) {_KNOWLEDGE}(?: available)?"
    r"|no comment)\b(?:\W+to be honest)?\W*",
    re.IGNORECASE,
)
_FILLER = re.compile(
    rf"^\W*(?:i['\u2019]?m\s+(?:so\s+|very\s+)?(?:sorry|afraid)|i\s+(?:am\s+)?(?:so\s+)?(?:sorry|afraid)"
    r"|thank|thanks|i\s+apologi[sz]e|my\s+apologies|apologies|i\s+regret"
    r"|as\s+an\s+ai|i\s+wish|i\s+(?:have\s+)?(?:looked|read|searched|checked)|after\s+reading"
    r"|(?:please|you\s+(?:may|might|could|can|should)\s+(?:want\s+to\s+)?)\s*(?:contact|check|consult|ask"
    r"|visit|see|try|provide|give|let|refer|rephrase)|let\s+me\s+know|feel\s+free|to\s+be\s+honest"
    rf"|(?:the\s+|these\s+|all\s+|they\b)?(?:\w+\s+)?(?:{_SOURCE}|they)?\s*(?:only\s+|mainly\s+|mostly\s+)?"
    r"(?:describe|discuss|cover|focus|talk|deal|concern|are\s+about|is\s+about|relate)s?\b)",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"\b(?:clarif|you\s+mean|which\b.*\byou\b|more\s+(?:details?|about|specific|context|information)"
    r"|rephrase|what\s+exactly|are\s+you\s+(?:asking|referring|looking))",
    re.IGNORECASE,
)
_CLAUSE = re.compile(
    r"(?<=[.!?])[\"'\u201d\u2019)]*\s+|[;:\n]\s*"
    r"|,\s+(?:but|yet|however|although|though|so|therefore)\b,?\s*|\s+but\s+",
    re.IGNORECASE,
)
_LEAD = re.compile(
    r"^\W*(?:however|therefore|hence|thus|unfortunately|sorry|honestly|also|well)\b[,!.]?\s*",
    re.IGNORECASE,
)
_SUBORDINATE = re.compile(
    r"^\W*(?:while|although|though|whereas|even\s+if)\b[^,]*,\s*", re.IGNORECASE
)
_CONDITION = re.compile(r"^\W*(?:if|when|unless|in\s+case)\b", re.IGNORECASE)
_QUOTED = re.compile(r"[\"\u201c][^\"\u201d]*[\"\u201d]")


MOST_CHARACTERS = 2000
"""Longer responses have content."""


def abstains(response: str) -> bool:
    """Return whether a response says that it has no answer, and gives none."""
    if len(response) > MOST_CHARACTERS:
        return False
    text = _QUOTED.sub('"..."', response.strip())
    if not text or _WHOLE.fullmatch(text):
        return True
    clauses = [one.strip(" ,\"'") for one in _CLAUSE.split(text)]
    clauses = [part for one in clauses if one for part in _parts(one)]
    kinds = {_kind(one) for one in clauses}
    if "content" in kinds:
        return False
    return "abstains" in kinds or _ASKS.search(text) is not None


def _parts(clause: str) -> list[str]:
    """Divide "While the text does not say why, it closed" at its comma."""
    first = _SUBORDINATE.match(clause)
    return [first[0], clause[first.end() :]] if first and first.end() < len(clause) else [clause]


def _kind(clause: str) -> str:
    clause = _LEAD.sub("", clause)
    if not clause.strip(".!"):
        return "filler"
    if _CONDITION.match(clause):
        return "content"
    if _ABSTAINS.search(clause):
        return "abstains"
    return "filler" if _FILLER.match(clause) or clause.endswith("?") else "content"
