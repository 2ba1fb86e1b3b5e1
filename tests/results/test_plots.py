"""The figures: what they draw, say and hold, read back from the specification and the SVG."""

from __future__ import annotations

import base64
import json
import re
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from dataclasses import replace
from importlib.resources import files
from itertools import pairwise
from typing import Any, get_args
from xml.etree import ElementTree

import numpy as np
import pytest

from exampp.errors import InputError
from exampp.installed import install_command
from exampp.records.calibration import CalibrationBin
from exampp.results.plots import distributions, dots, heatmap, lines
from exampp.results.plots.distributions import OUTCOMES
from exampp.results.plots.dots import groups, leaderboard
from exampp.results.plots.figure import (
    FORMATS,
    GRADES,
    GREY,
    SERIES,
    Figure,
    Spread,
    Theme,
    writer,
)
from exampp.results.plots.heatmap import DIVERGING, matrix_picture, shade_color

LONG = "a-system-with-a-name-that-is-much-longer-than-any-axis-can-hold-" * 3
HUNDRED = [f"team-{n % 9}-run-{n:03d}" for n in range(100)]


def many(names: list[str]) -> list[Spread]:
    return [
        Spread(name, 0.9 - n / 200, 0.88 - n / 200, 0.92 - n / 200) for n, name in enumerate(names)
    ]


def leaderboards(names: list[str]) -> Figure:
    return leaderboard(many(names), "Cover@20", letters=dict.fromkeys(names, "a"))


def several_methods(names: list[str]) -> Figure:
    return dots.method_scores({"Cover@20": many(names), "AP": many(names[::-1])}, names)


def ranks(names: list[str]) -> Figure:
    points = [lines.RankPair(n, i + 1.0, (7 * i) % len(names) + 1.0) for i, n in enumerate(names)]
    return lines.rank_scatter(points, "Cover@20", subtitle="tau 0.5")


def grades(names: list[str]) -> Figure:
    return distributions.grade_distribution({name: {0: 80, 3: 0, 5: 20} for name in names[:3]})


def heat(names: list[str]) -> Figure:
    values = np.linspace(0, 1, len(names) * 30).reshape(len(names), 30)
    ids = [f"q{n}" for n in range(30)]
    return heatmap.heatmap(values, np.ones(values.shape, np.bool_), names, ids, "Cover@20")


def sizes(names: list[str]) -> Figure:
    points = [
        lines.ProjectedReliability(f"panel {panel}", line, n, n / (n + 20 + panel), 0.1, 0.9)
        for panel in range(3)
        for line in names[:3]
        for n in (1, 10, 40)
    ]
    return lines.reliability_lines(
        points, "Cover@20", present=10, target=0.95, interval="95% interval"
    )


def spans(names: list[str]) -> Figure:
    rows = [(name, 1, 2, n + 1, n + 2, len(names)) for n, name in enumerate(names)]
    return dots.ranks(rows, "25 specifications")


def intervals(names: list[str]) -> Figure:
    return dots.intervals_figure(many(names), "kappa", "Agreement", name="agreement")


def items(names: list[str]) -> Figure:
    return lines.item_scatter([(name, n / 100, 0.5, n > 5) for n, name in enumerate(names)])


def attacked(names: list[str]) -> Figure:
    rows = [(name, 0.4 - n / 300, 0.3, 0.5, n < 2) for n, name in enumerate(names)]
    return dots.attack_lifts(rows, "of passages judged non-relevant")


def corrected(names: list[str]) -> Figure:
    rows = [(name, 0.6, 0.5 - n / 300, 0.4, 0.6, 0.45) for n, name in enumerate(names)]
    return dots.corrected_scores(rows, "P@20", "bars: 95% interval")


def curve(names: list[str]) -> Figure:
    bins = [CalibrationBin(n / 100, n / 110, n) for n in range(1, min(9, len(names)) + 1)]
    return lines.calibration_curve(bins, 2)


def several(names: list[str]) -> Figure:
    series = {"recall": many(names), "precision": many(names[::-1])}
    return dots.series_figure(series, ("measure", "bank"), "share", "Banks", "", name="banks")


def outcomes(names: list[str]) -> Figure:
    counts = {
        name: dict(zip(OUTCOMES, (n, 1, 2, 0, 3), strict=True)) for n, name in enumerate(names)
    }
    return distributions.outcome_shares(counts, 120, "Highest credit first")


