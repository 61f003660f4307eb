"""A corpus of short documents whose words are as frequent as those of a language."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tests.support.text_tables import Vocabulary

_SYLLABLES = [a + b for a in "bdfgklmnprst" for b in ("a", "e", "i", "o", "u", "an", "er", "is")]
_ENDINGS = ("", "", "", "s", "ing", "ed", "ly", "ness")
_SHORTEST, _LONGEST = 4, 20


@dataclass(frozen=True, slots=True, eq=False)
class TextCorpus:
    """Words by rank, and documents as words one after the other."""

    words: np.ndarray
    ranks: np.ndarray
    """Ranks of the words of all documents."""
    ends: np.ndarray
    """End of each document in `ranks`."""

    @staticmethod
    def generated(documents: int, seed: int = 1) -> TextCorpus:
        """Return documents of 4 to 20 words, whose frequencies follow Zipf's law."""
        chance = np.random.default_rng(seed)
        count = max(2000, min(200_000, documents // 4))
        words = np.array(_words(count, random.Random(seed)))
        shares = 1 / np.arange(1, count + 1) ** 1.05
        lengths = chance.integers(_SHORTEST, _LONGEST + 1, documents)
        ranks = chance.choice(count, int(lengths.sum()), p=shares / shares.sum())
        return TextCorpus(words, ranks, np.cumsum(lengths))

    def table(self) -> pa.Table:
        """Return the documents in column `t`, and in `u` each beside another one's."""
        tokens = pa.array(self.words).take(pa.array(self.ranks))
        offsets = pa.array(np.concatenate([[0], self.ends]), pa.int32())
        texts = pa.compute.binary_join(pa.ListArray.from_arrays(offsets, tokens), " ")
        ids = np.arange(len(self.ends))
        return pa.table({"id": ids, "t": texts, "u": texts.take(pa.array((ids * 7) % len(ids)))})

    @property
    def vocabulary(self) -> Vocabulary:
        """Words for queries: of any rank, and as they follow each other in documents."""
        return Vocabulary(word=self._word, phrase=self._phrase)

    def _word(self, chance: random.Random) -> str:
        rank = int(len(self.words) ** (0.2 + 0.8 * chance.random())) - 1
        found = str(self.words[rank])
        return found if chance.random() < 0.9 else found[:-1] + chance.choice("abcdefg")

    def _phrase(self, chance: random.Random) -> list[str]:
        number = chance.randrange(len(self.ends))
        stop = int(self.ends[number])
        start = chance.randrange(int(self.ends[number - 1]) if number else 0, stop)
        ranks = self.ranks[start : min(stop, start + chance.randint(1, 3))]
        return [str(self.words[rank]) for rank in ranks]


def _words(count: int, chance: random.Random) -> list[str]:
    found: dict[str, None] = {}
    while len(found) < count:
        size = chance.choice([2, 2, 3, 3, 4])
        found["".join(chance.choices(_SYLLABLES, k=size)) + chance.choice(_ENDINGS)] = None
    return list(found)
