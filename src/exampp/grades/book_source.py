"""What grades are read from, whoever chooses among them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from exampp.records import GraderIdentity, content_hash
from exampp.records.items import BankTexts
from exampp.store.bank import ItemModels

if TYPE_CHECKING:
    from exampp.records.gradebook import Dossier, Gradebook


class BookSource(ABC):
    """Grades, rankings and banks, as they are read: of a collection, or of a graded file."""

    path: Path

    @abstractmethod
    def grades(self, grader: str | None = None, *, bank: str | None = None) -> Any:
        """The grades of the one grader that fits, on one bank."""

    @property
    @abstractmethod
    def graders(self) -> tuple[GraderIdentity, ...]:
        """Everyone who graded, in order of first appearance."""

    @property
    @abstractmethod
    def highest_judgment(self) -> int | None:
        """The highest human judgment of any passage; None where nobody judged."""

    @abstractmethod
    def bank_names(self, kind: str) -> Sequence[str | None]:
        """The banks that hold items of a kind; None where there is but one, and no choice."""

    @abstractmethod
    def read_gradebook(
        self, grader: GraderIdentity, bank: str | None, part: str | None
    ) -> Gradebook:
        """The grades of a grader on a bank, or on a part of it, with people's decisions."""

    @abstractmethod
    def read_dossiers(
        self, grader: GraderIdentity, bank: str | None, query_ids: Sequence[str] | None
    ) -> Iterator[Dossier]:
        """The queries one by one with texts, raw replies and decisions: all, or those asked for."""

    def query_texts(self) -> dict[str, str]:
        """The texts of queries, by id; empty where the source has none."""
        return {}

    def read_bank_texts(self, grader: GraderIdentity, bank: str | None) -> BankTexts:  # noqa: ARG002
        """The texts of a bank, as far as they are known."""
        return BankTexts()

    def bank_makers(self, book: Gradebook) -> ItemModels:
        """The models that made the items of a bank, as far as it says so."""
        return ItemModels(sum(len(query.item_ids) for query in book.queries), {})

    def bank_origin(self, book: Gradebook) -> tuple[str, str]:
        """(the version of the bank, or the hash of its ids, a warning if the grader made it)."""
        ids = (item_id for query in book.queries for item_id in query.item_ids)
        return content_hash(*ids)[:16], ""
