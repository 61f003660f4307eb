"""Requests for an index that cannot be met."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import (
    ColumnNotFoundError,
    ColumnTypeError,
    IndexNotFoundError,
    InvalidRequestError,
    UnsupportedError,
)
from tests.support.scalar_index_tables import rows


def test_an_unknown_column_is_refused_with_those_that_exist(table: lance.LanceDataset) -> None:
    with pytest.raises(ColumnNotFoundError, match=r"'zz' does not exist; the table has: n, i"):
        table.create_scalar_index("zz", "BTREE")


def test_an_element_of_a_list_is_no_column(table: lance.LanceDataset) -> None:
    with pytest.raises(ColumnNotFoundError):
        table.create_scalar_index("l.item", "BTREE")


@pytest.mark.parametrize(
    ("column", "kind"),
    [("l", "BTREE"), ("l", "BITMAP"), ("i", "LABEL_LIST"), ("i", "NGRAM"), ("l", "ZONEMAP")],
)
def test_a_type_that_a_kind_does_not_index_is_refused(
    table: lance.LanceDataset, column: str, kind: str
) -> None:
    with pytest.raises(ColumnTypeError, match=f"{kind} does not index column '{column}'"):
        table.create_scalar_index(column, kind)


def test_json_is_not_indexed_as_bytes(tmp_table: str) -> None:
    data = pa.table({"j": pa.array(['{"a": 1}'], pa.json_())})
    table = lance.write_dataset(data, tmp_table, data_storage_version="2.1")

    with pytest.raises(ColumnTypeError):
        table.create_scalar_index("j", "BTREE")


def test_an_unknown_kind_is_refused_with_the_closest_name(table: lance.LanceDataset) -> None:
    with pytest.raises(UnsupportedError, match="Did you mean BTREE"):
        table.create_scalar_index("i", "BTRE")


def test_an_unknown_parameter_is_refused(table: lance.LanceDataset) -> None:
    with pytest.raises(InvalidRequestError, match="no parameter 'rows'"):
        table.create_scalar_index("i", "BTREE", rows=3)


def test_names_of_the_system_are_refused(table: lance.LanceDataset) -> None:
    with pytest.raises(InvalidRequestError, match="cannot be the name of an index"):
        table.create_scalar_index("i", "BTREE", name="__lance_frag_reuse")


def test_an_unknown_index_is_not_found(table: lance.LanceDataset) -> None:
    table.create_scalar_index("i", "BTREE")

    with pytest.raises(IndexNotFoundError, match=r'Index "zz" not found; there are: i_idx'):
        table.drop_index("zz")


def test_fragments_that_do_not_exist_are_refused(tmp_table: str) -> None:
    table = lance.write_dataset(rows(10), tmp_table)

    with pytest.raises(InvalidRequestError, match="fragment 7 is not part of version 1"):
        table.create_index_uncommitted("i", "BTREE", fragment_ids=[0, 7])


def test_arguments_of_vector_indices_are_refused(table: lance.LanceDataset) -> None:
    with pytest.raises(InvalidRequestError, match="does not take num_partitions"):
        table.create_index("i", "BTREE", num_partitions=3)
    with pytest.raises(TypeError, match="IVF_FLAT does not index column 'i'"):
        table.create_index("i", "IVF_FLAT")
