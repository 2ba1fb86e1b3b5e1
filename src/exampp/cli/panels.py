"""The options of a long help by purpose: in which panel an option stands, whatever its command."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

FEW = 10
"""So many options need no panels."""
OTHER = "Options"
GOES_IN = "What goes in"
ASKED_FOR = "What is asked for"
PANELS: Mapping[str, str] = {
    GOES_IN: "as columns passages bank-name runs responses system corpus unknown-passages "
    "passage-tokens cited update subtopic answer",
    ASKED_FOR: "output measure min-rating min-relevant per-query official scores qrels "
    "run leave-out subtopics missing label at-least gains compat round query queries item by depth "
    "limit against layout statistic order pairs k cutoff target drop items query-cost item-cost "
    "max-queries pool shard retry-failed per more keys grounded keep-near credit irt weights "
    "build battery uses targets attack answers texts rating "
    "labels design number plan over predictor folds save require baseline baseline-system margin "
    "allow-missing junit blind shared guidelines pair",
    "Whose grades": "grader prompt kind bank decisions answers-of min-answers author reason "
    "assessor",
    "Model": "model revision device dtype quantize decode beams least-mass batch-tokens "
    "max-new-tokens temperature top-p reasoning-effort chat-template-kwargs unnumbered task epochs "
    "repetition batch-size learning-rate max-steps save-steps resume",
    "Server": "host port base-url endpoint extra-body redirect-to concurrency retries timeout",
    "Cost and stopping": "dry-run batch batch-file replies cancel-batches poll max-requests "
    "max-cost price-read price-cached price-written "
    "price-hour max-failures take-over grace",
    "Many machines": "on workers worker-cpus worker-gpus",
    "Chance": "alpha looks correction permutations samples splits seed",
    "Bad input": "on-error scale",
    "How it is shown": "format wide digits title theme width no-title json",
}
"""The options of each panel by their long names; one may say another in its declaration."""
_PANEL_OF = {name: panel for panel, names in PANELS.items() for name in names.split()}


def panel_of(option: Any) -> str:
    """The panel of an option."""
    name = max(option.opts, key=len).lstrip("-")
    return getattr(option, "panel", None) or _PANEL_OF.get(name, OTHER)


def by_panel(options: Sequence[Any]) -> Iterable[tuple[str, list[Any]]]:
    """(panel, its options), in the order of `PANELS`; all in one where they are few."""
    if len(options) <= FEW:
        return [(OTHER, list(options))]
    found: dict[str, list[Any]] = {panel: [] for panel in (*PANELS, OTHER)}
    for option in options:
        found[panel_of(option)].append(option)
    return [(panel, some) for panel, some in found.items() if some]