FAMILIES = [leaderboards, several_methods, ranks, grades, heat, sizes, spans, intervals, items]
FAMILIES += [attacked, corrected, curve, several, outcomes]
Make = Callable[[list[str]], Figure]


def texts(svg: str) -> list[str]:
    return [node.text or "" for node in ElementTree.fromstring(svg).iter() if "text" in node.tag]


def drawn(figure: Figure) -> str:
    pytest.importorskip("vl_convert")
    return figure.svg()


@pytest.mark.parametrize("make", FAMILIES)
@pytest.mark.parametrize(
    "names", [["one"], ["one", "two", "three"], HUNDRED, [LONG, "<b>&\"'", "\x1b[31m"]]
)
def test_every_figure_draws_whatever_the_names(make: Make, names: list[str]) -> None:
    figure = make(names)
    svg = drawn(figure)
    ElementTree.fromstring(svg)
    for word in ("NaN", "undefined", "Infinity", "<script"):
        assert word not in svg
    assert figure.title in texts(svg)
    assert figure.alt.endswith(".")
    assert figure.data.rows or not figure.spec


@pytest.mark.parametrize("make", FAMILIES)
def test_the_specification_is_vega_lite(make: Make) -> None:
    altair = pytest.importorskip("altair")
    for names in (["one", "two"], HUNDRED):
        altair.Chart.from_dict(json.loads(make(names).json()))


@pytest.mark.parametrize("make", FAMILIES)
def test_a_page_gives_ink_and_ground(make: Make) -> None:
    pytest.importorskip("vl_convert")
    figure = make(["one", "two", "three"])
    svg = figure.svg("page")
    assert "currentColor" in svg
    assert "#1f2328" not in svg
    assert figure.title not in texts(svg)
    assert ElementTree.fromstring(svg).get("aria-label") == figure.alt


@pytest.mark.parametrize("make", [leaderboards, heat, spans])
def test_labels_of_a_hundred_systems_do_not_overlap(make: Make) -> None:
    """Every system has its label, and the lines of text are further apart than they are high."""
    svg = drawn(make(HUNDRED))
    found = re.findall(
        r'<text text-anchor="end" transform="translate\(-?[\d.]+,([\d.]+)\)[^>]*'
        r'font-size="([\d.]+)px"[^>]*>(team-[^<]*)<',
        svg,
    )
    assert {name for _, _, name in found} == set(HUNDRED)
    heights = sorted(float(height) for height, _, _ in found)
    size = max(float(size) for _, size, _ in found)
    gaps = np.diff(heights)
    assert gaps.min() > size


def test_long_names_are_cut_in_the_picture_and_whole_in_the_data() -> None:
    figure = leaderboard([Spread(LONG, 0.5, 0.4, 0.6)], "AP")
    assert LONG not in texts(drawn(figure))
    start, end = next(text for text in texts(drawn(figure)) if "\u2026" in text).split("\u2026")
    assert len(start) > 10
    assert LONG.startswith(start)
    assert len(end) > 10
    assert LONG.endswith(end)
    assert figure.data.rows[0][0] == LONG
    assert LONG in figure.alt


def test_a_leaderboard_is_sorted_and_leaves_out_what_is_undefined() -> None:
    figure = leaderboard([Spread("b", 0.2), Spread("a", 0.7, 0.6, 0.8), Spread("c", None)], "AP")
    assert [row["name"] for row in figure.spec["data"]["values"]] == ["a", "b"]
    assert [row[0] for row in figure.data.rows] == ["a", "b", "c"]
    assert "from a at 0.700 down to b at 0.200" in figure.alt


def test_draft_grades_are_called_so_in_the_picture() -> None:
    earnest = leaderboard([Spread("a", 0.7, 0.6, 0.8)], "AP")
    figure = replace(earnest, draft=True)
    assert any("DRAFT GRADES" in text for text in texts(drawn(figure)))
    for theme in get_args(Theme):
        assert "DRAFT GRADES" in json.dumps(figure.themed(theme)["title"])
        assert "DRAFT" not in json.dumps(earnest.themed(theme))
    assert figure.alt_text == f"DRAFT GRADES. {figure.alt}"
    assert [row[-1] for row in figure.values.rows] == [True]
    assert FORMATS[".csv"](figure, "light").decode().splitlines()[1].endswith(",true")
    assert FORMATS[".tsv"](earnest, "light").decode().splitlines()[1].endswith("\tfalse")


