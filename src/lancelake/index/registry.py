"""The kinds of indices that can be built and searched."""

from __future__ import annotations

from lancelake.index.kind import IndexKind
from lancelake.index.scalar.bloom_filter import BLOOM_FILTER
from lancelake.index.scalar.ngram.kind import NGRAM
from lancelake.index.scalar.zone_map import ZONE_MAP

KINDS: tuple[IndexKind, ...] = (ZONE_MAP, BLOOM_FILTER, NGRAM)
