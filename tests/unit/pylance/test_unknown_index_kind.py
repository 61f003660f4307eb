"""A kind of index that does not exist is refused as official releases refuse it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance


@pytest.mark.parametrize("options", [{}, {"num_partitions": 2}], ids=["plain", "of vectors"])
def test_create_index_lists_the_kinds(tmp_path: Path, options: dict[str, int]) -> None:
    made = lance.write_dataset(pa.table({"a": [1]}), tmp_path)
    with pytest.raises(NotImplementedError, match=r"NO_SUCH.*BTREE.*IVF_FLAT"):
        made.create_index("a", "NO_SUCH", **options)


def test_create_scalar_index_lists_the_kinds(tmp_path: Path) -> None:
    made = lance.write_dataset(pa.table({"a": [1]}), tmp_path)
    with pytest.raises(NotImplementedError, match=r"NO_SUCH.*BTREE"):
        made.create_scalar_index("a", "NO_SUCH")
