"""Rankings of judged passages by 56 known rankers, for data sets that come without runs.

A ranker sees the text of a query and of its judged passages, and the statistics of the passages of
all queries. No ranker sees judgments or grades. Runs with noise are worse versions of four rankers:
normal noise is added to their standardised scores.

Sources: Robertson and Zaragoza 2009 (BM25); Zhai and Lafferty 2004 (Dirichlet, Jelinek-Mercer);
Amati and van Rijsbergen 2002 (PL2); Salton and Buckley 1988 (TF-IDF); Deerwester et al. 1990 (LSA);
Lavrenko and Croft 2001 (RM3); Cormack et al. 2009 (reciprocal ranks); Fox and Shaw 1994 (CombSUM).
The sentence vectors are those of the draft grader.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.linalg import svds

from exampp.graders.draft import encode_in_thread, max_similarity
from exampp.prompts.words import stem, stopwords

DEPTH = 20
FEEDBACK_PASSAGES, FEEDBACK_TERMS = 10, 10
RANK_CONSTANT = 60
NOISE = (0.5, 1.0, 2.0)

Floats = NDArray[np.float64]
Terms = Callable[[str], list[str]]
Ranker = Callable[[Floats, "Field"], Floats]
"""From weights of terms and a field of the passages to scores of the passages."""


# ---- terms ---------------------------------------------------------------------------------------


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def stems(text: str) -> list[str]:
    known = [word for word in words(text) if word not in stopwords()]
    return [stem(word) for word in known or words(text)]


def grams(length: int, text: str) -> list[str]:
    padded = f" {' '.join(words(text))} "
    return [padded[at : at + length] for at in range(len(padded) - length + 1)]


def first_sentence(text: str) -> str:
    return re.split(r"(?<=[.!?])\s", text.strip(), maxsplit=1)[0]


def first_words(text: str) -> str:
    return " ".join(text.split()[:20])


@dataclass(frozen=True)
class Field:
    """Counts of terms, [passages, terms], and statistics of all passages."""

    counts: Floats
    lengths: Floats
    document_frequency: Floats
    frequency: Floats
    passages: int
    terms: float

    @property
    def idf(self) -> Floats:
        """The inverse document frequency of BM25."""
        rest = self.passages - self.document_frequency
        return np.asarray(np.log1p((rest + 0.5) / (self.document_frequency + 0.5)))


class Index:
    """Counts of the terms of a field of all passages."""

    def __init__(self, texts: Sequence[str], terms: Terms) -> None:
        self.terms = terms
        self.places: dict[str, int] = {}
        counted = [Counter(terms(text)) for text in texts]
        columns = [self.places.setdefault(t, len(self.places)) for one in counted for t in one]
        starts = np.concatenate([[0], np.cumsum([len(one) for one in counted])])
        values = np.array([float(n) for one in counted for n in one.values()])
        shape = len(texts), len(self.places)
        self.counts = csr_array((values, np.array(columns), starts), shape=shape)
        self.lengths = np.maximum(1.0, self.counts.sum(axis=1))
        self.frequency = np.asarray(self.counts.sum(axis=0), np.float64)
        self.document_frequency = np.bincount(columns, minlength=shape[1]).astype(np.float64)

    def query(self, text: str) -> dict[int, float]:
        """Return the known terms of a query with their counts."""
        counted = Counter(self.terms(text))
        return {self.places[t]: float(n) for t, n in counted.items() if t in self.places}

    def field(self, rows: Sequence[int], terms: Iterable[int]) -> Field:
        columns = list(terms)
        return Field(
            self.counts[list(rows)][:, columns].toarray(),
            self.lengths[list(rows)],
            self.document_frequency[columns],
            self.frequency[columns],
            len(self.lengths),
            float(self.lengths.sum()),
        )

    @property
    def vectors(self) -> csr_array:
        """TF-IDF vectors of length 1, with logarithmic term frequency."""
        weighed = self.counts.copy()
        idf = np.log(len(self.lengths) / self.document_frequency)
        weighed.data = (1 + np.log(weighed.data)) * idf[weighed.indices]
        norms = np.sqrt(weighed.multiply(weighed).sum(axis=1))
        weighed.data /= np.repeat(np.where(norms > 0, norms, 1), np.diff(weighed.indptr))
        return weighed


# ---- scores of terms -----------------------------------------------------------------------------


def bm25(k1: float, b: float, weights: Floats, of: Field) -> Floats:
    norm = k1 * (1 - b + b * of.lengths * of.passages / of.terms)
    return np.asarray((of.counts * (k1 + 1) / (of.counts + norm[:, None])) @ (weights * of.idf))


def dirichlet(mu: float, weights: Floats, of: Field) -> Floats:
    prior = of.frequency / of.terms
    smoothed = (of.counts + mu * prior) / (of.lengths[:, None] + mu)
    return np.asarray(np.log(smoothed) @ weights)


def jelinek(share: float, weights: Floats, of: Field) -> Floats:
    prior = of.frequency / of.terms
    seen = of.counts / of.lengths[:, None]
    return np.asarray(np.log((1 - share) * seen + share * prior) @ weights)


def pl2(c: float, weights: Floats, of: Field) -> Floats:
    norm = of.counts * np.log2(1 + c * of.terms / of.passages / of.lengths)[:, None]
    mean = of.frequency / of.passages
    tf = np.where(norm > 0, norm, 1)
    gain = tf * np.log2(tf / mean) + (mean - tf) / np.log(2) + 0.5 * np.log2(2 * np.pi * tf)
    return np.asarray(np.where(norm > 0, gain / (tf + 1), 0) @ weights)


def tf_idf(weights: Floats, of: Field) -> Floats:
    idf = np.log(of.passages / of.document_frequency)
    return np.asarray(np.log1p(of.counts) @ (weights * idf))


def matches(weights: Floats, of: Field) -> Floats:
    return np.asarray((of.counts > 0) @ np.ones(len(weights)))


# ---- rankings ------------------------------------------------------------------------------------


def standardised(scores: Floats) -> Floats:
    return np.asarray((scores - scores.mean()) / (scores.std() or 1.0))


def _reciprocal(*scores: Floats) -> Floats:
    ranks = [np.argsort(np.argsort(-one, kind="stable")) for one in scores]
    return np.asarray(sum(1 / (RANK_CONSTANT + 1 + one) for one in ranks))


class Rankers:
    """All rankers over the passages of all queries: `texts` by (query, passage)."""

    def __init__(self, texts: Mapping[tuple[str, str], str]) -> None:
        self.rows: dict[str, list[int]] = {}
        self.ids = [passage for _, passage in texts]
        for row, (query, _) in enumerate(texts):
            self.rows.setdefault(query, []).append(row)
        self.texts = list(texts.values())
        self.stems, self.words = Index(self.texts, stems), Index(self.texts, words)
        self.sentences = Index([first_sentence(one) for one in self.texts], stems)
        self.starts = Index([first_words(one) for one in self.texts], stems)
        self.grams = {n: Index(self.texts, partial(grams, n)) for n in (3, 4)}
        self.latent = {}
        for size in (50, 100, 200):
            _, _, axes = svds(self.stems.vectors, k=size, random_state=0)
            self.latent[size] = axes
        encoded = {text: encode_in_thread(text).vectors for text in dict.fromkeys(self.texts)}
        self.tokens = [encoded[text] for text in self.texts]

    def scores(self, query: str, text: str) -> dict[str, Floats]:
        """Return the scores of the passages of a query by every ranker."""
        rows = self.rows[query]

        def ranked(
            ranker: Ranker, index: Index, terms: Mapping[int, float] | None = None
        ) -> Floats:
            known = index.query(text) if terms is None else terms
            weights = np.array(list(known.values()))
            return ranker(weights, index.field(rows, known)) if known else np.zeros(len(rows))

        found = {
            f"bm25-{k1}-{b}": ranked(partial(bm25, k1, b), self.stems)
            for k1, b in ((0.5, 0.3), (0.9, 0.4), (1.2, 0.75), (2.0, 0.75), (1.2, 0.0), (1.2, 1.0))
        }
        for k1, b in ((0.9, 0.4), (1.2, 0.75)):
            found[f"bm25-words-{k1}-{b}"] = ranked(partial(bm25, k1, b), self.words)
        for mu in (50, 300, 1000, 2500):
            found[f"dirichlet-{mu}"] = ranked(partial(dirichlet, mu), self.stems)
        found["dirichlet-words-1000"] = ranked(partial(dirichlet, 1000), self.words)
        for share in (0.1, 0.4, 0.8):
            found[f"jelinek-{share}"] = ranked(partial(jelinek, share), self.stems)
        for c in (1.0, 7.0):
            found[f"pl2-{c}"] = ranked(partial(pl2, c), self.stems)
        found["tf-idf"] = ranked(tf_idf, self.stems)
        found["matches"] = ranked(matches, self.words)
        found["sentence-bm25"] = ranked(partial(bm25, 0.9, 0.4), self.sentences)
        found["sentence-dirichlet"] = ranked(partial(dirichlet, 50), self.sentences)
        found["start-bm25"] = ranked(partial(bm25, 0.9, 0.4), self.starts)
        for name, index in {
            "cosine": self.stems,
            "cosine-words": self.words,
            "cosine-3-grams": self.grams[3],
            "cosine-4-grams": self.grams[4],
        }.items():
            found[name] = self._cosine(index, text, rows)
        for size, axes in self.latent.items():
            found[f"latent-{size}"] = self._latent(axes, text, rows)
        item = encode_in_thread(text).vectors
        found["tokens"] = np.array([max_similarity(item, self.tokens[row]) for row in rows])
        means = np.array([_unit(self.tokens[row].mean(axis=0)) for row in rows])
        found["vector"] = np.asarray(means @ _unit(item.mean(axis=0)), np.float64)
        for name, ranker in (
            ("bm25-0.9-0.4", partial(bm25, 0.9, 0.4)),
            ("dirichlet-1000", partial(dirichlet, 1000)),
        ):
            expanded = self._expanded(text, rows, found[name])
            found[f"feedback-{name}"] = ranked(ranker, self.stems, expanded)
        return found | _fused(found) | _noisy(found, query, [len(self.texts[row]) for row in rows])

    def rankings(self, query: str, text: str) -> dict[str, list[tuple[str, float]]]:
        """Return the first passages of a query by every ranker, ties in the order of ids."""
        ids = [self.ids[row] for row in self.rows[query]]
        ranked = {}
        for name, scores in self.scores(query, text).items():
            rounded = np.round(scores, 9).tolist()
            first = sorted(zip(ids, rounded, strict=True), key=lambda one: (-one[1], one[0]))
            ranked[name] = first[:DEPTH]
        return ranked

    def _cosine(self, index: Index, text: str, rows: Sequence[int]) -> Floats:
        terms = index.query(text)
        if not terms:
            return np.zeros(len(rows))
        weights = (1 + np.log(list(terms.values()))) * np.log(
            len(self.texts) / index.document_frequency[list(terms)]
        )
        return np.asarray(_vectors(index)[list(rows)][:, list(terms)] @ weights)

    def _latent(self, axes: Floats, text: str, rows: Sequence[int]) -> Floats:
        terms = self.stems.query(text)
        idf = np.log(len(self.texts) / self.stems.document_frequency[list(terms)])
        query = axes[:, list(terms)] @ ((1 + np.log(list(terms.values()))) * idf)
        passages = _vectors(self.stems)[list(rows)] @ axes.T
        norms = np.linalg.norm(passages, axis=1)
        return np.asarray(passages @ query / np.where(norms > 0, norms, 1))

    def _expanded(self, text: str, rows: Sequence[int], scores: Floats) -> dict[int, float]:
        """Return the terms of a query and those of its first passages, half of the weight each."""
        first = [rows[at] for at in np.argsort(-scores, kind="stable")[:FEEDBACK_PASSAGES]]
        shares = self.stems.counts[first].multiply(1 / self.stems.lengths[first][:, None])
        weights = np.asarray(shares.sum(axis=0)).ravel()
        best = np.argsort(-weights, kind="stable")[:FEEDBACK_TERMS]
        terms = self.stems.query(text)
        total = sum(terms.values()) or 1.0
        expanded = {term: count / total / 2 for term, count in terms.items()}
        for term in best.tolist():
            expanded[term] = expanded.get(term, 0) + weights[term] / weights[best].sum() / 2
        return expanded


@cache
def _vectors(index: Index) -> csr_array:
    return index.vectors


def _unit(vector: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray(vector / (np.linalg.norm(vector) or 1.0), np.float32)


def _fused(found: Mapping[str, Floats]) -> dict[str, Floats]:
    lexical, smoothed = found["bm25-0.9-0.4"], found["dirichlet-1000"]
    tokens, vector, latent = found["tokens"], found["vector"], found["latent-100"]
    best = np.argsort(np.argsort(-lexical, kind="stable")) < 2 * DEPTH
    return {
        "fused-bm25-tokens": _reciprocal(lexical, tokens),
        "fused-bm25-latent": _reciprocal(lexical, latent),
        "fused-dirichlet-grams": _reciprocal(smoothed, found["cosine-4-grams"]),
        "fused-sentence-vector": _reciprocal(found["sentence-bm25"], vector),
        "fused-all": _reciprocal(lexical, smoothed, tokens, latent, vector),
        "sum-bm25-vector": standardised(lexical) + standardised(vector),
        "bm25-then-tokens": np.where(best, 2.0, 0.0) + tokens,
        "bm25-then-latent": np.where(best, 4.0, 0.0) + latent / (np.abs(latent).max() or 1.0),
    }


def _noisy(found: Mapping[str, Floats], query: str, lengths: Sequence[int]) -> dict[str, Floats]:
    noisy = {}
    for name in ("bm25-1.2-0.75", "dirichlet-300", "latent-100", "tokens"):
        for amount in NOISE:
            label = f"{name}-noise-{amount}"
            random = np.random.default_rng(list(f"{label} {query}".encode()))
            scores = standardised(found[name])
            noisy[label] = scores + random.normal(0, amount, len(scores))
    noisy["longest"] = np.array(lengths, np.float64)
    noisy["random"] = np.random.default_rng(list(query.encode())).random(len(lengths))
    return noisy
