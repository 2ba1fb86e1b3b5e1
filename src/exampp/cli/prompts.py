"""`exampp prompts`: what a grader is asked."""

from __future__ import annotations

from typing import Annotated

import typer

from exampp.cli.options import Style, TableStyle
from exampp.cli.output import show
from exampp.report.table import Table

app = typer.Typer(help="What a grader is asked.", no_args_is_help=True)


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


@app.command("show")
def show_prompt(
    name: Annotated[str, typer.Argument(help="A bundled prompt, or a TOML file of yours.")],
) -> None:
    """Print a prompt's text with its slots in braces."""
    from exampp.prompts import load

    prompt = load(name)
    typer.echo(f"# {prompt.title}\n# {prompt.source}\n")
    if prompt.system:
        typer.echo(f"[system]\n{prompt.system}\n\n[user]")
    typer.echo(prompt.user or "(this grader reads item and passage without a prompt)")
