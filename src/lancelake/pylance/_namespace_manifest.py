"""Manifest of a directory namespace: the table `__manifest` of its tables and namespaces."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import pyarrow as pa

from lancelake.expr.literals import quoted
from lancelake.format import layout
from lancelake.pylance._dataset.state.session import Session, locate
from lancelake.pylance.dataset import LanceDataset, write_dataset
from lancelake.storage.location import Location
from lancelake.storage.open import open_store
from lancelake.storage.store import ObjectStore

TABLE, NAMESPACE = "table", "namespace"
_FOLDER = "__manifest"
_KEY = "object_id"
_IS_KEY = {"lance-schema:unenforced-primary-key": "true"}
_SCHEMA = pa.schema(
    [
        pa.field(_KEY, pa.string(), nullable=False, metadata=_IS_KEY),
        pa.field("object_type", pa.string(), nullable=False),
        pa.field("location", pa.string()),
        pa.field("metadata", pa.string()),
        pa.field("base_objects", pa.list_(pa.field(_KEY, pa.string()))),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Root:
    """Folder of a namespace, its storage options, and the session of tables in memory."""

    uri: str
    options: dict[str, str] | None
    session: Session = field(default_factory=Session)

    @property
    def location(self) -> Location:
        """The folder as the storage layer knows it."""
        return locate(self.uri, self.options, session=self.session)

    @property
    def store(self) -> ObjectStore:
        """The store of the folder."""
        return open_store(self.location)

    def child(self, folder: str) -> str:
        """Return the URI of a folder below."""
        is_private = self.uri.startswith("memory://")
        return f"{self.uri.rstrip('/')}/{folder}" if is_private else self.location.child(folder).uri

    def has_table(self, folder: str) -> bool:
        """Whether a folder has versions of a table."""
        return bool(self.store.list_names(f"{folder}/{layout.VERSIONS}"))

    def open(self, folder: str) -> LanceDataset:
        """Open the table in a folder."""
        return LanceDataset(self.child(folder), storage_options=self.options, session=self.session)

    def write(self, rows: Any, folder: str, mode: Literal["create", "overwrite"]) -> LanceDataset:
        """Write the table in a folder."""
        return write_dataset(
            rows,
            self.child(folder),
            mode=mode,
            storage_options=self.options,
            session=self.session,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """Tables and namespaces by id; empty until something is added."""

    root: Root
    is_used: bool = True

    def exists(self) -> bool:
        """Whether the root has a manifest that is used."""
        return self.is_used and self.root.has_table(_FOLDER)

    def rows(self, kind: str | None = None, name: str | None = None) -> dict[str, dict[str, Any]]:
        """Return the entries by id: all, those of a kind, or the one of a name."""
        if not self.exists():
            return {}
        tests = {"object_type": kind, _KEY: name}
        given = [f"{column} = {quoted(value)}" for column, value in tests.items() if value]
        table = self.root.open(_FOLDER).to_table(filter=" AND ".join(given) or None)
        return {row[_KEY]: row for row in table.to_pylist()}

    def location(self, name: str) -> str | None:
        """Return the folder of a table, None if it is not listed."""
        found = self.rows(TABLE, name).get(name)
        return None if found is None else found["location"]

    def add(self, name: str, kind: str, **values: str | None) -> bool:
        """Add an entry unless its name is taken, and say whether it was added.

        The manifest is made with the first entry.
        """
        if not self.exists():
            self.root.write(_SCHEMA.empty_table(), _FOLDER, "create")
        table = self.root.open(_FOLDER)
        row = {_KEY: name, "object_type": kind, **values}
        schema = pa.schema([table.schema.field(each) for each in row if each in table.schema.names])
        new = pa.Table.from_pylist([row], schema=schema)
        merged = table.merge_insert(_KEY).when_not_matched_insert_all().execute(new)
        return merged["num_inserted_rows"] > 0

    def remove(self, name: str) -> None:
        """Remove an entry, if there is one."""
        if self.exists():
            self.root.open(_FOLDER).delete(f"{_KEY} = {quoted(name)}")
