"""Active files of a Delta table, from its log.

Follows the Delta transaction protocol as far as plain Parquet readers can: checkpoints of one or
several parts and JSON commits. Tables with deletion vectors or mapped column names are refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from lancelake.errors import CorruptTableError, InvalidRequestError, UnsupportedError
from lancelake.storage.store import ObjectStore
from lancelake.table.ingest.places import DELTA_LOG, Locate, SourceFile

Action = dict[str, Any]  # JSON

_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10}))?\.parquet")
_READER_FEATURES = {"columnMapping", "deletionVectors", "timestampNtz", "vacuumProtocolCheck"}
_FEATURES_VERSION = 3
_MAPPING = "delta.columnMapping.mode"
_TYPES = {
    "string": pa.string(),
    "long": pa.int64(),
    "integer": pa.int32(),
    "short": pa.int16(),
    "byte": pa.int8(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "binary": pa.binary(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaVersion:
    """A version of a Delta table: its files, with the values of their partition columns."""

    version: int
    files: tuple[SourceFile, ...]
    partitions: Mapping[str, Mapping[str, pa.Scalar]]


@dataclass(slots=True)
class _State:
    """The result of all actions so far."""

    metadata: Action | None = None
    protocol: Action | None = None
    adds: dict[str, Action] = field(default_factory=dict)

    def apply(self, action: Action) -> None:
        """Apply one action of the log."""
        self.metadata = action.get("metaData") or self.metadata
        self.protocol = action.get("protocol") or self.protocol
        if remove := action.get("remove"):
            self.adds.pop(remove["path"], None)
        if add := action.get("add"):
            self.adds[add["path"]] = add


def read_delta(uri: str, locate: Locate) -> DeltaVersion:
    """Return the newest version of a Delta table."""
    place = locate(uri)
    store = place.store
    names = store.list_names(DELTA_LOG)
    state = _State()
    start, parts = _checkpoint(names)
    for part in parts:
        for action in _rows(store, part):
            state.apply(action)
    commits = sorted((int(m[1]), m[0]) for m in map(_COMMIT.fullmatch, names) if m)
    newer = [(version, name) for version, name in commits if version > start]
    if [version for version, _ in newer] != list(range(start + 1, start + 1 + len(newer))):
        problem = "commits are missing in the log of the Delta table"
        raise CorruptTableError(problem, table=uri)
    for _, name in newer:
        for line in store.get(f"{DELTA_LOG}/{name}").decode().splitlines():
            if line.strip():
                state.apply(json.loads(line))
    _ensure_plain(uri, state)
    types = _partition_types(uri, state.metadata or {})
    files, partitions = [], {}
    for path, add in sorted(state.adds.items()):
        relative = unquote(path)
        if "://" in relative or relative.startswith("/"):
            raise UnsupportedError("the Delta table has files outside its folder", table=uri)
        file = SourceFile(f"{place.uri}/{relative}", None if place.scheme == "file" else place)
        files.append(file)
        partitions[file.name] = _values(add.get("partitionValues") or {}, types)
    version = newer[-1][0] if newer else start
    return DeltaVersion(version=version, files=tuple(files), partitions=partitions)


def _checkpoint(names: list[str]) -> tuple[int, list[str]]:
    """Return the newest complete checkpoint: its version, -1 without one, and its parts."""
    parts_by_version: dict[int, list[tuple[str, int]]] = {}
    for match in map(_CHECKPOINT.fullmatch, names):
        if match:
            parts_by_version.setdefault(int(match[1]), []).append((match[0], int(match[3] or 1)))
    for version, parts in sorted(parts_by_version.items(), reverse=True):
        for total in {total for _, total in parts}:
            same = sorted(name for name, each in parts if each == total)
            if len(same) == total:
                return version, same
    return -1, []


def _rows(store: ObjectStore, name: str) -> Iterator[Action]:
    import pyarrow.parquet as pq  # noqa: PLC0415  # slow to load

    table = pq.read_table(pa.BufferReader(store.get(f"{DELTA_LOG}/{name}")))
    for row in table.to_pylist():
        add = row.get("add")
        if add and isinstance(add.get("partitionValues"), list):
            row["add"] = {**add, "partitionValues": dict(add["partitionValues"])}
        metadata = row.get("metaData")
        if metadata and isinstance(metadata.get("configuration"), list):
            row["metaData"] = {**metadata, "configuration": dict(metadata["configuration"])}
        yield row


def _ensure_plain(uri: str, state: _State) -> None:
    if state.protocol is None or state.metadata is None:
        problem = "the folder has no complete Delta log"
        raise InvalidRequestError(problem, table=uri)
    mapping = (state.metadata.get("configuration") or {}).get(_MAPPING, "none")
    unknown = {f"reader version {state.protocol['minReaderVersion']}"}
    if state.protocol["minReaderVersion"] <= _FEATURES_VERSION:
        unknown = set(state.protocol.get("readerFeatures") or ()) - _READER_FEATURES
    if mapping != "none":
        unknown.add("column mapping")
    if any(add.get("deletionVector") for add in state.adds.values()):
        unknown.add("deletion vectors")
    if unknown:
        problem = f"the Delta table needs {', '.join(sorted(unknown))}, which is not supported"
        advice = "Write it again without them, for example with Spark."
        raise UnsupportedError(problem, table=uri, action=advice)


def _partition_types(uri: str, metadata: Action) -> dict[str, pa.DataType]:
    columns = set(metadata.get("partitionColumns") or ())
    fields = json.loads(metadata["schemaString"])["fields"]
    types = {f["name"]: _type(f["type"]) for f in fields if f["name"] in columns}
    if unknown := [name for name, dtype in types.items() if dtype is None]:
        problem = f"the type of partition column {unknown[0]!r} is not supported"
        raise UnsupportedError(problem, table=uri)
    return types


def _type(name: object) -> pa.DataType | None:
    if isinstance(name, str) and (match := _DECIMAL.fullmatch(name)):
        return pa.decimal128(int(match[1]), int(match[2]))
    return _TYPES.get(name) if isinstance(name, str) else None


def _values(
    texts: Mapping[str, str | None], types: Mapping[str, pa.DataType]
) -> dict[str, pa.Scalar]:
    """Parse partition values; an empty text is null, as the protocol states."""
    return {
        name: pa.scalar(texts.get(name) or None, pa.string()).cast(dtype)
        for name, dtype in types.items()
    }
