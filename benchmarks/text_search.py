"""Builds of full text indices, and searches with warm caches."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import lance
import lance.query
import numpy as np
import pyarrow as pa

import lancelake.pylance
import lancelake.pylance.query
from benchmarks import tables
from benchmarks.measure import Case

DOCUMENTS = 1_000_000
_WORDS = 200_000
_SEED = 20_261_116
_BEST = 10
# Ranks of words: the most frequent ones are in every third document.
_COMMON = ((2, 5), (3, 7), (4, 6))
_RARE = ((400, 900), (1500, 2500), (3000, 5000))

_Query = Callable[[ModuleType, str], Any]


def cases(documents: int = DOCUMENTS) -> Iterator[Case]:
    """Yield the comparisons; each implementation has a table of its own."""
    uris = {name: _table(name, documents) for name in ("ours", "official")}

    def build(module: ModuleType, uri: str) -> int:
        table = module.dataset(uri)
        table.create_scalar_index("t", "INVERTED", with_position=True)
        found: int = table.stats.index_stats("t_idx")["indices"][0]["num_docs"]
        return found

    yield Case(
        name=f"full text index of {documents:,} short documents, with positions",
        target=1.5,
        ours=lambda: build(lancelake.pylance, uris["ours"]),
        official=lambda: build(lance, uris["official"]),
        rounds=3,
    )
    ours = lancelake.pylance.dataset(uris["ours"]), lancelake.pylance.query
    official = lance.dataset(uris["official"]), lance.query

    def both(name: str, target: float, texts: list[str], query: _Query, rounds: int = 41) -> Case:
        """Compare searches of the best rows, of another text each time."""
        mine, theirs = itertools.cycle(texts), itertools.cycle(texts)
        return Case(
            name=name,
            target=target,
            ours=lambda: _search(*ours, query, next(mine)),
            official=lambda: _search(*official, query, next(theirs)),
            rounds=rounds,
        )

    common, rare = SAMPLES["common"], SAMPLES["rare"]
    yield both("two common words, best 10", 2.0, common, lambda q, t: q.MatchQuery(t, "t"))
    yield both("two rare words, best 10", 2.0, rare, lambda q, t: q.MatchQuery(t, "t"))
    yield both(
        "both of two common words, best 10",
        2.0,
        common,
        lambda q, t: q.MatchQuery(t, "t", operator=q.FullTextOperator.AND),
    )
    yield both(
        "phrase of two common words, best 10", 2.0, common, lambda q, t: q.PhraseQuery(t, "t")
    )
    yield both(
        "similar words, best 10",
        2.0,
        [text.split()[0] for text in rare],
        lambda q, t: q.MatchQuery(t, "t", fuzziness=1),
        rounds=5,
    )


def _search(table: Any, module: ModuleType, query: _Query, text: str) -> list[float]:
    """Return the scores of the best rows, rounded: rows of equal score may change places."""
    found = table.to_table(["id", "_score"], full_text_query=query(module, text), limit=_BEST)
    return [round(score, 3) for score in found["_score"].to_pylist()]


def _word(rank: int) -> str:
    return f"w{np.base_repr(rank, 36).lower()}x"


def _texts(pairs: tuple[tuple[int, int], ...]) -> list[str]:
    return [" ".join(map(_word, pair)) for pair in pairs]


SAMPLES = {"common": _texts(_COMMON), "rare": _texts(_RARE)}


def indexed(documents: int) -> str:
    """Return a table of texts with our index."""
    uri = _table("ours", documents)
    table = lancelake.pylance.dataset(uri)
    if not table.describe_indices():
        table.create_scalar_index("t", "INVERTED", with_position=True)
    return uri


def _table(name: str, documents: int) -> str:
    """Texts of 4 to 20 words whose frequencies follow Zipf's law."""
    path = tables.ROOT / f"texts-{documents}-{name}.lance"
    plain = tables.ROOT / f"texts-{documents}.lance"
    if not plain.exists():
        chance = np.random.default_rng(_SEED)
        shares = 1 / np.arange(1, _WORDS + 1) ** 1.05
        lengths = chance.integers(4, 21, documents)
        ranks = chance.choice(_WORDS, int(lengths.sum()), p=shares / shares.sum())
        words = np.array([_word(rank) for rank in range(_WORDS)])[ranks].tolist()
        ends = np.cumsum(lengths).tolist()
        texts = [" ".join(words[a:b]) for a, b in itertools.pairwise([0, *ends])]
        lance.write_dataset(pa.table({"id": np.arange(documents), "t": texts}), str(plain))
    if not path.exists():
        shutil.copytree(plain, path)
    return str(path)