def test_systems_not_told_apart_from_the_best_are_filled() -> None:
    """Letters go on as a1 after z and Z: a1 is not a."""
    letters = {"one": "ab", "two": "b", "three": "a1c", "four": "cd"}
    scores = [Spread(name, 0.9 - n / 10) for n, name in enumerate(letters)]
    figure = leaderboard(scores, "AP", letters=letters)
    filled = {row["name"] for row in figure.spec["data"]["values"] if row["series"] == "best"}
    assert filled == {"one", "two"}
    fills = figure.spec["layer"][1]["encoding"]["fill"]["scale"]
    assert dict(zip(fills["domain"], fills["range"], strict=True)) == {
        "best": SERIES[0],
        "": "none",
    }
    assert groups("aZa1B12") == {"a", "Z", "a1", "B12"}


def test_renormalising_maps_best_to_one_and_worst_to_zero_with_their_errors() -> None:
    """By hand: (x - 0.2) / 0.4."""
    found = dots.renormalised([Spread("a", 0.6, 0.5, 0.7), Spread("b", 0.2), Spread("c", None)])
    assert [one.system for one in found] == ["a", "b"]
    assert found[0] == pytest.approx(("a", 1.0, 0.75, 1.25))
    assert found[1] == ("b", 0.0, None, None)
    assert dots.renormalised([Spread("a", 0.5), Spread("b", 0.5)]) == []


def test_methods_renormalise_over_the_systems_of_the_order_only() -> None:
    scores = {"AP": [Spread("a", 0.9), Spread("b", 0.6), Spread("c", 0.1)]}
    figure = dots.method_scores(scores, ["b", "a"])
    assert [(row[1], row[2]) for row in figure.data.rows] == [("b", 0.0), ("a", 1.0)]


def test_ranges_of_methods_are_whole_however_long() -> None:
    """By hand: the scores go to 0 and 1, the range of b from -2 to 2, that of a from -4 to 6."""
    scores = {"AP": [Spread("a", 0.6, 0.1, 1.1), Spread("b", 0.5, 0.3, 0.7)]}
    bars = re.findall(
        r'<line transform="translate\(([\d.]+),[\d.]+\)" x2="([\d.-]+)" y2="0" stroke="'
        + SERIES[0],
        drawn(dots.method_scores(scores, ["a", "b"])),
    )
    ends = [sorted((float(x), float(x) + float(width))) for x, width in bars]
    (low_a, high_a), (low_b, high_b) = ends
    assert 0 <= low_a < low_b < high_b < high_a <= 600
    assert (high_a - low_a) / (high_b - low_b) == pytest.approx(10 / 4, abs=0.01)


def test_a_dot_at_the_axis_covers_no_name() -> None:
    svg = drawn(leaderboard([Spread("best", 1.0), Spread("last", 0.6)], "AP"))
    (end,) = re.findall(r'<text text-anchor="end" transform="translate\((-[\d.]+),[^>]*>last<', svg)
    (dot,) = re.findall(r'translate\(0,[\d.]+\)" d="M([\d.]+),0A', svg)
    assert float(end) < -float(dot)


def test_outliers_are_named_where_nothing_is_covered() -> None:
    names = [f"system-number-{n}" for n in range(36)]
    shift = {3: 30, 4: 29, 30: 2, 31: 1}
    points = [lines.RankPair(n, i + 1.0, shift.get(i, i) + 1.0) for i, n in enumerate(names)]
    figure = lines.rank_scatter(points, "AP")
    shown = set(texts(drawn(figure)))
    assert {names[i] for i in shift} <= shown
    assert names[10] not in shown


def _mark(layer: dict[str, Any]) -> str:
    return str(layer["mark"]["type"])


def test_grades_are_shares_of_the_graders_cells() -> None:
    figure = distributions.grade_distribution({"x": {0: 3, 5: 1}, "y": {0: 0, 5: 0}})
    assert figure.data.rows == (("x", "0", 3, 0.75), ("x", "5", 1, 0.25))
    assert "x (4 cells): 75.0% 0, 25.0% 5" in figure.alt


