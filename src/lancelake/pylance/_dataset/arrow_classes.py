"""Classes of pyarrow that datasets, scanners and fragments are instances of.

pyarrow's functions use the C++ object behind their arguments and do not check that there is one. A
dataset therefore has one, whose reading raises an error. Scanners and fragments cannot be given
one: they are instances of pyarrow's classes for `isinstance`, but not for C++ code.
"""

from __future__ import annotations

from typing import Any, NoReturn, Unpack

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pyarrow.fs as pafs

from lancelake.errors import UnsupportedError
from lancelake.pylance._dataset.arguments import SortOptions
from lancelake.pylance._values.opened import given

_ADVICE = "pass scanner().to_reader() of the LanceDataset instead"


def _refuse() -> NoReturn:
    raise UnsupportedError(
        "pyarrow cannot read a LanceDataset by itself",
        action="Pass ds.scanner(...).to_reader() or ds.to_table(...) instead.",
    )


class _UnreadableFiles:
    """A file system in the form of fsspec, in which no file can be opened."""

    protocol = "lance"

    def isfile(self, path: str) -> NoReturn:
        """Called before a file is opened."""
        _refuse()


def _unreadable() -> pads.Dataset:
    # The name of its column is part of the error that a union with other datasets raises.
    schema = pa.schema([pa.field(_ADVICE, pa.null())])
    files = pafs.PyFileSystem(pafs.FSSpecHandler(_UnreadableFiles()))
    kind = pads.IpcFileFormat()
    return pads.FileSystemDataset([kind.make_fragment(_ADVICE, files)], schema, kind, files)


_UNREADABLE = _unreadable()


class ArrowDataset(pads.UnionDataset):  # type: ignore[misc]  # pyarrow has no types
    """A dataset of pyarrow that raises an error when pyarrow itself reads it.

    A union is the class of pyarrow that takes microseconds to make and has the fewest methods.
    """

    def __new__(cls, *_args: Any, **_kwargs: Any) -> ArrowDataset:
        """Make the C++ object."""
        dataset = super().__new__(cls)
        pads.UnionDataset.__init__(dataset, _UNREADABLE.schema, [_UNREADABLE])
        return dataset  # type: ignore[no-any-return]  # pyarrow has no types

    def _scanner_options(self, options: dict[str, Any]) -> NoReturn:
        """Called by pyarrow before it scans."""
        _refuse()

    @property
    def children(self) -> NoReturn:
        """Not an attribute: the table is no union."""
        raise AttributeError(f"{type(self).__name__!r} object has no attribute 'children'")

    def sort_by(
        self, sorting: str | list[tuple[str, str]], **kwargs: Unpack[SortOptions]
    ) -> pads.InMemoryDataset:
        """Return all rows sorted by one or more columns.

        Args:
            sorting: A column, or pairs of a column and `ascending` or `descending`.
            **kwargs: Arguments of `pyarrow.Table.sort_by`.

        Examples:
            >>> ds.sort_by([("id", "descending")]).to_table()["id"].to_pylist()
            [3, 2, 1]
        """
        return pads.InMemoryDataset(_rows(self).sort_by(sorting, **kwargs))

    def join(
        self,
        right_dataset: pads.Dataset,
        keys: str | list[str],
        right_keys: str | list[str] | None = None,
        join_type: str = "left outer",
        left_suffix: str | None = None,
        right_suffix: str | None = None,
        coalesce_keys: bool = True,
        use_threads: bool = True,
    ) -> pads.InMemoryDataset:
        """Return the join with another dataset.

        Args:
            right_dataset: The other dataset.
            keys: Key columns.
            right_keys: Key columns of the other dataset; by default of the same names.
            join_type: A kind of join of `pyarrow.Table.join`.
            left_suffix: Suffix of column names that both sides have.
            right_suffix: Suffix of column names that both sides have.
            coalesce_keys: Return the keys of both sides as one column.
            use_threads: Use several threads.

        Examples:
            >>> cities = lance.write_dataset({"id": [2], "city": ["Oslo"]}, "cities.lance")
            >>> ds.join(cities, "id", join_type="inner").to_table().to_pylist()
            [{'id': 2, 'name': 'bob', 'score': 2.5, 'city': 'Oslo'}]
        """
        options = given(locals(), without=("right_dataset",))
        joined = _rows(self).join(_rows(right_dataset), **options)
        return pads.InMemoryDataset(joined)

    def join_asof(
        self,
        right_dataset: pads.Dataset,
        on: str,
        by: str | list[str],
        tolerance: int,
        right_on: str | None = None,
        right_by: str | list[str] | None = None,
    ) -> pads.InMemoryDataset:
        """Return the join with the nearest rows of another dataset.

        Args:
            right_dataset: The other dataset.
            on: Column whose values are compared; both sides must be sorted by it.
            by: Columns whose values must be equal.
            tolerance: Largest distance of a match, negative to look backwards.
            right_on: Column of the other dataset; by default of the same name.
            right_by: Columns of the other dataset; by default of the same names.

        Examples:
            >>> left = lance.write_dataset({"at": [5], "key": [1]}, "left.lance")
            >>> right = lance.write_dataset({"at": [3], "key": [1], "price": [9]}, "right.lance")
            >>> left.join_asof(right, "at", "key", -5).to_table()["price"].to_pylist()
            [9]
        """
        joined = _rows(self).join_asof(
            _rows(right_dataset), on, by, tolerance, right_on=right_on, right_by=right_by
        )
        return pads.InMemoryDataset(joined)

    def filter(self, expression: pc.Expression) -> NoReturn:
        """Not supported: scans take a filter.

        Args:
            expression: The filter.

        Raises:
            UnsupportedError: Always.
        """
        raise UnsupportedError(
            "LanceDataset.filter() is not supported",
            action="Pass the filter to scanner(), to_table() or to_batches().",
        )

    def replace_schema(self, schema: pa.Schema) -> NoReturn:
        """Not supported: scans take the columns to return.

        Args:
            schema: The schema.

        Raises:
            UnsupportedError: Always.
        """
        raise UnsupportedError(
            "LanceDataset.replace_schema() is not supported",
            action="Pass columns to scanner(), or cast the table that a scan returns.",
        )


def _rows(source: Any) -> pa.Table:
    if isinstance(source, pa.Table):
        return source
    if not isinstance(source, pads.Dataset):
        raise TypeError(f"expected a dataset, not {type(source).__name__}")
    return source.to_table()


class _InstanceOf:
    """Instances of a class of pyarrow for `isinstance` alone."""

    _arrow_class: type
    _claimed: type

    @property  # type: ignore[misc]  # it is never assigned
    def __class__(self) -> type:
        return self._claimed

    def __init_subclass__(cls) -> None:
        if hasattr(cls, "_arrow_class") and not issubclass(cls, cls._arrow_class):
            # A class of both, for callers that look methods up in the class of an object.
            both = (cls, cls._arrow_class)
            cls._claimed = type(cls.__name__, both, {"__module__": cls.__module__})


class ArrowScanner(_InstanceOf):
    """An instance of pyarrow's `Scanner`."""

    _arrow_class = pads.Scanner

    def to_reader(self) -> pa.RecordBatchReader:
        """Read as a stream."""
        raise NotImplementedError

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export the rows to another library."""
        return self.to_reader().__arrow_c_stream__(requested_schema)


class ArrowFragment(_InstanceOf):
    """An instance of pyarrow's `Fragment`."""

    _arrow_class = pads.Fragment
