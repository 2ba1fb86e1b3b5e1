"""Builds replies whose rating is known from how they were built, and checks how they are read.

    python benchmarks/campaigns/replies.py [--count 200000] [--seed 1] [--real ../shared/data]

A reply is drawn from a grammar of pieces, once `--count` for every kind of prompt: a form that says
one rating (`exact`), that says one in a way that may be a matter of taste (`taste`: this one or
none), or that says none (`none`); then it is dressed: thoughts before it, odd characters, long
runs, broken line ends. No reader is asked what a reply means. It is wrong if reading raises
anything, takes more than a second, or gives a rating that the form does not allow, or if fewer than
99 of 100 plain forms (`exact`, in common words) are read. With `--real`, published replies stand
among the reasons, and are read alone one edit away from what they were: a rating that is nowhere in
them is wrong. Exits with 1 if anything is.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from exampp.prompts.replies import read_reply
from exampp.records import Outcome, State
from exampp.records.graders import UNNUMBERED

SLOWEST = 1.0
"""Seconds that no reply may take; of the processor, as others may be using the machine."""

USEFUL = 0.99
"""The share of plain forms that must be read as what they say."""

Grammar = Mapping[str, Sequence[str]]
Allowed = frozenset[int | None]
UNREAD: Allowed = frozenset({None})
SYMBOL = re.compile(r"«(\w+)»")


class Kind(NamedTuple):
    """A kind of prompt, as `read` is told of it, and the grammar of its replies."""

    reading: str
    highest: int
    field: str
    grammar: Grammar
    keys: Sequence[str] = ()


class Built(NamedTuple):
    """A reply, what may be read from it, and how it came about."""

    reply: str
    allowed: Allowed
    form: str
    plain: bool
    truncated: bool
    unnumbered: str


WORDS = ("zero", "one", "two", "three", "four", "five")

COMMON: Grammar = {
    "why": (
        "The passage answers the question in detail.",
        "It covers the topic, with minor gaps.",
        "The text explains the process and names the people involved.",
        "While it mentions the subject, it does not say where it took place.",
        "The passage is about something else.",
        "«real»",
    ),
    "clause": (
        "the passage answers it in detail",
        "it covers the topic",
        "the text explains the process, with minor gaps",
        "most of it is about something else",
    ),
    "aside": (
        "It names «n» men.",
        "It lists «n» causes of the war.",
        "«n» of the facts are missing.",
        "Some «n»% of it is on topic.",
        "It costs $«n».",
        "The «n»-page report is cited.",
        "The place is «n»km away.",
        "It is about the «n»th chapter.",
        "Question «n» is covered in full.",
        "Passage «n» is similar.",
        "See section «n».",
        "The treaty of 12/05/1919 is named.",
        "The train leaves at 1:30.",
        'The passage says "«name»: «s»".',
        'A heading reads "«s» out of «top»".',
    ),
    "thinking": (
        "«name»: «s»",
        "Let me see. It could be a «s» or a «r». «why»",
        "A «s»? «why» Not quite.",
        '{"«field»": «s»}',
        "«why» So «s».",
    ),
    "thought": (
        "<think>«thinking»</think>",
        "<think>\n«thinking»\n</think>\n\n",
        "<think></think>",
        "<thinking>«thinking»</thinking>\n",
        "<THINK>«thinking»</THINK>\n",
        "<thought>«thinking»</thought>\n",
        "<reasoning>«thinking»</reasoning>\n",
        "<reflection>«thinking»</reflection>\n",
        "<analysis>«thinking»</analysis>\n",
        "<scratchpad>«thinking»</scratchpad>\n",
        "[THINK]«thinking»[/THINK]",
        '<think type="long">«thinking»</think>',
        "<think>«thinking»<think>«thinking»</think>«thinking»</think>",
        "<thinking>«thinking»<think>«thinking»</think>«thinking»</thinking>",
        "«thinking»\n</think>\n",
        "<think>«thinking»</think>\n<think>«thinking»</think>\n",
        "<|channel|>analysis<|message|>«thinking»<|end|><|start|>assistant"
        "<|channel|>final<|message|>",
    ),
    "published": (
        "◁think▷«thinking»◁/think▷",
        "<|begin_of_thought|>«thinking»<|end_of_thought|>\n",
        "<|START_THINKING|>«thinking»<|END_THINKING|>",
        "<seed:think>«thinking»</seed:think>",
        "<unused94>thought\n«thinking»<unused95>",
        "<inner_monologue>«thinking»</inner_monologue>",
        "<chain_of_thought>«thinking»</chain_of_thought>",
        "<internal_reasoning>«thinking»</internal_reasoning>",
        "<|channel>thought\n«thinking»<channel|>",
        "<|think|>«thinking»<|/think|>",
    ),
    "unfinished": (
        "<think>",
        "<think>\n«thinking»\n",
        "<thinking>«thinking» ",
        "<reasoning>",
        "<scratchpad>«thinking» ",
        "[THINK]",
        "<think>«thinking»</think><think>",
        "<think>«thinking»<think>«thinking» ",
        '<think type="long">«thinking» ',
    ),
    "broken": (
        "◁think▷",
        "<|begin_of_thought|>",
        "<|START_THINKING|>«thinking» ",
        "<seed:think>«thinking» ",
        "<|channel|>analysis<|message|>«thinking» ",
    ),
    "refusal": (
        "I'm sorry, but I can't rate this.",
        "I'm sorry, but I cannot assist with that request.",
        "I cannot help with that.",
        "I am unable to provide a rating for this content.",
        "As an AI language model, I cannot give a rating.",
        "Sorry, I can't do that.",
    ),
    "error": (
        "Error 429",
        "Error 429: Too Many Requests",
        "Error: rate limit exceeded",
        "Service unavailable",
        "503 Service Unavailable",
        "Internal Server Error",
        '{"error": {"message": "Rate limit reached", "code": «n»}}',
        "HTTP «n»00",
        "<html><head><title>502 Bad Gateway</title></head></html>",
    ),
    "empty": ("", " ", "\n\n", "...", "N/A", "n/a", "None", "null", "-", "**", "``````", "\u200b"),
}

RATINGS: Grammar = {
    **COMMON,
    "name": ("Rating", "Score", "Grade", "rating", "SCORE", "«field»", "Overall rating"),
    "own": ("My rating", "The overall score", "Overall grade", "Numerical rating"),
    "value": ("«r»", "«r»", "«r»/«top»", "**«r»**", "«r» out of «top»"),
    "odd": ("«r».0", "«word»", "«wide»", "«arabic»", "«r» / «top»", "«r» of «top»", "`«r»`"),
    "other": ("Confidence", "Completeness", "Accuracy", "Clarity", "Number of facts", "Length"),
    "field_line": (
        "«name»: «value»",
        "«name»: «odd»",
        "**«name»:** «value»",
        "«name» = «r»",
        "«name» - «r»",
        "«name» (0-«top»): «r»",
        "«own»: «value»",
        "Final «name»: «value»",
        "| «name» | «r» |",
        "<rating>«r»</rating>",
        "<score>\n«r»\n</score>",
        "\\boxed{«r»}",
        "## «name»\n«r»",
        "- **«name»**: «r»",
        "«name»: «r» because «clause»",
    ),
    "before": ("«why»", "«aside»", "A «s» would mean gaps.", "«levels»", "«other»: «s»"),
    "levels": (
        "The scale is 0 to «top».",
        "«top» means that it answers in full.",
        "0 means that it does not answer.",
    ),
    "object": (
        '{"«key»": «r»}',
        '{"«key»": "«r»"}',
        '{"«key»": «r», "reason": "«clause»"}',
        '{"reason": "«clause»", "«key»": «r», "confidence": «s»}',
        '{"result": {"«key»": «r»}}',
        '{"«key»": "«r»/«top»"}',
    ),
    "key": ("rating", "score", "grade", "«field»"),
    "plain": (
        "«r»",
        "«r».",
        " «r»\n",
        "**«r»**",
        "«r»/«top»",
        "«name»: «value»",
        "**«name»:** «value»",
        "**«name»: «value»**",
        "**«name»**: «value»",
        "«name»: «value»\n\n«why»",
        "**«name»:** «value»\n\n**Justification:** «why»",
        "«why» «name»: «value»",
        "«why»\n\n«name»: «value»",
        "«why»\n\n**«name»:** «value»",
        "I'd rate this «r».",
        "I would rate this passage «r».",
        "I'd rate this passage a «r».",
        "I rate it «value» because «clause».",
        "I'd give it a «r».",
        "I would give this a «r» out of «top».",
        "My rating is «r».",
        "«r» - «clause»",
        "«r» - because «clause»",
        "«r» because «clause».",
        "«r»: «clause»",
        "«object»",
        "```json\n«object»\n```",
        "«why»\n\n```json\n«object»\n```",
    ),
    "exact": (
        "«odd»",
        "«field_line»",
        "«before»\n«field_line»",
        "«before» «before»\n\n«field_line»",
        "«field_line»\n«other»: «s»\n«other»: «n»",
        "«name»: «s»\n«why»\nFinal «name»: «r»",
        "This passage is rated «r».",
        "On a scale of 0-«top», I'd say «r»",
        "On a scale from 0 to «top», I'd rate it «r».",
        "This deserves a «r».",
        "This passage deserves a «r».",
        "It clearly deserves a «r».",
        "Here is my rating: «r»",
        "«name»: «r»<|im_end|>",
        "«r»<|eot_id|>",
        "The final answer is: $\\boxed{«r»}$",
        "The appropriate rating is «r».",
        "«name»: «r»\n«why» I rate it «r».",
        "«before»\n«object»",
        "Here you are:\n```\n«object»\n```\n«why»",
    ),
    "clausal": ("complete", "mostly on topic", "about something else"),
    "taste": (
        "The answer is complete and gets a «r».",
        "It is «clausal», so «r».",
        "«r» stars",
        "«aside» I rate it «r».",
        "«aside» So I'd give it a «r».",
        "«aside»\n\n«r»",
        "«field_line»\n«before»",
        "«name»: «r» - a «s» would need the date",
        "«name»: «r». A «s» would need the date.",
        "«why» I'd first say «s», but on reflection «r».",
        "«s»? No, «r».",
        "Not a «s» but a «r».",
        "«name»: «s». Wait, no. «name»: «r»",
        "«name»: ~~«s»~~ «r»",
        "«name»: <s>«s»</s> «r»",
        "<del>«name»: «s»</del>\n«name»: «r»",
        "«name»: «s» -> «r»",
        "«name»: «s» → «r»",
        "«name»: «s»\n«why»\n«revised» «name»: «r»",
        "«name»: «s». «revised» «name»: «r».",
        "«name»: «s»\n«why»\nCorrection: «r»",
        "«name»: «s» («taken_back»: «r»)",
        "«name»: «s»\nOn reflection I'd rate it «r».",
        "Initial «name»: «s»\n«name»: «r»",
        "«other»: «s»\n«other»: «n»\nOverall: «r»",
        "«name»: «s». Actually, on second thought, «r».",
        "«name»: «s»\nHmm, wait. So it is a «r».",
        "«why» It would have been a «s» with the date, so «r».",
        "Bewertung: «r»",
        "Note : «r»/«top»",
        "评分\uff1a«r»",
        "評価: «wide»",
        "Puntuación: «r»",
        "Оценка: «r»",
        "Je donne la note «r».",
        "«r»分",
        "[[«r»]]",
        "«name»: [[«r»]]",
        "«name»: <«r»>",
        "$\\boxed{«r»}$",
        "«name»: «r» 🌟",
        "«r»️⃣",
        "«name»\t«r»",
        "«r» («clause»; «s» would be too much)",
        "«aside» «r»",
        "It was built in «year».\n\n«r»",
        "«r». «why»",
        "The rating for this is «r», which is below «s».",
        "Between «s» and «r» I choose «r».",
        "«name»: «r» «aside»",
        "«aside» «name»: «r» «aside»",
        "«real» «name»: «r»",
        "«r»\n\n«aside»",
        '{"«key»": {"value": «r», "max": «top»}}',
        '{"«key»": [«r»]}',
        '{"«key»": «r», }',
        "{'«key»': «r»}",
        '{"«key»": «r»',
        '{"«key»": «r», "reason": "it says "no""}',
        '{"«key»": «r»} {"«key»": «r»}',
        '{"example": {"«key»": «r»}}',
    ),
    "revised": ("«taken_back»", "New", "Actual", "Correct"),
    "taken_back": ("Revised", "Corrected", "Updated", "Adjusted"),
    "none": (
        "I would not rate this «r».",
        "I wouldn't give it a «r».",
        "I can't give this a «r».",
        "not a «r»",
        "This is not a «r».",
        "This is hardly a «r».",
        "It never deserves a «r».",
        "«name»: not «r»",
        "«r» or «s»",
        "«r» or maybe «s»",
        "«name»: «r» or «s»",
        "«name»: «r»-«s»",
        "«name»: «r» to «s»",
        "«name»: «r»/«s»?",
        "between «r» and «s»",
        "I'd give it a «r» or a «s»",
        "Either «r» or «s».",
        "Somewhere from «r» to «s».",
        "«name»: «r», maybe «s»",
        "«name»: «r»\n«name»: «s»",
        "**«name»:** «r»\n«why»\n**«name»:** «s»",
        "«name» for passage A: «r»\n«name» for passage B: «s»",
        "«name»: «r» for the topic, «s» for the detail",
        "«object» {'rating': «s»}",
        '{"«key»": «r»} {"«key»": «s»}',
        '[{"«key»": «r»}, {"«key»": «s»}]',
        '{"«key»": [«r», «s»]}',
        '{"«key»": null}',
        '{"«key»": ""}',
        '{"«key»": «above»}',
        '{"«key»": «r».5}',
        '{"«key»": 1e999}',
        '{"confidence": «r»}',
        "Maybe «r».",
        "Perhaps a «r»?",
        "«r»?",
        "«name»: «r»?",
        "at least «r»",
        "More than «r».",
        "~«r»",
        "It would be a «r» if it named the date.",
        "If it named the date, I'd rate it «r».",
        "I was tempted to give it a «r».",
        "It might deserve a «r».",
        "«above»",
        "«name»: «above»",
        "«name»: «above»/10",
        "«r».5",
        "«name»: «r».5",
        "«name»: -«above»",
        "8 out of 10",
        "«name»: «r»/10",
        "«name»: «r» out of 100",
        "«name»: N/A",
        "«name»:",
        "«name»: none\n«aside»",
        "«other»: «r»",
        "«other»: «r»\n«other»: «s»",
        "«aside»",
        "«aside» «why»",
        "«why» «aside»",
        "Question «r»",
        "«r» months",
        "«r»%",
        "$«r»",
        "No. «r»",
        "#«r»",
        "In «year»",
        "«year»",
        "The scale is 0 to «top».",
        "«r» means highly relevant",
        "«top» is the best rating, 0 the worst.",
        "The best rating is «top».",
        "The highest score is «top».",
        "- 5: in full\n- 4: mostly\n- 3: partly\n- 2: hardly\n- 1: a word\n- 0: not at all",
        "The passage says the rating is «r».",
        "Critics gave the film a «r».",
        "The film gets «r» stars from critics.",
        "This hotel deserves «r» stars.",
        "It is a «r» star hotel.",
        "I'd give «r» examples: the war and the peace.",
        "The hotel has a rating of «r» according to guests.",
        "Please give a rating from 0 to «top».",
        "Should I rate this «r»?",
        "Ich würde es nicht mit «r» bewerten.",
        "«unfinished»«plain»",
        "«unfinished»«field_line»",
        "«broken»«plain»",
        "«error»",
        "«refusal»",
        "«empty»",
    ),
    "default": ("The moon", "It names the war", "Because of the treaty of peace", "synapse"),
    "lowest": ("Unanswerable.", "unanswerable", "(b)", "The passage does not mention it."),
}

VERDICTS: Grammar = {
    **COMMON,
    "name": ("Answer", "Relevant", "Relevance", "Verdict", "answer", "«field»"),
    "nothing": ("no idea", "No clue.", "No. 4", "no one knows", "correct spelling", "Yes and no"),
    "value": ("«r»", "**«r»**", "«R»", "«r»."),
    "field_line": (
        "«name»: «value»",
        "**«name»:** «value»",
        "Final answer: «value»",
        "<answer>«r»</answer>",
        "«name» - «r»",
        "| «name» | «r» |",
        "\\boxed{«r»}",
        "## «name»\n«r»",
    ),
    "object": (
        '{"«field»": "«r»"}',
        '{"«field»": «bool»}',
        '{"answer": "«R»", "reason": "«clause»"}',
        '{"reason": "«clause»", "«field»": «bool»}',
    ),
    "plain": (
        "«r»",
        "«R»",
        "«R».",
        "**«R»**",
        "«R», «clause».",
        "«R». «clear»",
        "«R» - «clause»",
        "«name»: «value»",
        "**«name»:** «value»",
        "«clear»\n\n«name»: «value»",
        "«clear» So the answer is «r».",
        "«clear»\n\n«R»",
        "«name»: «value»\n\n«clear»",
        "«object»",
        "```json\n«object»\n```",
    ),
    "clear": ("The passage is about the war.", "It explains the process.", "The text is on topic."),
    "exact": (
        "«field_line»",
        "«clear»\n«field_line»",
        "I would say «r».",
        "«truth»",
        "«R», wait. Final answer: «R»",
        "«S», wait. Final answer: «R»",
        "«R»! «clear»",
        "«R»\n«clear»",
    ),
    "taste": (
        "«field_line»\n«aside»",
        "«S». Wait, «r».",
        "Not «s» but «r».",
        "«why» «R»",
        "«name»: ~~«s»~~ «r»",
        "«name»: «s» → «r»",
        "«name»: «s»\nCorrected answer: «r»",
        "«R», «r», «r».",
        "Answer «r»",
        "«real» Answer: «r»",
        '{"«field»": [«bool»]}',
        "{'«field»': '«r»'}",
        '{"«field»": "«r»"',
        "«R» it does",
    ),
    "none": (
        "Yes or no",
        "Yes and no.",
        "Yes/No",
        "«R»? «S».",
        "«R»?",
        "not «r»",
        "Not a clear «r».",
        "«R», but «s».",
        "«name»: «R», but «s».",
        "Maybe «r».",
        "«name»: «r» or «s»",
        "«name»: maybe",
        "«name»: «r»\n«name»: «s»",
        '{"«field»": "«r»"} {"«field»": "«s»"}',
        '{"«field»": null}',
        '{"«field»": "unclear"}',
        "Answer yes or no.",
        "I cannot say «r».",
        "It is not relevant",
        "It would be a «r» if it named the date.",
        "Whether the answer is yes or no depends.",
        "The passage says yes.",
        'The passage says "«r»".',
        "No doubt.",
        "No idea",
        "No. 4",
        "«name»: «nothing»",
        "**«name»:** «nothing»",
        "«name» is «nothing»",
        "\\boxed{«nothing»}",
        "Final answer: «nothing»",
        "The moon",
        "«unfinished»«plain»",
        "«broken»«plain»",
        "«error»",
        "«refusal»",
        "«empty»",
    ),
}

EXTRACTED: Grammar = {
    **COMMON,
    "name": ("Answer",),
    "text": ("the battle of Hastings", "King Harold, who died in «year»", "«n» months", "synapse"),
    "plain": ("«text»", "«text».", "The answer is «text».", "It was «text», says the passage."),
    "exact": ("**«text»**", "«text»\n«text»", "«n» men", "In «year»", "«year»", '"«text»"'),
    "taste": ("Answer: «text»", '{"«field»": "«text»"}', "```\n«text»\n```", "«aside»"),
    "lowest": ("unanswerable", "Unanswerable.", "N/A", "None", ""),
    "none": (
        "«unfinished»«text»",
        "«broken»«text»",
        "Error: rate limit exceeded",
        "Service unavailable",
        "I'm sorry, but I cannot assist with that request.",
        "I cannot help with that.",
    ),
}

KEYED: Grammar = {
    **EXTRACTED,
    "key": ("William the Conqueror", "william the conqueror", "William the Conqueror."),
    "plain": ("«key»", "**«key»**", " «key»\n"),
    "exact": ("The William the Conqueror", '{"«field»": "«key»"}', "William  the\nConqueror"),
    "taste": ("Wiliam the Conqueror", "The answer is «key»", "Answer: «key»"),
    "lowest": ("the moon", "King Harold", "unanswerable", "N/A", "«n» months", "«year»"),
}

KINDS: Mapping[str, Kind] = {
    "question-self-rating": Kind("self-rating", 5, "grade", RATINGS),
    "nugget-self-rating": Kind("self-rating", 5, "grade", RATINGS),
    "thomas": Kind("rating", 2, "relevance", RATINGS),
    "helm": Kind("yes-no", 1, "relevance", VERDICTS),
    "answer-verification": Kind("yes-no", 1, "answer", VERDICTS),
    "question-answering": Kind("extraction", 1, "short_answer", EXTRACTED),
    "question-answering, keys": Kind(
        "extraction", 1, "short_answer", KEYED, ("William the Conqueror",)
    ),
}

FAMILIES: Mapping[str, int] = {
    "plain": 30,
    "exact": 25,
    "taste": 15,
    "none": 30,
    "default": 2,
    "lowest": 3,
    "edited": 6,
    "published": 4,
    "real": 6,
    "soup": 3,
}
"""Frequencies of the families of replies; a grammar without one leaves it out."""

ODD = (
    "\0",
    "\ud800",
    "\udfff",
    "\u200f",
    "\u202e",
    "\ufeff",
    "\u200b",
    "\x07",
    "\x1b[1m",
    "\u0301",
)
RUNS = (
    *" \n\t:.,;_*`#>-=|/([{<\"'\\&~aé\0\ud800\u200f€",
    *("- ", "{}", '{"a":', "</b>", "<b ", "<think>", "<think ", "think_", "<|a|>", "a-", "a'"),
    *("not ", "so ", "wait, ", "I rate it ", "(a) ", "a: ", "[[", "```", "\\boxed"),
)
"""Parts of long runs; none has a digit or a number word."""

SOUP = """I you it this the a an my rate give rating score grade final answer is of out to or and
    scale star points because so but not no yes maybe if says at least question means wait deserves
    0 1 2 3 4 5 four 4/5 0-5 3.5 -1 10 1914 4th 5% $3 . , ; : ? ! - / | ( ) " ' = -> * > { } [ ]
    <rating> </rating>"""
"""Parts that are joined at random: no number that is not in them may be read."""

LENGTHS = (10, 100, 1_000, 30_000)
LONGEST_RUN = 1_000_000
SPELLED = {word: value for value, word in enumerate(WORDS)}
VERDICT_WORDS = ("no", "yes")


class Drawn:
    """One reply in the making: its rating, another one, and chance."""

    def __init__(self, kind: Kind, chance: random.Random, real: Sequence[str]) -> None:
        self.kind = kind
        self.chance = chance
        self.rating, self.other = chance.sample(range(kind.highest + 1), 2)
        self.unnumbered = chance.choice(UNNUMBERED)
        self.real = real

    def one(self, name: str) -> str:
        """One of the forms of a symbol."""
        return self.chance.choice(self.kind.grammar[name])

    def say(self, form: str) -> str:
        """The form with every symbol replaced by what it stands for."""
        return SYMBOL.sub(lambda found: self._symbol(found[1]), form)

    def _symbol(self, name: str) -> str:
        if name in self.kind.grammar:
            return self.say(self.one(name))
        return (SPOKEN if self.kind.reading == "yes-no" else NUMERIC)[name](self)

    def published(self) -> str:
        """A published reply that holds no number, as a sentence."""
        found = self.chance.sample(self.real, min(9, len(self.real)))
        bare = next((text for text in found if not numbers(text)), "It is on topic")
        return bare.rstrip(" .") + "."


Making = Mapping[str, Callable[[Drawn], str]]

ANYWHERE: Making = {
    "field": lambda drawn: drawn.kind.field,
    "top": lambda drawn: str(drawn.kind.highest),
    "n": lambda drawn: str(drawn.chance.randint(2, 12)),
    "year": lambda drawn: str(drawn.chance.randint(1066, 2024)),
    "real": Drawn.published,
}

NUMERIC: Making = {
    **ANYWHERE,
    "r": lambda drawn: str(drawn.rating),
    "s": lambda drawn: str(drawn.other),
    "word": lambda drawn: WORDS[drawn.rating] if drawn.rating != 1 else "1",
    "wide": lambda drawn: chr(0xFF10 + drawn.rating),
    "arabic": lambda drawn: chr(0x0660 + drawn.rating),
    "above": lambda drawn: str(drawn.kind.highest + drawn.chance.randint(1, 4)),
}

SPOKEN: Making = {
    **ANYWHERE,
    "r": lambda drawn: VERDICT_WORDS[drawn.rating],
    "s": lambda drawn: VERDICT_WORDS[drawn.other],
    "R": lambda drawn: VERDICT_WORDS[drawn.rating].title(),
    "S": lambda drawn: VERDICT_WORDS[drawn.other].title(),
    "truth": lambda drawn: str(bool(drawn.rating)),
    "bool": lambda drawn: str(bool(drawn.rating)).lower(),
}


def numbers(text: str) -> set[int]:
    """Every number that a text could be said to hold, in digits or as a word."""
    digits = {int(found) for found in re.findall(r"\d+", text) if len(found) < 9}
    return digits | {SPELLED[word] for word in re.findall(r"\w+", text.lower()) if word in SPELLED}


def edited(text: str, chance: random.Random) -> str:
    """The text with one character removed, doubled, moved or put in, but no digit touched."""
    places = [at for at, char in enumerate(text) if not char.isdigit()] or [0]
    at = chance.choice(places)
    head, char, tail = text[:at], text[at : at + 1], text[at + 1 :]
    return chance.choice(
        (
            head + tail if not (head[-1:].isdigit() and tail[:1].isdigit()) else text,
            head + char * 2 + tail,
            head + tail[:1] + char + tail[1:] if not tail[:1].isdigit() else text,
            head + chance.choice((*ODD[:-2], *" .,;:-+/()[]{}<>*\"'|=?!~^%$#\n")) + char + tail,
        )
    )


def soup(chance: random.Random) -> str:
    """Words and marks of the grammar of replies, in any order."""
    words = chance.choices(SOUP.split(), k=chance.choice((5, 20, 20, 100, 1_000)))
    return "".join(word + chance.choice("  \n") for word in words)


def formed(drawn: Drawn, family: str) -> tuple[str, str, Allowed]:
    """A form of a family, the reply that it makes, and what may be read from that."""
    rating, lenient = frozenset({drawn.rating}), frozenset({drawn.rating, None})
    if family in ("real", "soup"):
        real = edited(drawn.chance.choice(drawn.real), drawn.chance) if family == "real" else ""
        reply = real or soup(drawn.chance)
        said = numbers(reply) if drawn.kind.reading in ("self-rating", "rating") else set()
        return "", reply, frozenset(said or {0, 1}) | UNREAD
    form = drawn.one("plain" if family in ("edited", "published") else family)
    reply = drawn.say(form)
    match family:
        case "none":
            return form, reply, UNREAD
        case "lowest":
            return form, reply, UNREAD if drawn.kind.reading == "rating" else frozenset({0})
        case "default":
            answers = drawn.unnumbered == "answer" and drawn.kind.reading == "self-rating"
            return form, reply, frozenset({1}) if answers else UNREAD
        case "edited":
            missed = {0} if drawn.kind.keys else set()
            return form, edited(reply, drawn.chance), lenient | missed
        case "published":
            return form, drawn.say(drawn.one("published")) + reply, lenient
        case "taste":
            return form, reply, lenient
    return form, reply, rating


def dressed(reply: str, allowed: Allowed, drawn: Drawn) -> tuple[str, str, Allowed]:
    """A dressed reply, the way it was dressed, and the ratings that may be read from it.

    What changes no word changes nothing; a long run or an odd character may make it unreadable,
    and turn a text that holds no number into another one.
    """
    chance = drawn.chance
    loose = allowed | UNREAD
    if drawn.kind.reading == "extraction" or (
        drawn.kind.reading != "yes-no" and not numbers(reply)
    ):
        loose |= {0, 1}
    way = chance.choices(
        ("as it is", "thought", "lines", "blanks", "odd", "run", "again", "endless"),
        (600, 150, 20, 40, 60, 30, 10, 3),
    )[0]
    if way in ("run", "again", "endless"):
        length = LONGEST_RUN if way == "endless" else chance.choice(LENGTHS)
        piece = reply + "\n" if way == "again" else chance.choice(RUNS)
        run = piece * (length // len(piece))
        ends = (run, run + reply) if way == "again" else (f"{run}\n{reply}", f"{reply}\n{run}")
        return f"{way} {piece[:9]!a}", chance.choice(ends), loose
    match way:
        case "thought":
            return way, drawn.say(drawn.one("thought")) + reply, allowed
        case "lines":
            return way, reply.replace("\n", "\r\n"), allowed
        case "blanks":
            return way, chance.choice((" ", "\n", "\t", "\n\n  ")) + reply + " \n", allowed
        case "odd":
            pieces = re.split("( )", reply)
            pieces.insert(chance.randrange(len(pieces) + 1), chance.choice(ODD))
            return way, "".join(pieces), loose
    return way, reply, allowed


def build(kind: Kind, chance: random.Random, real: Sequence[str] = ()) -> Built:
    """A reply at random."""
    drawn = Drawn(kind, chance, real)
    if kind.reading == "extraction":
        drawn.rating = 1
    made = {*kind.grammar, "edited", "soup"} | ({"real"} if real else set())
    families = [name for name in FAMILIES if name in made]
    family = chance.choices(families, [FAMILIES[name] for name in families])[0]
    form, reply, allowed = formed(drawn, family)
    way, reply, allowed = dressed(reply, allowed, drawn)
    plain = family == "plain" and way == "as it is"
    truncated = chance.random() < 0.01
    # a model that is stopped after the end of an object has replied in full
    whole = reply.rstrip("` \n").endswith("}")
    return Built(
        reply,
        (allowed | UNREAD if whole else UNREAD) if truncated else allowed,
        f"{family} {form!a}, {way}",
        plain and not truncated,
        truncated,
        drawn.unnumbered,
    )


class Tally:
    """The outcome of the replies of one kind."""

    def __init__(self) -> None:
        self.replies = self.raised = self.slow = self.wrong = self.lost = 0
        self.plain = self.plain_read = 0
        self.slowest = 0.0
        self.faults: dict[str, list[str]] = {}

    def add(self, kind: Kind, built: Built) -> None:
        """Read one reply and judge the reading."""
        self.replies += 1
        started = time.process_time()
        try:
            outcome = reading(kind, built)
        except Exception as error:  # whatever a reply makes it raise is what is looked for
            self.raised += 1
            self._fault(built, f"raised {error!r}")
            return
        took = time.process_time() - started
        self.slowest = max(self.slowest, took)
        if took > SLOWEST:
            self.slow += 1
            self._fault(built, f"took {took:.1f} s")
        self.plain += built.plain
        self.plain_read += built.plain and outcome.rating in built.allowed
        if outcome.rating not in built.allowed or not sound(outcome, kind):
            lost = outcome.rating is None
            self.lost += lost
            self.wrong += not lost
            self._fault(built, f"{'lost' if lost else 'WRONG'}: {outcome.rating}, {outcome.rule}")

    def _fault(self, built: Built, what: str) -> None:
        may = "/".join(sorted(map(str, built.allowed)))
        self.faults.setdefault(built.form, []).append(
            f"{built.reply[:300]!a} may be {may} ({built.unnumbered}): {what}"
        )

    @property
    def useful(self) -> float:
        """The share of plain forms that were read."""
        return self.plain_read / self.plain if self.plain else 1.0

    @property
    def failed(self) -> bool:
        """Return whether anything is wrong."""
        return bool(self.raised or self.slow or self.wrong or self.lost or self.useful < USEFUL)


def reading(kind: Kind, built: Built) -> Outcome:
    """Return the reading of exampp."""
    return read_reply(
        kind.reading,
        built.reply,
        lowest=0,
        highest=kind.highest,
        field=kind.field,
        truncated=built.truncated,
        keys=kind.keys,
        unnumbered=built.unnumbered,
    )


def sound(outcome: Outcome, kind: Kind) -> bool:
    """Return whether state and rating fit, and the rating is on the scale."""
    if outcome.rating is None:
        return outcome.state is not State.GRADED
    return outcome.state is State.GRADED and 0 <= outcome.rating <= kind.highest


def published(folder: Path) -> list[str]:
    """The replies of the published graded files of a folder, each once."""
    replies: set[str] = set()
    for file in sorted(folder.glob("*/*graded.jsonl.gz")):
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            for line in lines:
                for passage in json.loads(line)[1]:
                    for grade in passage.get("exam_grades") or ():
                        replies.update(reply for _, reply in grade["answers"])
    return sorted(replies)


def run(kind: str, count: int, seed: int, real: Sequence[str] = ()) -> Tally:
    """Build and read `count` replies of one kind; reply i depends on the seed, the kind and i."""
    tally = Tally()
    for number in range(count):
        chance = random.Random(f"{seed} {kind} {number}")
        tally.add(KINDS[kind], build(KINDS[kind], chance, real))
    return tally


def main() -> None:
    """Run the campaign."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--count", type=int, default=200_000, help="replies of every kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--real", type=Path, help="folder with published graded files")
    parser.add_argument("--kind", choices=KINDS, action="append", help="only this kind")
    parser.add_argument("--examples", type=int, default=30, help="forms to show of every kind")
    options = parser.parse_args()
    real = published(options.real) if options.real else []
    tallies = {}
    for kind in options.kind or KINDS:
        tallies[kind] = tally = run(kind, options.count, options.seed, real)
        worst = sorted(tally.faults.items(), key=lambda fault: -len(fault[1]))
        for form, faults in worst[: options.examples]:
            print(f"{kind}: {len(faults)} of {form}\n    {faults[0]}", flush=True)
    print(
        f"{'prompt':26}{'replies':>9}{'raised':>8}{'slow':>6}{'slowest':>9}{'wrong':>7}{'lost':>7}",
        end="",
    )
    print(f"{'plain':>9}{'read':>9}")
    for kind, tally in tallies.items():
        print(
            f"{kind:26}{tally.replies:>9,}{tally.raised:>8}{tally.slow:>6}{tally.slowest:>8.2f}s"
            f"{tally.wrong:>7}{tally.lost:>7}{tally.plain:>9,}{tally.useful:>9.2%}"
        )
    sys.exit(any(tally.failed for tally in tallies.values()))


if __name__ == "__main__":
    main()
