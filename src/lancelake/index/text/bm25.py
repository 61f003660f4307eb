"""BM25: scores of documents for the terms of a query."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

U32 = npt.NDArray[np.uint32]
F32 = npt.NDArray[np.float32]

K1 = np.float32(1.2)
B = np.float32(0.75)
# Bits of a length that scores keep where lengths are rounded.
_LENGTH_BITS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """Statistics of all documents that are searched, and of the terms of a query."""

    num_docs: int
    num_tokens: int
    frequencies: dict[str, int] = field(default_factory=dict)
    """In how many documents a term is."""

    @property
    def mean_length(self) -> float:
        """The mean number of terms of a document."""
        return float(np.float32(self.num_tokens) / np.float32(max(1, self.num_docs)))

    def weight(self, term: str) -> float:
        """Return the inverse document frequency of a term; 0 if no document has it."""
        found = self.frequencies.get(term, 0)
        return inverse_frequency(found, self.num_docs) if found else 0.0

    def __add__(self, other: Corpus) -> Corpus:
        terms = self.frequencies.keys() | other.frequencies.keys()
        return Corpus(
            num_docs=self.num_docs + other.num_docs,
            num_tokens=self.num_tokens + other.num_tokens,
            frequencies={
                term: self.frequencies.get(term, 0) + other.frequencies.get(term, 0)
                for term in terms
            },
        )


def inverse_frequency(frequency: int, num_docs: int) -> float:
    """Return the weight of a term that some of all documents have."""
    return math.log((num_docs - frequency + 0.5) / (frequency + 0.5) + 1.0)


def rounded_lengths(lengths: U32) -> U32:
    """Round numbers of terms down to their four highest bits."""
    # The exponent of a float with 53 bits of precision is exact for 32-bit numbers.
    bits = np.frexp(lengths.astype(np.float64))[1]
    cut = np.maximum(bits - _LENGTH_BITS, 0).astype(np.uint32)
    rounded: U32 = (lengths >> cut) << cut
    return rounded


def document_norms(lengths: U32, mean_length: float) -> F32:
    """Return what the length of documents adds to the frequency of a term."""
    share = lengths.astype(np.float32) / np.float32(mean_length or 1.0)
    norms: F32 = K1 * (np.float32(1.0) - B + B * share)
    return norms


def document_weights(frequencies: U32, norms: F32) -> F32:
    """Return the share of the weight of a term that documents get."""
    counts = frequencies.astype(np.float32)
    weights: F32 = (K1 + np.float32(1.0)) * counts / (counts + norms)
    return weights
