"""Common interface of readers: this library and official releases."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Protocol

import pyarrow as pa

import lancelake
from tests.support.official import Official, OfficialPool

face: Any = lancelake  # names its functions like modules of the package behind it
Options = Any  # keyword arguments of `to_table`, as pylance names them


class Reader(Protocol):
    """What a differential test asks of a table."""

    def schema(self, uri: str, version: int | str) -> pa.Schema:
        """Return the schema of a version."""

    def read(self, uri: str, version: int | str, **options: Options) -> pa.Table:
        """Scan a version."""

    def count_rows(self, uri: str, version: int | str, where: str | None) -> int:
        """Count the rows of a version."""

    def take(
        self, uri: str, version: int | str, indices: Sequence[int], columns: Sequence[str] | None
    ) -> pa.Table:
        """Read rows of a version by position."""


class LancelakeReader:
    """This library."""

    def schema(self, uri: str, version: int | str) -> pa.Schema:
        """Return the schema of a version."""
        return face.dataset(uri, version=version).schema

    def read(self, uri: str, version: int | str, **options: Options) -> pa.Table:
        """Scan a version."""
        ordering = options.pop("order_by", None)
        if ordering is not None:
            options["order_by"] = [face.ColumnOrdering(*order) for order in ordering]
        return face.dataset(uri, version=version).to_table(**options)

    def count_rows(self, uri: str, version: int | str, where: str | None) -> int:
        """Count the rows of a version."""
        return int(face.dataset(uri, version=version).count_rows(where))

    def take(
        self, uri: str, version: int | str, indices: Sequence[int], columns: Sequence[str] | None
    ) -> pa.Table:
        """Read rows of a version by position."""
        names = None if columns is None else list(columns)
        return face.dataset(uri, version=version).take(list(indices), columns=names)


class OfficialReader:
    """An official release."""

    def __init__(self, official: Official) -> None:
        """Read through this worker."""
        self.official = official

    def schema(self, uri: str, version: int | str) -> pa.Schema:
        """Return the schema of a version."""
        code = "result = lance.dataset(uri, version=version).schema"
        return self.official.run(uri, code, version=version)

    def read(self, uri: str, version: int | str, **options: Options) -> pa.Table:
        """Scan a version."""
        return self.official.read(uri, version, **options)

    def count_rows(self, uri: str, version: int | str, where: str | None) -> int:
        """Count the rows of a version."""
        return self.official.count_rows(uri, version, where)

    def take(
        self, uri: str, version: int | str, indices: Sequence[int], columns: Sequence[str] | None
    ) -> pa.Table:
        """Read rows of a version by position."""
        return self.official.take(uri, indices, version, columns)


def reader_under_test(officials: OfficialPool) -> Reader:
    """Return this library, or the release that INTEROP_SUBJECT names, to test the tests."""
    name = os.environ.get("INTEROP_SUBJECT", "lancelake")
    return LancelakeReader() if name == "lancelake" else OfficialReader(officials(name))
