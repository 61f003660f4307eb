"""Offsets of a stream, and the table they belong to.

A table is identified by one of its versions that the stream has read, and a version by the
transaction that created it. Columns are identified by their field ids, which a rename keeps and
which no other column of the table ever gets.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from lancelake.core.table import Table
from lancelake.core.values.metadata import Field, Schema, Snapshot, quote_segment, split_path
from lancelake.core.values.versions import AtVersion
from lancelake.errors import InvalidRequestError, SchemaMismatchError, VersionNotFoundError

FieldIds = Mapping[str, int]
"""Field ids by path, including struct fields and list items."""

ReadPaths = Mapping[str, bool]
"""Paths that a stream reads, and whether their nested fields are included."""

_NEW_CHECKPOINT = "Start the query with a new checkpoint."


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A version that a stream has read, and the columns that it reads."""

    branch: str | None
    version: int
    commit: str
    fields: FieldIds

    @staticmethod
    def of(seen: Snapshot, fields: FieldIds) -> Identity:
        """Return the identity of a table from one of its versions."""
        return Identity(
            branch=seen.branch, version=seen.version, commit=_commit(seen), fields=fields
        )

    def to_json(self) -> dict[str, Any]:
        """Return the identity as Spark stores it."""
        table = {"branch": self.branch, "version": self.version, "commit": self.commit}
        return {"table": table, "fields": dict(self.fields)}

    @staticmethod
    def from_json(stored: Mapping[str, Any]) -> Identity | None:
        """Parse an identity; checkpoints of older releases have none."""
        if "table" not in stored:
            return None
        table = stored["table"]
        return Identity(
            branch=table["branch"],
            version=int(table["version"]),
            commit=str(table["commit"]),
            fields={str(path): int(number) for path, number in stored["fields"].items()},
        )

    def ensure_same_table(self, head: Snapshot) -> None:
        """Refuse a table, or a branch, other than that of the checkpoint."""
        if head.branch != self.branch:
            raise _other(
                head,
                f"the checkpoint belongs to branch {self.branch or 'main'}, but the stream "
                f"reads branch {head.branch or 'main'}",
            )
        if self.version > head.version:
            raise _other(
                head,
                f"the stream has read version {self.version} of its table, but the newest "
                f"version is {head.version}: this is another table, or it was recreated",
            )
        try:
            seen = Table(head).at(AtVersion(self.version)).snapshot
        except VersionNotFoundError:
            # Cleaned up: versions that the stream still needs are checked when they are read.
            return
        if _commit(seen) != self.commit:
            raise _other(
                head,
                f"version {self.version} is not the version that the stream has read: this is "
                "another table, or it was recreated",
            )


def field_ids(schema: Schema, columns: Iterable[str]) -> dict[str, int]:
    """Return the ids of columns, and of their nested fields."""
    wanted = set(columns)
    return dict(pair for field in schema.fields if field.name in wanted for pair in _below(field))


def read_paths(schema: pa.Schema) -> ReadPaths:
    """Return the paths of columns and struct fields that a stream reads."""
    return dict(pair for field in schema for pair in _read_below(field))


def expected_ids(head: Snapshot, paths: ReadPaths, recorded: FieldIds) -> dict[str, int]:
    """Return the ids that the columns of a stream must have in every version.

    `recorded` are those of the checkpoint. A column of the checkpoint that the stream no longer
    reads must still exist: otherwise it was renamed or dropped in the meantime.
    """
    schema = head.manifest.schema
    every = field_ids(schema, schema.names)
    missing = next((path for path in paths if path not in every and path not in recorded), None)
    if missing is not None:
        raise _changed(head, f"column {missing} is no longer in the table")
    expected = {path: number for path, number in every.items() if _is_in(path, paths)}
    for path, number in recorded.items():
        if _is_in(path, paths):
            expected[path] = number
        elif every.get(path) != number:
            raise _changed(head, _fate(path, number, every))
    return expected


