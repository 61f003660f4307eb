"""Loading an index before it is searched."""

from __future__ import annotations

from uuid import uuid4

import pytest

import lancelake.pylance as lance
from lancelake.errors import IndexNotFoundError
from lancelake.index import cache
from tests.support.scalar_index_tables import entries


def test_pages_of_a_btree_are_kept(table: lance.LanceDataset) -> None:
    table.create_scalar_index("i", "BTREE")
    table.prewarm_index("i_idx")

    (entry,) = entries(table.uri)
    folder = table._snapshot.files.index_dir(entry)
    assert cache.find(cache.of(folder), ("ids", 0)) is not None


@pytest.mark.parametrize(("column", "kind"), [("k", "BITMAP"), ("l", "LABEL_LIST"), ("s", "NGRAM")])
def test_every_kind_can_be_loaded(table: lance.LanceDataset, column: str, kind: str) -> None:
    table.create_scalar_index(column, kind)
    table.prewarm_index(f"{column}_idx")


def test_an_unknown_segment_is_refused(table: lance.LanceDataset) -> None:
    table.create_scalar_index("i", "BTREE")

    with pytest.raises(IndexNotFoundError, match="has no segment"):
        table.prewarm_index("i_idx", index_segments=[uuid4()])
