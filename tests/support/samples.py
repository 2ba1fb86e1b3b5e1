"""Samples for tests of formats: files from text, and texts that break careless code."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from exampp.errors import InputError

COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.ZstdCompressor(write_checksum=True).compress,
}

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
"""Any text that UTF-8 can hold: controls, line separators, byte-order marks, quotes."""
SPOKEN = TEXTS.filter(lambda text: bool(text.strip()))
WORDS = st.text(
    st.characters(exclude_categories=["Cs", "Zs", "Zl", "Zp", "Cc"]), min_size=1, max_size=8
).filter(lambda text: not text.startswith(("\ufeff", "[{")))
"""Ids without whitespace, as TREC files need them; a file that begins with `[{` is one of JSON."""
IDS = WORDS

in_one_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
"""For round trips, which write to the same temporary file again and again."""

Reader = Callable[..., Iterator[Any]]


def file(folder: Path, content: str | bytes, name: str = "file.txt") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def fault(read: Reader, path: Path, **options: Any) -> InputError:
    """The error that refuses the file."""
    with pytest.raises(InputError) as caught:
        list(read(path, **options))
    assert caught.value.file == str(path)
    return caught.value
