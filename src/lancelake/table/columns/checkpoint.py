"""Checkpoint file with the results of a function, until its columns are committed."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from lancelake.errors import InvalidRequestError
from lancelake.format import fragment as fragments
from lancelake.format import schema_codec
from lancelake.format.fragment import Fragment
from lancelake.format.schema import Schema

_TABLES = (
    "CREATE TABLE IF NOT EXISTS batches "
    "(source TEXT, position INT, result BLOB, PRIMARY KEY (source, position))",
    "CREATE TABLE IF NOT EXISTS fragments (source TEXT PRIMARY KEY, result BLOB)",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A SQLite file with results by source, that is by the rows they were computed from.

    Results of batches are kept until their fragment is written; then the entry of the fragment's
    file replaces them.
    """

    path: Path

    def batch(self, source: str, position: int) -> pa.RecordBatch | None:
        """Return the stored result for a batch, if any."""
        query = "SELECT result FROM batches WHERE source = ? AND position = ?"
        found = self._fetch(query, (source, position))
        if found is None:
            return None
        with pa.ipc.open_stream(found) as reader:
            return reader.read_next_batch()

    def keep_batch(self, source: str, position: int, batch: pa.RecordBatch) -> None:
        """Store the result for a batch."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        result = sink.getvalue().to_pybytes()
        with self._changes() as changes:
            changes.execute(
                "INSERT OR REPLACE INTO batches VALUES (?, ?, ?)", (source, position, result)
            )

    def fragment(self, source: str) -> bytes | None:
        """Return the stored result of a whole fragment, if any."""
        return self._fetch("SELECT result FROM fragments WHERE source = ?", (source,))

    def keep_fragment(self, source: str, result: bytes) -> None:
        """Store the result of a whole fragment in place of those of its batches."""
        with self._changes() as changes:
            changes.execute("INSERT OR REPLACE INTO fragments VALUES (?, ?)", (source, result))
            changes.execute("DELETE FROM batches WHERE source = ?", (source,))

    def remove(self) -> None:
        """Delete the file."""
        self.path.unlink(missing_ok=True)

    def _fetch(self, query: str, parameters: tuple[object, ...]) -> bytes | None:
        with self._changes() as changes:
            row = changes.execute(query, parameters).fetchone()
        return None if row is None else bytes(row[0])

    @contextmanager
    def _changes(self) -> Iterator[sqlite3.Connection]:
        """Open the file for one thread and a short time."""
        try:
            with closing(sqlite3.connect(self.path)) as connection, connection:
                for table in _TABLES:
                    connection.execute(table)
                yield connection
        except sqlite3.DatabaseError as error:
            problem = f"checkpoint file {self.path} cannot be used: {error}"
            raise InvalidRequestError(problem, action="Use another file.") from error


def source_key(fragment: Fragment, deleted: bytes, added: Schema, batch_rows: int) -> str:
    """Return a key of everything results depend on: rows, columns and batch size."""
    digest = hashlib.sha256()
    rows = Fragment(id=fragment.id, files=fragment.files, physical_rows=fragment.physical_rows)
    digest.update(fragments.encode(rows).SerializeToString(deterministic=True))
    digest.update(b"\0" + deleted + b"\0" + str(batch_rows).encode())
    for field in schema_codec.encode(added):
        digest.update(field.SerializeToString(deterministic=True))
    return digest.hexdigest()