def test_equal_systems_of_a_heat_map_are_in_the_order_of_the_leaderboard() -> None:
    values, counts = np.full((3, 2), 0.5), np.ones((3, 2), np.bool_)
    figure = heatmap.heatmap(values, counts, ["c", "a", "b"], ["q", "r"], "AP")
    assert list(dict.fromkeys(row[0] for row in figure.data.rows)) == ["a", "b", "c"]


def test_a_heat_map_is_sorted_both_ways_and_keeps_gaps() -> None:
    values = np.array([[0.0, 0.2, 0.0], [0.5, 1.0, 0.3]])
    counts = np.array([[True, True, False], [True, True, True]])
    figure = heatmap.heatmap(values, counts, ["worse", "better"], ["mid", "easy", "hard"], "AP")
    rounded = [
        tuple(round(one, 9) if isinstance(one, float) else one for one in row)
        for row in figure.data.rows
    ]
    assert rounded == [
        ("better", "easy", 1.0, 0.4), ("better", "hard", 0.3, 0.0), ("better", "mid", 0.5, 0.25),
        ("worse", "easy", 0.2, -0.4), ("worse", "hard", None, None), ("worse", "mid", 0.0, -0.25),
    ]  # fmt: skip
    some = heatmap.heatmap(
        values, counts, ["worse", "better"], ["mid", "easy", "hard"], "AP", shown={"worse"}
    )
    # of fewer systems, values and differences stay
    assert some.data.rows == figure.data.rows[3:]
    assert some.subtitle.startswith("1 of 2 systems")
    image = next(layer["mark"] for layer in figure.spec["layer"] if _mark(layer) == "image")
    pixels = decoded(image["url"])
    assert pixels.shape == (2, 3, 4)
    # each query's own mean is white, and what is as far above as below it is as dark
    assert pixels[0, :2, :3].tolist() == [
        list(bytes.fromhex(colour[1:])) for colour in (DIVERGING[-1], DIVERGING[4])
    ]
    assert pixels[1, 0, :3].tolist() == list(bytes.fromhex(DIVERGING[0][1:]))
    assert pixels[1, :, 3].tolist() == [255, 0, 255]


def decoded(address: str) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """A PNG as we write it, read by its standard: 8 bits, colour and alpha, no filter."""
    png = base64.b64decode(address.removeprefix("data:image/png;base64,"))
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    place, chunks = 8, {}
    while place < len(png):
        (size,) = struct.unpack(">I", png[place : place + 4])
        kind, content = png[place + 4 : place + 8], png[place + 8 : place + 8 + size]
        (check,) = struct.unpack(">I", png[place + 8 + size : place + 12 + size])
        assert check == zlib.crc32(kind + content)
        chunks[kind] = content
        place += 12 + size
    width, height, depth, colour = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    assert (depth, colour) == (8, 6)
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, -1)
    assert not lines[:, 0].any()
    return lines[:, 1:].reshape(height, width, 4)


def test_texts_of_queries_stand_with_their_ids() -> None:
    made = heatmap.heatmap(
        np.eye(2), np.ones((2, 2), np.bool_), ["a", "b"], ["q1", "q2"], "AP", texts={"q1": "why"}
    )
    assert made.spec["layer"][0]["encoding"]["x"]["scale"]["domain"] == ["q1  why", "q2"]


def test_grades_have_the_colours_of_the_pages_and_grow_darker() -> None:
    lightness = [luminance(shade_color(value, GRADES)) for value in np.linspace(0, 1, 101)]
    assert all(a > b for a, b in pairwise(lightness))
    assert [shade_color(n / 5, GRADES) for n in range(6)] == list(GRADES)
    style = files("exampp.web").joinpath("static/style.css").read_text(encoding="utf-8")
    light = style.partition("@media")[0]
    assert [f"--r{n}: {colour};" in light for n, colour in enumerate(GRADES)] == [True] * 6
    (bars,) = (
        layer["encoding"]["color"]
        for layer in grades(["g"]).spec["layer"]
        if "color" in layer["encoding"]
    )
    assert bars["scale"]["range"] == [shade_color(value, GRADES) for value in (0, 0.5, 1)]


