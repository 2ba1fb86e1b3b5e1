"""Texts of code, pages, docs and README avoid words and idioms that readers stumble over."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

import exampp

SOURCE = Path(exampp.__file__).parent
ROOT = SOURCE.parents[1]
INSTEAD = {
    r"mend(s|ed|ing)?": "fix",
    r"(is|are|was|were|being) (told|said)": "is reported, is printed, shows",
    r"(hear|speak)s?( of)?": "reports, shows",
    r"told (apart|from)": "distinguished, detected by",
    r"tells? (\w+ ){1,3}apart": "distinguishes",
    r"due(?! to)": "pending",
    r"in vain": "failed, without effect",
    r"anew": "again",
    r"of (its|one's|their|your|our|his) own(?! (?!and|on|that|for|in|with|they)\w)": "separate",
    r"(at|to) hand": "available",
    r"takes? the place of|in (the|its|their) place of": "replaces, instead of",
    r"as (it|they) stands?": "unchanged",
    r"stands? over": "overrides",
    r"(all|both) alike": "all, equally",
    r"no such (?!file|collection)": "unknown, no",
    r"(?<!there )(is|are|was|were) no (?!longer|more|better|wider)": "is not",
    r"(sits?|sat) the exam": "was evaluated",
    r"may lack|lacks": "is missing",
    r"errands?|lanes?|sittings?|halls?|houses?|doors?": "module, API, request, session",
    r"would change nothing": "has no effect",
    r"what (is|was|are|were) (kept|held|asked|told|said|wanted|meant)": "name the thing itself",
}
"""Patterns of whole words, each with what to write instead."""
WORDS = re.compile("|".join(rf"\b(?:{one})\b" for one in INSTEAD), re.I)
ALLOWED = {
    "cannot be told": "the gate's verdict, a value of its output",
    "and Hall": "an author",
    "& Hall": "an author",
    "Hall 1988": "an author",
    "due then": "a key of the output",
}
"""Texts that may contain such words, each with the reason."""
MARKUP = re.compile(r"<[^>]*>|\{[%{#].*?[%}#]\}", re.S)
JS_TEXT = re.compile(r"""//[^\n]*|/\*.*?\*/|"[^"\n]*"|`[^`]*`""", re.S)
CODE_BLOCK = re.compile(r"^ *```.*?^ *```", re.M | re.S)
FILES = sorted(
    path
    for folder, endings in ((SOURCE, (".py", ".html", ".js")), (ROOT / "docs", (".md",)))
    for path in (*folder.rglob("*"), ROOT / "README.md")
    if path.suffix in endings and ".min." not in path.name
)


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the texts for people in a file with their lines (1 for a whole file)."""
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Constant):
                text = node.value if isinstance(node.value, str) else ""
                if " " in text and "\\" not in text:  # a backslash marks a pattern
                    yield node.lineno, text
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string
    elif path.suffix == ".js":
        yield 1, " ".join(JS_TEXT.findall(source))
    else:
        pattern = MARKUP if path.suffix == ".html" else CODE_BLOCK
        yield 1, pattern.sub(" ", source)


def findings(path: Path) -> Iterator[str]:
    """Yield the words to replace in a file, each with its context."""
    for line, text in texts(path):
        plain = " ".join(text.split())
        for allowed in ALLOWED:
            plain = plain.replace(allowed, "")
        for match in WORDS.finditer(plain):
            pattern = next(one for one in INSTEAD if re.fullmatch(one, match[0], re.I))
            around = plain[max(0, match.start() - 40) : match.end() + 40]
            yield f"{path.name}:{line}: ... {around} ... (write: {INSTEAD[pattern]})"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_texts_use_plain_words(path: Path) -> None:
    assert not [*findings(path)]


@pytest.mark.parametrize(
    "text",
    [
        "Mend the bank.",
        "The file is told from its content.",
        "Add a grader of your own.",
        "there is no such measure",
        "This is no bank.",
        "cells that are due",
    ],
)
def test_words_are_found(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.md").write_text(f"Some text. {text}")
    assert [*findings(tmp_path / "a.md")]
