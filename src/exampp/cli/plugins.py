"""`exampp plugins`: what packages add."""

from __future__ import annotations

from exampp.cli.options import Style, TableStyle
from exampp.cli.output import show
from exampp.evaluate.measure_names import MEASURES
from exampp.formats.declared import FORMATS
from exampp.llm.backends import GRADERS
from exampp.prompts import catalogue
from exampp.report.table import Table


def plugins(style: TableStyle = Style.text) -> None:
    """List what other packages add: graders, prompts, formats and measures.

    What cannot be used is listed with the reason.

    Example: exampp plugins
    """
    found = [*GRADERS.plugins(), *catalogue.plugins(), *FORMATS.plugins(), *MEASURES.plugins()]
    rows = [(one.kind, one.name, one.package, one.fault or "can be used") for one in found]
    notes = [] if rows else ["No package adds anything. docs/extending.md says how one does."]
    show(Table.of(["kind", "name", "package", "state"], rows, notes=notes), style.value)