def test_the_ends_of_a_heat_map_stand_out_without_seeing_red_or_green() -> None:
    """Blue is above the middle, where red is not: protanopes and deuteranopes see it."""
    low, high = (bytes.fromhex(colour[1:]) for colour in (DIVERGING[0], DIVERGING[-1]))
    assert high[2] - low[2] > 150
    assert decoded(
        matrix_picture(np.zeros((1, 1)), np.ones((1, 1), np.bool_), DIVERGING)
    ).shape == (
        1,
        1,
        4,
    )


def test_one_outlier_does_not_own_the_axis() -> None:
    scores = [Spread(f"s{n}", 0.60 + n / 100, 0.59 + n / 100, 0.61 + n / 100) for n in range(6)]
    made = leaderboard([*scores, Spread("far", 0.05, 0.01, 0.09)], "AP")
    low, high = made.spec["layer"][0]["encoding"]["x"]["scale"]["domain"]
    assert 0.5 < low < 0.6 < 0.66 <= high < 0.8
    assert ("far", 0.05, 0.01, 0.09, "") in made.data.rows
    assert "\u2039 0.050" in made.svg()
    assert "beyond the axis" in made.subtitle


def test_a_pdf_has_its_fonts() -> None:
    made = leaderboard([Spread("a", 0.5), Spread("b", 0.6)], "AP").pdf()
    assert made.startswith(b"%PDF-")
    assert b"/FontFile2" in made


def test_methods_have_rows_in_the_order_given_and_room_to_stand_apart() -> None:
    names = [f"s{n}" for n in range(100)]
    scores = {m: [Spread(name, n / 100) for n, name in enumerate(names)] for m in ("m", "n")}
    one, two = (dots.method_scores(dict(list(scores.items())[:n]), names).spec for n in (1, 2))
    assert one["encoding"]["y"]["scale"]["domain"] == names
    assert two["height"] > one["height"]


@pytest.mark.parametrize("ground", ["#ffffff", "#14171a"])
def test_series_stand_out_from_both_grounds(ground: str) -> None:
    """WCAG 2.2, 1.4.11: 3 to 1 for graphics."""
    for colour in (*SERIES, GREY):
        light, dark = sorted((luminance(colour), luminance(ground)), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 3


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2.2 defines it."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_every_format_is_written() -> None:
    pytest.importorskip("vl_convert")
    figure = leaderboards(["one", "two"])
    for ending, head in (
        (".svg", b"<svg"),
        (".PNG", b"\x89PNG"),
        (".json", b"{"),
        (".csv", b"system,"),
        (".tsv", b"system\t"),
    ):
        assert writer(f"x{ending}")(figure, "light").startswith(head)
    assert writer("x.png")(figure, "light") != writer("x.png")(figure, "dark")
    for name in ("x.gif", "x"):
        with pytest.raises(InputError, match=r"\.svg, \.pdf, \.png"):
            writer(name)


NOTHING = [
    dots.ranks([], "no specification"),
    lines.reliability_lines([], "AP", present=0, target=0.95, interval=""),
    leaderboard([], "AP"),
    leaderboard([Spread("a", None)], "AP"),
    dots.method_scores({"AP": [Spread("a", 0.5)]}, ["a"]),
    dots.method_scores({}, []),
    lines.rank_scatter([], "AP"),
    distributions.grade_distribution({}),
    distributions.grade_distribution({"a": {0: 0, 1: 0}}),
    heatmap.heatmap(np.zeros((0, 0)), np.zeros((0, 0), np.bool_), [], [], "AP"),
    heatmap.heatmap(np.zeros((1, 0)), np.zeros((1, 0), np.bool_), ["a"], [], "AP"),
    heatmap.heatmap(np.zeros((1, 1)), np.zeros((1, 1), np.bool_), ["a"], ["q"], "AP"),
]


@pytest.mark.parametrize("figure", NOTHING)
def test_where_there_is_nothing_the_figure_says_so(figure: Figure) -> None:
    svg = drawn(figure)
    assert "Nothing to draw." in texts(svg)
    assert "Infinity" not in svg
    assert not figure.spec
    assert re.fullmatch(r"Nothing to draw: .+\.", figure.alt)


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(InputError, match=re.escape(install_command("plots"))):
        leaderboards(["one"]).svg()


@pytest.mark.skipif(sys.platform != "linux", reason="limits of address space as Linux has them")
def test_a_limit_of_memory_is_a_sentence() -> None:
    """The drawing program reserves more address space than any limit, and would abort exampp."""
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))\n"
        "from exampp.errors import InputError\n"
        "from exampp.results.plots import figure\n"
        "try:\n    figure._converter()\nexcept InputError as error:\n    print(error)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.returncode == 0
    assert ran.stdout.startswith("plots cannot be drawn under this limit of memory")


