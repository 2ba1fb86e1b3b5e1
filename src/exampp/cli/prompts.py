"""`exampp prompts`: what a grader is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from exampp.cli import streams
from exampp.cli.command import Counts, Given, Group, counting
from exampp.cli.declare import argument, option
from exampp.cli.options import Style, TableStyle
from exampp.cli.output import say, show
from exampp.report.table import Table

if TYPE_CHECKING:
    from exampp.prompts import GenerationPrompt, Prompt

EXAMPLE = {
    "query": "how volcanoes shape landscapes",
    "subtopic": "lava plateaus",
    "question": "Why does basaltic lava travel farther than rhyolitic lava?",
    "nugget": "runny basalt spreads far",
    "context": "Basaltic lava is poor in silica. It is runny and can flow for many kilometres.",
    "correct_answer": "it is low in silica and runny",
    "answer": "because it is runny",
}

app = Group("prompts", help="Show what a grader is asked, and a writer of banks.")


@app.verb("list")
def list_prompts(style: TableStyle = Style.text) -> None:
    """List the prompts: those that grade, those that ask for items, and those of packages.

    Example: exampp prompts list
    """
    # the catalogue pulls in the rules of reading, which `exampp --help` can do without
    from exampp.prompts import Prompt, every
    from exampp.prompts.catalogue import plugins

    rows = [
        (one.name, "/".join(one.grades), f"{one.lowest}-{one.highest}", "", one.title)
        if isinstance(one, Prompt)
        else (one.name, "", "", one.makes, one.title)
        for one in every()
    ]
    notes = [one.fault for one in plugins() if one.fault]
    heads = ["prompt", "grades", "scale", "makes", "title"]
    show(Table.of(heads, rows, notes=notes), style.value)


def _has_text(given: Given) -> bool:
    from exampp.prompts import find

    return not given["toml"] and bool(find(given["name"]).user)


@app.verb("show")
@counting(Counts(("--filled",), "for prompts that have a text, and without --toml", _has_text))
def show_prompt(
    name: Annotated[str, argument(help="A bundled prompt, or a TOML file of yours.")],
    filled: Annotated[bool, option("--filled", help="Fill the slots with an example.")] = (False),
    toml: Annotated[
        bool, option("--toml", help="The whole declaration: a file to start your own from.")
    ] = False,
) -> None:
    """Print a prompt's text, its slots in braces or filled with an example.

    The slots are described in docs/graders.md and, of prompts that ask for items, docs/bank.md.

    Example: exampp prompts show question-self-rating --filled
    """
    from exampp.prompts import find, toml_of

    prompt = find(name)
    if toml:
        streams.write(toml_of(name))
        return
    say(f"# {prompt.title}\n# {prompt.source}\n")
    if not prompt.user:
        say("(this grader reads item and passage without a prompt)")
        return
    parts = _filled(prompt) if filled else _template(prompt)
    if list(parts) == ["user"]:
        say(parts["user"])
    else:
        say("\n\n".join(f"[{part}]\n{text}" for part, text in parts.items()))


def _filled(prompt: Prompt | GenerationPrompt) -> dict[str, str]:
    from exampp.prompts import Prompt, fill
    from exampp.prompts.generation import Wish, fill_request

    if isinstance(prompt, Prompt):
        texts = fill(prompt, EXAMPLE)
        system, user = texts.system, texts.user
    else:
        system, user = fill_request(prompt, Wish(), EXAMPLE["query"], EXAMPLE["subtopic"])
    return {**({"system": system} if system else {}), "user": user}


def _template(prompt: Prompt | GenerationPrompt) -> dict[str, str]:
    keys = ("system", "user", "instruction", "keys_instruction")
    return {key: text for key in keys if (text := getattr(prompt, key, ""))}
