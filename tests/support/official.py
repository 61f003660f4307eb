"""Official releases for tests: pylance's methods, answered by pinned releases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from tests.support.official_process import OfficialError, OfficialProcess, interpreter, is_installed

__all__ = [
    "RELEASES",
    "Info",
    "Official",
    "OfficialError",
    "OfficialPool",
    "interpreter",
    "is_installed",
]

RELEASES = ("4.0.2", "14.0.2")

Json = Any  # whatever `json` can carry
Version = int | str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileInfo:
    """One data file as the release describes it."""

    path: str
    fields: tuple[int, ...]
    column_indices: tuple[int, ...]
    file_version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FragmentInfo:
    """One fragment as the release describes it."""

    id: int
    physical_rows: int
    num_deletions: int
    files: tuple[FileInfo, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Info:
    """One version of a table as the release describes it."""

    version: int
    latest_version: int
    schema: pa.Schema
    count_rows: int
    versions: tuple[int, ...]
    fragments: tuple[FragmentInfo, ...]
    tags: Mapping[str, Mapping[str, Json]]
    branches: Mapping[str, Mapping[str, Json]]
    config: Mapping[str, str]
    data_storage_version: str
    indices: tuple[Mapping[str, str], ...]


class Official(OfficialProcess):
    """One official release.

    Every call returns a value or raises `OfficialError`. Calls that change a table return the
    newest version number. A branch is addressed by the URI that `branch` returns.
    """

    def write(
        self,
        uri: str | Path,
        table: pa.Table,
        *,
        mode: Literal["create", "append", "overwrite"] = "create",
        data_storage_version: str | None = None,
        enable_stable_row_ids: bool | None = None,
        max_rows_per_file: int | None = None,
        **options: Json,
    ) -> int:
        """Create, append to or overwrite a table."""
        return int(
            self.call(
                "write",
                uri=uri,
                table=table,
                mode=mode,
                data_storage_version=data_storage_version,
                enable_stable_row_ids=enable_stable_row_ids,
                max_rows_per_file=max_rows_per_file,
                **options,
            )
        )

    def append(self, uri: str | Path, table: pa.Table, **options: Json) -> int:
        """Add rows."""
        return self.write(uri, table, mode="append", **options)

    def overwrite(self, uri: str | Path, table: pa.Table, **options: Json) -> int:
        """Replace schema and rows."""
        return self.write(uri, table, mode="overwrite", **options)

    def delete(self, uri: str | Path, predicate: str) -> int:
        """Delete the rows that match."""
        return int(self.call("delete", uri=uri, predicate=predicate))

    def update(self, uri: str | Path, updates: Mapping[str, str], where: str | None = None) -> int:
        """Set columns to SQL expressions."""
        return int(self.call("update", uri=uri, updates=dict(updates), where=where))

    def merge_insert(
        self,
        uri: str | Path,
        table: pa.Table,
        on: Sequence[str],
        *,
        when_matched: bool = True,
        when_not_matched: bool = True,
        when_not_matched_by_source: bool = False,
    ) -> int:
        """Upsert on key columns; the last flag deletes what the source lacks."""
        return int(
            self.call(
                "merge_insert",
                uri=uri,
                table=table,
                on=list(on),
                when_matched=when_matched,
                when_not_matched=when_not_matched,
                when_not_matched_by_source=when_not_matched_by_source,
            )
        )

    def add_columns(self, uri: str | Path, expressions: Mapping[str, str]) -> int:
        """Add columns computed by SQL."""
        return int(self.call("add_columns", uri=uri, expressions=dict(expressions)))

    def add_null_column(self, uri: str | Path, field: pa.Field) -> int:
        """Add a column without data."""
        return int(self.call("add_null_columns", uri=uri, schema=pa.schema([field])))

    def drop_columns(self, uri: str | Path, columns: Sequence[str]) -> int:
        """Remove columns."""
        return int(self.call("drop_columns", uri=uri, columns=list(columns)))

    def rename_column(self, uri: str | Path, path: str, name: str) -> int:
        """Rename one column."""
        return int(self.call("rename_column", uri=uri, path=path, name=name))

    def cast_column(self, uri: str | Path, path: str, data_type: pa.DataType) -> int:
        """Change the type of one column."""
        schema = pa.schema([pa.field("to", data_type)])
        return int(self.call("cast_column", uri=uri, path=path, schema=schema))

    def compact(self, uri: str | Path, **options: Json) -> int:
        """Compact the fragments."""
        return int(self.call("compact", uri=uri, **options))

    def create_scalar_index(
        self, uri: str | Path, column: str, index_type: str = "BTREE", **options: Json
    ) -> int:
        """Build a scalar index."""
        return int(
            self.call(
                "create_scalar_index", uri=uri, column=column, index_type=index_type, **options
            )
        )

    def create_index(self, uri: str | Path, column: str, index_type: str, **options: Json) -> int:
        """Build a vector index."""
        return int(
            self.call("create_index", uri=uri, column=column, index_type=index_type, **options)
        )

    def tag(self, uri: str | Path, name: str, version: int) -> None:
        """Name a version."""
        self.call("tag", uri=uri, name=name, version=version)

    def branch(self, uri: str | Path, name: str, version: int | None = None) -> str:
        """Fork a branch; return the URI it can be opened by."""
        return str(self.call("branch", uri=uri, name=name, version=version))

    def restore(self, uri: str | Path, version: int) -> int:
        """Restore an old version as the newest."""
        return int(self.call("restore", uri=uri, version=version))

    def update_config(self, uri: str | Path, values: Mapping[str, str | None]) -> int:
        """Set config keys; None removes."""
        return int(self.call("update_config", uri=uri, values=dict(values)))

    def shallow_clone(self, uri: str | Path, target: str | Path, version: int | str) -> int:
        """Clone without copying data."""
        return int(self.call("shallow_clone", uri=uri, target=str(target), version=version))

    def read(self, uri: str | Path, version: Version = None, **options: Json) -> pa.Table:
        """Scan with pylance's `to_table` options; `order_by`: (name, ascending, nulls first)."""
        known = {k: v for k, v in options.items() if v is not None}
        return self.call("read", uri=uri, version=version, options=known)

    def take(
        self,
        uri: str | Path,
        indices: Sequence[int],
        version: Version = None,
        columns: Sequence[str] | None = None,
    ) -> pa.Table:
        """Read rows by position."""
        names = None if columns is None else list(columns)
        return self.call("take", uri=uri, indices=list(indices), version=version, columns=names)

    def count_rows(self, uri: str | Path, version: Version = None, where: str | None = None) -> int:
        """Count the rows that match."""
        return int(self.call("count_rows", uri=uri, version=version, filter=where))

    def info(self, uri: str | Path, version: Version = None) -> Info:
        """Describe one version and what surrounds it."""
        body = self.call("info", uri=uri, version=version)
        fragments = tuple(_fragment(f) for f in body.pop("fragments"))
        versions = tuple(body.pop("versions"))
        indices = tuple(body.pop("indices"))
        return Info(fragments=fragments, versions=versions, indices=indices, **body)

    def run(self, uri: str | Path, code: str, **inputs: Json) -> Json:
        """Execute statements there with `lance`, `pa`, `uri`, the inputs; return their `result`."""
        return self.call("run", uri=uri, code=code, inputs=inputs)


class OfficialPool:
    """One worker per release, started when first asked for."""

    def __init__(self) -> None:
        """Start nothing."""
        self._workers: dict[str, Official] = {}

    def __call__(self, release: str) -> Official:
        """Return the worker of the release."""
        if release not in self._workers:
            self._workers[release] = Official(release)
        return self._workers[release]

    def close(self) -> None:
        """Stop every worker."""
        for worker in self._workers.values():
            worker.close()


def _fragment(body: dict[str, Json]) -> FragmentInfo:
    files = tuple(
        FileInfo(
            path=f["path"],
            fields=tuple(f["fields"]),
            column_indices=tuple(f["column_indices"]),
            file_version=f["file_version"],
        )
        for f in body["files"]
    )
    return FragmentInfo(
        id=body["id"],
        physical_rows=body["physical_rows"],
        num_deletions=body["num_deletions"],
        files=files,
    )
