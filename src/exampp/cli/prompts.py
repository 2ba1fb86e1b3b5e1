"""`exampp prompts`: what a grader is asked."""

from __future__ import annotations

from typing import Annotated

import typer

from exampp.cli.command import Commands, Counts, Given, counting
from exampp.cli.options import Style, TableStyle
from exampp.cli.output import show
from exampp.report.table import Table

EXAMPLE = {
    "query": "how volcanoes shape landscapes",
    "question": "Why does basaltic lava travel farther than rhyolitic lava?",
    "nugget": "runny basalt spreads far",
    "context": "Basaltic lava is poor in silica. It is runny and can flow for many kilometres.",
    "correct_answer": "it is low in silica and runny",
    "answer": "because it is runny",
}

app = Commands(help="What a grader is asked.", no_args_is_help=True)


@app.command("list")
def list_prompts(style: TableStyle = Style.text) -> None:
    """List the bundled prompts."""
    # the catalogue pulls in the rules of reading, which `exampp --help` can do without
    from exampp.prompts import load, names

    rows = []
    for name in names():
        prompt = load(name)
        scale = f"{prompt.lowest}-{prompt.highest}"
        rows.append((name, "/".join(prompt.grades), scale, prompt.title))
    show(Table.of(["prompt", "grades", "scale", "title"], rows), style.value)


def _has_text(given: Given) -> bool:
    from exampp.prompts import load

    return bool(load(given["name"]).user)


@app.command("show")
@counting(Counts(("--filled",), "for prompts that have a text", _has_text))
def show_prompt(
    name: Annotated[str, typer.Argument(help="A bundled prompt, or a TOML file of yours.")],
    filled: Annotated[bool, typer.Option("--filled", help="Fill the slots with an example.")] = (
        False
    ),
) -> None:
    """Print a prompt's text, its slots in braces or filled with an example."""
    from exampp.prompts import fill, load

    prompt = load(name)
    typer.echo(f"# {prompt.title}\n# {prompt.source}\n")
    if not prompt.user:
        typer.echo("(this grader reads item and passage without a prompt)")
        return
    shown = fill(prompt, EXAMPLE) if filled else prompt
    if shown.system:
        typer.echo(f"[system]\n{shown.system}\n\n[user]")
    typer.echo(shown.user)