def ensure_same_columns(expected: FieldIds, before: Snapshot | None, after: Snapshot) -> None:
    """Refuse a version in which a column of the stream was renamed, dropped or replaced.

    A column that is in neither version was added later.
    """
    here = field_ids(after.manifest.schema, after.manifest.schema.names)
    was = {} if before is None else field_ids(before.manifest.schema, before.manifest.schema.names)
    for path, number in expected.items():
        if path in was and path not in here:
            raise _changed(after, _fate(path, was[path], here))
        for ids in (here, was):
            if ids.get(path, number) != number or (path not in ids and number in ids.values()):
                raise _changed(after, _fate(path, number, ids))


def _fate(path: str, number: int, here: FieldIds) -> str:
    """Describe how a column changed."""
    if path in here:
        return f"column {path} was replaced by another column of the same name"
    now = next((other for other, other_number in here.items() if other_number == number), None)
    return f"column {path} was dropped" if now is None else f"column {path} was renamed to {now}"


def _below(field: Field, prefix: str = "") -> Iterator[tuple[str, int]]:
    path = f"{prefix}{quote_segment(field.name)}"
    yield path, int(field.id)
    for child in field.children:
        yield from _below(child, f"{path}.")


def _read_below(field: pa.Field, prefix: str = "") -> Iterator[tuple[str, bool]]:
    path = f"{prefix}{quote_segment(field.name)}"
    yield path, not pa.types.is_struct(field.type)
    if pa.types.is_struct(field.type):
        for member in field.type:
            yield from _read_below(member, f"{path}.")


def _is_in(path: str, paths: ReadPaths) -> bool:
    """Whether a path is read itself, or as a nested field of another."""
    if path in paths:
        return True
    segments = [quote_segment(name) for name in split_path(path)]
    return any(paths.get(".".join(segments[:end]), False) for end in range(1, len(segments)))


def _commit(snapshot: Snapshot) -> str:
    manifest = snapshot.manifest
    return f"{manifest.transaction_file or ''}@{manifest.timestamp_ns or 0}"


def _other(head: Snapshot, problem: str) -> InvalidRequestError:
    action = f"{_NEW_CHECKPOINT} To continue with the same table, set its path and branch."
    return InvalidRequestError(
        problem, table=head.location.uri, version=head.version, action=action
    )


def _changed(at: Snapshot, problem: str) -> SchemaMismatchError:
    action = f"{_NEW_CHECKPOINT} With startingVersion it starts after the change."
    return SchemaMismatchError(
        f"{problem}, so the stream cannot continue",
        table=at.location.uri,
        version=at.version,
        action=action,
    )


@dataclass(frozen=True, slots=True)
class Offset:
    """The first `done` parts of a version, and all versions before it, have been read.

    If `is_snapshot`, the parts are all rows of the first version of a stream. Offsets are equal if
    the same parts were read; `identity` is that of the table, if the checkpoint records it.
    """

    version: int
    done: int
    is_snapshot: bool = False
    identity: Identity | None = field(default=None, compare=False)

    @property
    def last_seen(self) -> int:
        """The newest version that was read, at least partially."""
        return self.version if self.is_snapshot or self.done else self.version - 1

    def dump(self) -> str:
        """Return the offset as text for the checkpoint."""
        return json.dumps(self.to_json())

    @staticmethod
    def parse(text: str) -> Offset:
        """Parse an offset from the text of a checkpoint."""
        return Offset.of(json.loads(text))

    def to_json(self) -> dict[str, Any]:
        """Return the offset as JSON for the checkpoint."""
        read = {"version": self.version, "done": self.done, "snapshot": self.is_snapshot}
        return read if self.identity is None else {**read, **self.identity.to_json()}

    @staticmethod
    def of(stored: dict[str, Any]) -> Offset:
        """Parse an offset from a checkpoint."""
        try:
            return Offset(
                int(stored["version"]),
                int(stored["done"]),
                bool(stored.get("snapshot", False)),
                Identity.from_json(stored),
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InvalidRequestError(
                f"the checkpoint has an offset that does not belong to a Lance stream: {stored}"
            ) from error
