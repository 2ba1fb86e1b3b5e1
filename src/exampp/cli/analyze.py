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
from exampp.cli.command import Commands

app = Commands(help="Ask how far the leaderboard can be trusted.")
app.command("leaderboards")(analyze_leaderboards.leaderboards)
app.command("correlation")(analyze_correlation.correlation)
app.command("agreement")(analyze_agreement.agreement)
app.command("calibration")(analyze_calibration.calibration)
app.command("significance")(analyze_significance.significance)
app.command("reliability")(analyze_reliability.reliability)
app.command("items")(analyze_items.items)
app.command("citations")(analyze_citations.citations)
app.command("unsaid")(analyze_unsaid.unsaid)
app.command("sensitivity")(analyze_sensitivity.sensitivity)
app.command("attacks")(analyze_attacks.attacks)
app.command("corrected")(analyze_corrected.corrected)
