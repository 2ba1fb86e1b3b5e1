"""Compare the outputs of every command between a revision and the working tree.

python benchmarks/golden/compare.py REVISION [--only REGEX] [--texts] [--keep FOLDER]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
TREE = HERE.parent.parent
MACHINE = re.compile(r"--format (json|tsv|csv)\b")


def main() -> int:
    """Record both trees side by side, compare them, and print the differences."""
    read = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    read.add_argument("revision", help="the revision before the change")
    read.add_argument("--only", default="", help="command lines that match this")
    read.add_argument("--texts", action="store_true", help="compare texts for people too")
    read.add_argument("--keep", type=Path, help="a folder that keeps both recordings")
    read.add_argument("--before", type=Path, help="a kept recording of the revision, to use again")
    asked = read.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = asked.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        before, after = asked.before or folder / "before.jsonl", folder / "after.jsonl"
        with contextlib.ExitStack() as stack:
            started = [record(TREE, after, asked.only)]
            if not asked.before:
                old = stack.enter_context(checked_out(asked.revision))
                started.append(record(old, before, asked.only))
            if any(one.wait() for one in started):
                raise SystemExit("a recording failed")
        return report(before, after, re.compile(asked.only), texts=asked.texts)


@contextlib.contextmanager
def checked_out(revision: str) -> Iterator[Path]:
    """Check a revision out beside the working tree's data."""
    folder = TREE.parent / f".golden-{os.getpid()}"
    subprocess.run(
        ["git", "worktree", "add", "-q", "--detach", folder, revision], cwd=TREE, check=True
    )
    try:
        yield folder
    finally:
        subprocess.run(["git", "worktree", "remove", "--force", folder], cwd=TREE, check=True)


def record(tree: Path, out: Path, only: str) -> subprocess.Popen[bytes]:
    """Start the recording of one tree."""
    data = TREE.parent / "shared" / "data"
    paths = {**os.environ, "PYTHONPATH": str(tree / "src"), "PYTHONHASHSEED": "0"}
    script = HERE / "record.py"
    return subprocess.Popen([sys.executable, script, out, tree, data, only], env=paths)


def report(before: Path, after: Path, only: re.Pattern[str], *, texts: bool) -> int:
    """Print the counts and every unexplained difference."""
    listed = tomllib.loads((HERE / "differences.toml").read_text()).get("difference", [])
    sides = [outputs(path, only, texts) for path in (before, after)]
    counts: Counter[str] = Counter()
    for command, output in sorted(sides[0].keys() | sides[1].keys()):
        old, new = (side.get((command, output)) for side in sides)
        if (command, "exit") not in sides[0]:
            counts["of new command lines"] += 1
        elif old == new:
            counts["equal"] += 1
        elif old and new and not texts and without_texts(old) == without_texts(new):
            counts["equal but for captions and notes"] += 1
        elif any(
            re.fullmatch(one["command"], command) and re.fullmatch(one["output"], output)
            for one in listed
        ):
            counts["on the list"] += 1
        else:
            counts["unexplained"] += 1
            print(f"{command}\n  {output}: {shortened(old)}\n  now: {shortened(new)}")
    print(", ".join(f"{count:,} {name}" for name, count in counts.items()))
    return int(bool(counts["unexplained"]))


def outputs(path: Path, only: re.Pattern[str], texts: bool) -> dict[tuple[str, str], str]:
    """Return everything that is compared, by command line and name of the output."""
    found: dict[tuple[str, str], str] = {}
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            one: Mapping[str, Any] = json.loads(line)
            command = one["command"]
            if not only.search(command):
                continue
            found[command, "exit"] = str(one["exit"])
            if texts or MACHINE.search(command):
                found[command, "out"] = one["out"]
            if texts:
                found[command, "err"] = one["err"]
            for name, text in one["files"].items():
                if texts or not name.endswith((".html", ".svg", ".md")):
                    found[command, name] = text
    return found


def without_texts(text: str) -> str:
    """Return JSON without captions and notes, which are for people; all else as it is."""

    def rest(value: Any) -> Any:
        if isinstance(value, list):
            return [rest(one) for one in value]
        if not isinstance(value, dict):
            return value
        # a column of rows may be called verdict, too
        texts = {"caption", "notes", "legend", *(["verdict"] if "rows" in value else [])}
        return {k: rest(v) for k, v in value.items() if k not in texts}

    if not text.startswith(("{", "[")):
        return text
    try:
        return json.dumps(rest(json.loads(text)))
    except ValueError:
        return text


def shortened(text: str | None) -> str:
    """Return the start of an output, or a mark for a missing one."""
    return "(none)" if text is None else " ".join(text.split())[:160]


if __name__ == "__main__":
    sys.exit(main())