@pytest.mark.parametrize("make", [one for one in FAMILIES if one is not heat])
def test_marks_say_their_values_to_a_pointer(make: Make) -> None:
    pytest.importorskip("vl_convert")
    svg = make(["one & two", 'say "hi" <b>', "three"]).svg("page")
    tree = ElementTree.fromstring(svg)
    marks = [node for node in tree.iter() if node.get("data-value") is not None]
    assert marks
    for mark in marks:
        assert re.search(r"\d", mark[0].text or "")
    # pages of the server allow no styles in elements
    assert "style=" not in svg


def test_a_mark_says_name_value_error_and_number_of_queries() -> None:
    pytest.importorskip("vl_convert")
    scores = [Spread("a & b", 0.5, 0.4, 0.6), Spread("c", 0.3)]
    svg = leaderboard(scores, "AP", queries={"a & b": 43, "c": 1}).svg()
    said = {node.text for node in ElementTree.fromstring(svg).iter() if "title" in node.tag}
    assert said == {"a & b: 0.500 (0.400 to 0.600), 43 queries", "c: 0.300, 1 query"}


def test_the_scatter_plot_has_tau_inside() -> None:
    pytest.importorskip("vl_convert")
    points = [lines.RankPair("a", 1, 2), lines.RankPair("b", 2, 1)]
    assert "Kendall's tau -1.000" in texts(lines.rank_scatter(points, "AP", tau=-1.0).svg())


def test_plots_have_five_sizes_of_text_at_most() -> None:
    pytest.importorskip("vl_convert")
    sizes_of = {
        size
        for make in FAMILIES
        for names in (["one", "two", "three"], HUNDRED)
        for size in re.findall(r'font-size="([\d.]+)px"', make(names).svg())
    }
    assert len(sizes_of) <= 5, sizes_of


def test_more_series_than_colours_have_different_marks() -> None:
    series = {f"turn {n}": many(["a", "b"]) for n in range(1, 15)}
    figure = dots.series_figure(series, ("turn", "system"), "Cover", "By turn", "", name="turns")
    (points,) = (one for one in figure.spec["layer"] if one["mark"]["type"] == "point")
    looks = [points["encoding"][name]["scale"]["range"] for name in ("stroke", "shape")]
    assert len(set(zip(*looks, strict=True))) == len(series)
    assert len(figure.data.rows) == 2 * len(series)


def test_undefined_values_of_a_series_are_data_and_not_drawn() -> None:
    series = {"recall": [Spread("a", 0.5, 0.4, 0.6)], "precision": [Spread("a", None)]}
    figure = dots.series_figure(series, ("measure", "bank"), "share", "", "", name="banks")
    assert [row["value"] for row in figure.spec["data"]["values"]] == [0.5]
    assert figure.data.rows == (
        ("recall", "a", 0.5, 0.4, 0.6),
        ("precision", "a", None, None, None),
    )
    nothing = dots.series_figure(
        {"recall": [Spread("a", None)]}, ("measure", "bank"), "share", "", "", name="banks"
    )
    assert not nothing.spec
    assert nothing.alt == "Nothing to draw: share is undefined."


def test_bars_of_outcomes_are_stacked_in_their_order() -> None:
    counts = {
        "a": dict(zip(OUTCOMES, (4, 2, 0, 1, 1), strict=True)),
        "b": dict.fromkeys(OUTCOMES, 0),
    }
    figure = distributions.outcome_shares(counts, 8, "Highest credit first")
    bars = [(row["outcome"], row["start"], row["end"]) for row in figure.spec["data"]["values"]]
    assert bars == [
        ("answered rightly", 0.0, 0.5),
        ("abstained rightly", 0.5, 0.75),
        ("abstained wrongly", 0.75, 0.875),
        ("answered wrongly", 0.875, 1.0),
    ]
    # b has no response
    assert figure.subtitle.endswith("space: no response, or no grade")
    assert figure.spec["encoding"]["y"]["scale"]["domain"] == ["a", "b"]
    assert not distributions.outcome_shares({}, 0, "").spec
