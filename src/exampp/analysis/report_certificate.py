"""The certificate of an exam whose grader was attacked: what is known for and against it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from exampp.analysis.agreement_tables import AgreementBlock
from exampp.analysis.attacks.findings import DEPTH
from exampp.analysis.attacks.tables import Gaming, GradedBattery, headline
from exampp.analysis.reliability_tables import Reliability
from exampp.analysis.trust import bounded
from exampp.records.wording import counted
from exampp.report.page import Block, Facts, Folded, Notices, Section
from exampp.stats.estimate import Estimate

TITLE = "Certificate"


def certificate_section(
    gaming: Gaming | None,
    reliability: Reliability,
    agreement: Sequence[AgreementBlock],
    sealed: str,
) -> Section:
    """Reliability, attacks, circularity, agreement, sealed against public; empty without attacks.

    `sealed` is what the sealed part of the bank says beside the public one.
    """
    if gaming is None or gaming.battery is None:
        return Section("certificate", TITLE, ())
    facts = [
        ("Reliability", "; ".join(_reliability(reliability))),
        ("Attacks", headline(gaming.battery.results.attacks)),
        ("Replies that attacks make unreadable", _unread(gaming.battery)),
        ("Guessing", "; ".join(_guessing(gaming.battery))),
        ("Circularity", " ".join(gaming.circularity.notes[-1:])),
        ("Systems that share something with grader or bank", _shared(gaming)),
        ("Agreement with judgments", "; ".join(_agreement(agreement))),
        ("Sealed against public items", sealed),
        ("Battery", _made(gaming.battery.made)),
    ]
    tables = gaming.tables()
    blocks: list[Block | None] = [
        Notices(("Made of DRAFT GRADES: it certifies nothing about any other grader.",))
        if gaming.grader.is_draft
        else None,
        Facts(tuple((name, said) for name, said in facts if said)),
        gaming.figure(),
        *(Folded(table.caption, table) for table in tables.values() if table.rows),
    ]
    return Section.of("certificate", TITLE, blocks)


def _reliability(found: Reliability) -> Iterator[str]:
    known = [study for study in found.studies if study.says_something]
    for number, study in enumerate(known):
        what = "" if number else "generalisability over queries "
        without = f" without {study.shown_without}" if study.without else ""
        yield f"{what}{_bounded(study.erho2)}{without}"


def _bounded(one: Estimate) -> str:
    return one.reason if one.value is None else bounded(one)


def _unread(battery: GradedBattery) -> str:
    broken = [
        f"{one.attack.name} {attack:.1%} (control {control or 0:.1%})"
        for one in battery.results.attacks
        for attack, control in [one.unread]
        if attack and attack > (control or 0)
    ]
    return ", ".join(broken) or "none"


def _guessing(battery: GradedBattery) -> Iterator[str]:
    for one in battery.results.guessing:
        if one.rate is not None and one.luck is not None:
            name = one.texts.partition("-")[2]
            yield f"{one.rate:.3f} on {name} texts, of which {DEPTH} cover {one.luck:.3f}"


def _shared(gaming: Gaming) -> str:
    ledger = gaming.ledger
    tied = ", ".join(ledger.tied) or "none is known"
    return f"{tied}; nothing is known of {counted(len(ledger.unknown), 'system')}"


def _agreement(blocks: Sequence[AgreementBlock]) -> Iterator[str]:
    for block in blocks[:1]:
        kappa = block.estimates.get("kappa")
        if kappa is not None:
            yield f"kappa {_bounded(kappa)}, {block.title}"
    if not blocks:
        yield "nobody judged"


def _made(how: Mapping[str, str | int]) -> str:
    return f"SHA-256 {how['digest']}, seed {how['seed']}, {how['targets']} targets a query"
