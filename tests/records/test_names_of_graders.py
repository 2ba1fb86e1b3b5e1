"""Graders under names that differ, and their keys wherever machines read."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import exams
from support.commands import Commands

import exampp
from exampp.formats.workbench_graders import identity_json
from exampp.graders.scripted import ScriptedGrader
from exampp.records import GraderIdentity
from exampp.records.graders import choose_grader, with_distinct_names

PROMPT = "question-self-rating"


def grader(model: str = "t5", prompt: str = PROMPT, **settings: object) -> GraderIdentity:
    return GraderIdentity(model, prompt, "question", settings=settings)


def names(*graders: GraderIdentity) -> list[str]:
    return [one.name for one in with_distinct_names(graders)]


def test_a_name_says_as_much_as_tells_it_apart() -> None:
    scored, written = grader(decode="score"), grader(decode="generate", beams=5)
    other = grader("flan", decode="score")
    assert names(scored, other) == [f"t5:{PROMPT}", f"flan:{PROMPT}"]
    assert names(scored, written, other) == [
        f"t5:{PROMPT}:score",
        f"t5:{PROMPT}:generate",
        f"flan:{PROMPT}",
    ]
    greedy = grader(decode="generate", beams=1)
    assert names(scored, written, greedy) == [
        f"t5:{PROMPT}:score",
        f"t5:{PROMPT}:generate:{written.key[:8]}",
        f"t5:{PROMPT}:generate:{greedy.key[:8]}",
    ]
    # whose decoding is not known has its key; what others are called by their decoding is taken
    unknown, taken = grader(), grader(prompt=f"{PROMPT}:score")
    assert names(scored, unknown, taken) == [
        f"t5:{PROMPT}:score:{scored.key[:8]}",
        f"t5:{PROMPT}",
        f"t5:{PROMPT}:score:{taken.key[:8]}",
    ]


def test_each_is_chosen_by_the_name_that_is_shown() -> None:
    several = with_distinct_names(
        [grader(decode="score"), grader(decode="generate"), grader("flan")]
    )
    for one in several:
        assert choose_grader(several, grader=one.name).key == one.key
    with pytest.raises(exampp.errors.AmbiguousGrader, match="2 graders match"):
        choose_grader(several, grader=f"t5:{PROMPT}")


def test_graders_that_share_a_name_are_listed_with_the_settings_that_differ() -> None:
    several = with_distinct_names(
        [grader(version="2", cut=1, words="a" * 40), grader(version="3", words="a" * 40)]
    )
    with pytest.raises(exampp.errors.AmbiguousGrader) as caught:
        choose_grader(several)
    first, second = caught.value.graders
    assert first.endswith(", cut 1, version 2")
    assert second.endswith(", cut unset, version 3")
    with pytest.raises(exampp.errors.AmbiguousGrader) as caught:
        choose_grader([grader("t5", words="b"), grader("flan", words="c")])
    assert not any("words" in name for name in caught.value.graders)


@given(
    st.lists(
        st.builds(
            grader,
            st.sampled_from(["a", "a:p", "b"]),
            st.sampled_from(["p", "p:score", "score", "a"]),
            decode=st.sampled_from(["score", "generate", "", None]),
            beams=st.integers(1, 2),
        ),
        max_size=6,
        unique_by=lambda one: one.key,
    )
)
def test_no_two_graders_have_one_name(several: list[GraderIdentity]) -> None:
    found = names(*several)
    assert len(set(found)) == len(several)
    for order in list(permutations(range(len(several))))[:3]:
        assert names(*(several[n] for n in order)) == [found[n] for n in order]
    assert names(*with_distinct_names(several)) == found


def test_a_name_among_others_is_no_part_of_a_grader() -> None:
    one, _ = with_distinct_names([grader(decode="score"), grader(decode="generate")])
    assert one == grader(decode="score")
    assert replace(one, settings={**one.settings, "read": "rubric"}).name == f"t5:{PROMPT}@rubric"
    assert "shown" not in identity_json(one)


def test_no_file_says_what_a_grader_is_called(tmp_path: Path) -> None:
    with exams.make(tmp_path) as collection:
        collection.grade(ScriptedGrader("4"), model="m")
        collection.export(tmp_path / "out.jsonl", "workbench")
    text = (tmp_path / "out.jsonl").read_text()
    named = text.replace('"model":"m"', '"shown":"another","model":"m"')
    (tmp_path / "named.jsonl").write_text(named)
    assert named != text
    (found,) = exampp.open(tmp_path / "named.jsonl").graders
    assert found.name == f"m:{PROMPT}"


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collection with two graders of one model and prompt, and a person's decisions."""
    folder = tmp_path_factory.mktemp("twins")
    with exams.make(folder) as collection:
        for reply in ("4", "1"):
            collection.grade(ScriptedGrader(reply), model="m")
        keys = [one.key for one in collection.graders]
        item = collection.grades(keys[0]).gradebook.queries[0].item_ids[0]
        collection.grades(keys[0]).decisions.decide("q1", item, "p1", 5, author="ada")
    (folder / "official.json").write_text('{"alpha": 1, "beta": 2}')
    return folder


COMMANDS = (
    "status {exam}",
    "evaluate {exam} --grader {key}",
    "analyze correlation {exam} --official {official} --samples 0",
    "analyze agreement {exam}",
    "analyze significance {exam} --grader {key}",
    "compare {exam} alpha beta --grader {key}",
    "review {exam} verify --grader {key}",
    "review {exam} grid --grader {key}",
    "review {exam} missing --grader {low}",
    "review {exam} spurious --grader {key}",
    "bank edit {exam} retire {item} --query q1 --dry-run",
)


@pytest.mark.parametrize(
    ("command", "style"),
    [*((one, "json") for one in COMMANDS), (COMMANDS[1], "csv"), (COMMANDS[3], "tsv")],
)
def test_machines_get_the_whole_key_of_every_grader(
    command: str, style: str, twins: Path, exampp_command: Commands
) -> None:
    with exampp.Collection(twins / "my.exam") as collection:
        graders = collection.graders
        item = collection.grades(graders[0].key).gradebook.queries[0].item_ids[0]
    filled = command.format(
        exam=twins / "my.exam",
        official=twins / "official.json",
        key=graders[0].key[:8],
        low=graders[1].key[:8],
        item=item,
    )
    done = exampp_command(*filled.split(), "--format", style)
    assert done.code == 0, done.err
    heads, values = columns_of_keys(done.out, style)
    assert heads
    chosen = {"{key}": graders[:1], "{low}": graders[1:]}
    named = next((some for word, some in chosen.items() if word in command), graders)
    assert values == {one.key for one in named}


def columns_of_keys(out: str, style: str) -> tuple[set[str], set[str]]:
    """The headings of columns that hold keys, and the keys in them, over all tables."""
    rows: list[dict[str, object]] = []
    if style == "json":
        found = json.loads(out)
        tables = [found] if "rows" in found else found.values()
        rows = [row for table in tables for row in table["rows"]]
    else:
        for part in out.split("\n\n"):
            rows += csv.DictReader(io.StringIO(part), delimiter="\t" if style == "tsv" else ",")
    keyed = [(h, str(v)) for row in rows for h, v in row.items() if h and h.endswith("key") and v]
    return {h for h, _ in keyed}, {v for _, v in keyed}
