"""`exampp analyze`: how far a leaderboard can be trusted."""

from __future__ import annotations

from exampp.cli import (
    analyze_agreement,
    analyze_attacks,
    analyze_calibration,
    analyze_citations,
    analyze_corrected,
    analyze_correlation,
    analyze_items,
    analyze_leaderboards,
    analyze_reliability,
    analyze_sensitivity,
    analyze_significance,
    analyze_unsaid,
)
from exampp.cli.command import Group

app = Group("analyze", help="Ask how far the leaderboard can be trusted.")
app.verb("leaderboards")(analyze_leaderboards.leaderboards)
app.verb("correlation")(analyze_correlation.correlation)
app.verb("agreement")(analyze_agreement.agreement)
app.verb("calibration")(analyze_calibration.calibration)
app.verb("significance")(analyze_significance.significance)
app.verb("reliability")(analyze_reliability.reliability)
app.verb("items")(analyze_items.items)
app.verb("citations")(analyze_citations.citations)
app.verb("unsaid")(analyze_unsaid.unsaid)
app.verb("sensitivity")(analyze_sensitivity.sensitivity)
app.verb("attacks")(analyze_attacks.attacks)
app.verb("corrected")(analyze_corrected.corrected)
