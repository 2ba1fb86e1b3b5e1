"""A server with unreadable replies, from the run to the leaderboard and the comparison."""

from __future__ import annotations

import json
from pathlib import Path

from support import exams
from support.commands import Commands
from support.servers import Answer, FaultServer, Seen, completion


def unreadable(seen: Seen) -> Answer:
    """p1 is unreadable the first time; what p2 says of sunsets always is."""
    if "scatters" in seen.text and not seen.attempt:
        return Answer(completion("who knows"))
    if "more air" in seen.text and "sunsets" in seen.text:
        return Answer(completion("I cannot decide"))
    return Answer(completion("5" if "spins" in seen.text or "Compasses" in seen.text else "0"))


def test_unreadable_replies_are_repeated_and_leave_bounds(
    tmp_path: Path, exampp_command: Commands
) -> None:
    with exams.make(tmp_path) as made:
        path = made.path
    with FaultServer(unreadable) as server:
        where = ("--base-url", server.url, "--model", "m", "--decode", "text")
        ran = exampp_command("grade", path, "--grader", "openai", *where)
    # p1 has two cells and p2 one that is unreadable twice
    assert "3 repeated after an unreadable reply (2 graded), 1 without a grade" in ran.out
    # alpha covers none of two items of q1, and the one of q2; one cell of q1 may be covered
    out = exampp_command("evaluate", path, "-m", "Cover@20", "--format", "json").out
    rows = {row["system"]: row for row in json.loads(out)["rows"]}
    assert [rows["alpha"][name] for name in ("low", "mean", "high")] == [0.5, 0.5, 0.75]
    assert [rows["beta"][name] for name in ("low", "mean", "high")] == [1.0, 1.0, 1.0]
    assert "0.500 [0.500, 0.750]" in exampp_command("evaluate", path, "-m", "Cover@20").out
    # beta covers both items of q1: one is lost by alpha, of the other nobody knows
    compared = exampp_command("compare", path, "beta", "alpha", "--format", "json").out
    moves = [row["change"] for row in json.loads(compared)["items"]["rows"]]
    assert sorted(moves) == ["lost", "unknown loss"]
    assert (
        "1 item unknown: a cell of the system that does not"
        in exampp_command("compare", path, "beta", "alpha", "--notes").out
    )
    assert exampp_command("report", path, "-o", tmp_path / "report.html").code == 0
    assert "[0.500, 0.750]" in (tmp_path / "report.html").read_text()
