"""A few hundred replies of the campaign of built replies, for every kind of prompt."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

CAMPAIGN = Path(__file__).parents[2] / "benchmarks" / "campaigns" / "replies.py"


def test_built_replies_are_read_as_what_they_say() -> None:
    spec = importlib.util.spec_from_file_location("built_replies", CAMPAIGN)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(CAMPAIGN)
    campaign = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = campaign
    spec.loader.exec_module(campaign)
    for kind in campaign.KINDS:
        tally = campaign.run(kind, count=100, seed=7)
        assert tally.faults == {}, kind
        assert tally.plain >= 5
