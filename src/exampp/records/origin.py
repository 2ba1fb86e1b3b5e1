"""Who made the items of a bank, as far as the bank says it, and whether that is who grades."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from exampp.records.wording import quoted

_NAMES = re.compile(
    r"(?:.+_)?model(?:_name|_id)?|llm|generator|generated_by|created_by|creator|made_by"
)
"""Keys under which banks name the model that made an item: `gpt_model` in the Workbench's own."""
MODEL = "model"
"""The key under which an item itself says it, in every kind of bank; blank: no model made it."""
MODEL_KEYS = (MODEL, "generator", "llm", "gpt_model", "model_name", "generated_by", "made_by")
"""The names that it goes by in tables; a slip of one of them is told."""
_DEEPEST = 3
_VERSION = re.compile(r"(?:[-@:](?:\d{4}-?\d\d-?\d\d|latest|\d{4})|\.gguf|/)+$")


def models_in(extra: Any, depth: int = 0) -> Iterator[str]:
    """The names of models that the provenance of an item, or of a line of a bank, gives."""
    if depth > _DEEPEST:
        return
    if isinstance(extra, list | tuple):
        for one in extra:
            yield from models_in(one, depth + 1)
    elif isinstance(extra, Mapping):
        for key, value in extra.items():
            named = _NAMES.fullmatch(str(key).lower().replace("-", "_"))
            by_machine = key == "assessor" and extra.get("is_human") is False
            if not (named or by_machine):
                yield from models_in(value, depth + 1)
                continue
            for one in value if isinstance(value, list | tuple) else (value,):
                if isinstance(one, str) and one.strip():
                    yield one.strip()
                else:
                    yield from models_in(one, depth + 1)


def makers_of(item: Mapping[str, Any], line: Mapping[str, Any]) -> tuple[str, ...]:
    """The models that made an item: as it says itself under `MODEL`, or else anywhere, or its line.

    `item` and `line` are what the file says of them beside the text, the `extra` of an entry.
    """
    if item.get(MODEL) is not None:
        return tuple(dict.fromkeys(models_in({MODEL: item[MODEL]})))
    return tuple(dict.fromkeys(models_in(item))) or tuple(dict.fromkeys(models_in(line)))


def same_model(one: str, other: str) -> bool:
    """Whether two names mean one model: without owner or folder, date of a release and case."""
    return bool(_short(one)) and _short(one) == _short(other)


def _short(model: str) -> str:
    return _VERSION.sub("", model.strip().casefold()).replace("\\", "/").rpartition("/")[2]


def own_bank(model: str, makers: Mapping[str, int], items: int) -> str:
    """The warning that a model grades what it asked itself; empty where it made none of the items.

    `makers` counts the items that each model made, of `items` in the bank.
    """
    same = Counter({name: count for name, count in makers.items() if same_model(model, name)})
    if not same:
        return ""
    count = min(same.total(), items)
    made = "The bank was" if count == items else f"{count} of the {items} items of the bank were"
    names = ", ".join(map(quoted, same))
    return f"{made} made by the model that grades ({names}): it may ask what that model finds easy."
