"""Errors have the kind and the key phrase of official pylance's."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.pylance.udf import batch_udf
from tests.support.official import Official

SETUP = """
rows = pa.table({"a": [1, 2, 3], "s": ["x", "y", "z"]})
ds = lance.write_dataset(rows, uri + "/t")
blobs = pa.table({"id": [1, 2], "b": lance.blob_array([b"1", b"2"])})
blobs = lance.write_dataset(blobs, uri + "/b", data_storage_version="2.2")
blobs.delete("id = 2")
required = pa.schema([pa.field("a", pa.int64(), nullable=False)])
def fail(batch):
    raise LookupError("of the user")
"""
CASES = {
    "blobs of a deleted row": ("blobs.take_blobs('b', ids=[1])", "Not supported"),
    "blobs at a deleted row": ("blobs.read_blobs('b', addresses=[1])", "Not supported"),
    "blobs of an unknown column": ("blobs.take_blobs('zz', indices=[0])", "Field 'zz' not found"),
    "blobs of another column": ("blobs.take_blobs('id', indices=[0])", "not a blob column"),
    "no data": ("lance.write_dataset(None, uri + '/n')", "Unknown data type"),
    "a number as data": ("lance.write_dataset(5, uri + '/n')", "Unknown data type"),
    "an unknown argument of a scanner": ("ds.scanner(foo=1)", "unexpected keyword argument 'foo'"),
    "an unknown argument of a table": ("ds.to_table(foo=1)", "unexpected keyword argument 'foo'"),
    "a failing function": ("ds.add_columns(batch_udf()(fail))", "of the user"),
    "a failing callable": ("ds.add_columns(fail)", "gave an error when called with a batch"),
    "nulls where none are allowed": (
        "lance.write_dataset(pa.table({'a': [1, None]}, schema=required), uri + '/nn')",
        "contains null values",
    ),
    "an existing table": ("lance.write_dataset(rows, uri + '/t')", "already exists"),
    "an existing column": ("ds.add_columns({'a': '1'})", "already exists"),
    "an existing tag": ("ds.tags.create('x', 1) or ds.tags.create('x', 1)", "already exists"),
    "a value that does not fit": (
        "lance.write_dataset(pa.table({'a': [1000]}), uri + '/c')"
        ".alter_columns({'path': 'a', 'data_type': pa.int8()})",
        "Can't cast value",
    ),
    "a cast that is not possible": (
        "ds.alter_columns({'path': 's', 'data_type': pa.int32()})",
        "Cannot cast column",
    ),
    "two columns of a name": (
        "lance.write_dataset(pa.table([[1], [2]], names=['a', 'a']), uri + '/d')",
        "Duplicate field name",
    ),
    "another type": (
        "lance.write_dataset(pa.table({'a': ['x'], 's': ['y']}), ds, mode='append')",
        "Append with different schema",
    ),
    "another column": (
        "lance.write_dataset(pa.table({'zz': ['x']}), ds, mode='append')",
        "Append with different schema",
    ),
    "text and a number": ("ds.to_table(filter='s = 1')", "could not convert"),
    "text and a fraction": ("ds.to_table(filter='1.5 < s')", "could not convert"),
    "text among numbers": ("ds.to_table(filter='s in (1, 2)')", "could not convert"),
    "text between numbers": ("ds.count_rows('s between 1 and 2')", "could not convert"),
    "deleting by text and a number": ("ds.delete('s = 1')", "could not convert"),
    "an unknown storage version": (
        "lance.write_dataset(rows, uri + '/v', data_storage_version='9.9')",
        "Unknown Lance storage version: 9.9",
    ),
    "a tag of no version": ("ds.tags.create('y', 9)", "version main:9 does not exist"),
    "a tag that exists": (
        "ds.tags.create('x', 1) or ds.tags.create('x', 1)",
        "Ref conflict error: tag x already exists",
    ),
    "a time before the table": (
        "lance.dataset(ds.uri, asof='2001-01-01 00:00:00')",
        "earlier than the first version of this dataset",
    ),
    "nulls of a column that shall have none": (
        "lance.write_dataset(pa.table({'a': [None, 1]}), uri + '/m')"
        ".alter_columns({'path': 'a', 'nullable': False})",
        "contains NULL values and cannot be made non-nullable",
    ),
    "a stream that is too short": (
        "ds.add_columns(pa.table({'z': [1]}).to_reader())",
        "Stream ended before producing values for all rows in dataset",
    ),
    "a filter that is no condition": ("ds.to_table(filter='a')", "does not return a boolean"),
    "an unknown mode of data frames": ("ds.to_pandas(blob_mode='x')", "blob_mode must be one of"),
}
REMOTE = """
from lance.udf import batch_udf
{setup}
try:
    {code}
    result = None
except Exception as error:
    result = [[c.__name__ for c in type(error).__mro__], str(error)]
"""


@pytest.mark.parametrize("case", CASES)
def test_an_error_is_of_the_same_kind(official_14: Official, tmp_path: Path, case: str) -> None:
    code, phrase = CASES[case]
    theirs = official_14.run(str(tmp_path / "theirs"), REMOTE.format(setup=SETUP, code=code))
    assert theirs is not None
    assert phrase in theirs[1]
    kind = next(getattr(builtins, name) for name in theirs[0] if hasattr(builtins, name))
    names: dict[str, Any] = {
        "lance": lance,
        "pa": pa,
        "uri": str(tmp_path / "ours"),
        "batch_udf": batch_udf,
    }
    exec(SETUP, names)  # the statements above
    with pytest.raises(kind) as raised:
        eval(code, names)  # likewise
    assert phrase in str(raised.value)
