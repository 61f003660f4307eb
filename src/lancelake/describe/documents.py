"""Documents of a table's parts, for JSON output and templates."""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from enum import Enum
from typing import TYPE_CHECKING, Any, assert_never
from uuid import UUID

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import LanceTableError
from lancelake.format import index_meta, rowids
from lancelake.format import operations as ops
from lancelake.format.fragment import Fragment
from lancelake.format.index_meta import IndexMetadata
from lancelake.format.manifest import FeatureFlags, WriterVersion
from lancelake.format.operations import MapUpdate, Operation, Transaction, UnknownOperation
from lancelake.format.refs import Branch, Tag
from lancelake.format.schema import Field
from lancelake.format.words import plural

if TYPE_CHECKING:  # a look at a table must not load the modules that compact it
    from lancelake.maintenance.optimize import OptimizeSummary


def details(operation: ops.Operation) -> str:  # noqa: C901  # one case per operation
    """Return details beyond the name of the operation; empty if there are none."""
    match operation:
        case ops.Delete():
            return operation.predicate
        case ops.Clone():
            kind = "shallow" if operation.is_shallow else "deep"
            return f"{kind}, from version {operation.ref_version} of {operation.ref_path}"
        case ops.CreateIndex():
            return _indices(operation)
        case ops.Restore():
            return f"to version {operation.version}"
        case ops.ReserveFragments():
            return plural(operation.num_fragments, "fragment id")
        case ops.Update():
            return operation.update_mode.name.lower().replace("_", " ")
        case ops.UpdateConfig():
            return _config(operation)
        case ops.Rewrite():
            return plural(len(operation.groups), "group")
        case ops.Project() | ops.Merge():
            return plural(len(operation.schema.fields), "column")
        case ops.DataReplacement():
            return plural(len(operation.replacements), "file")
        case ops.UpdateBases():
            return ", ".join(base.path for base in operation.new_bases)
        case ops.UpdateMemWalState():
            return plural(len(operation.merged_generations), "generation")
        case ops.UnknownOperation():
            return f"number {operation.tag}"
        case ops.Append() | ops.Overwrite():
            return ""
        case _:
            assert_never(operation)


def name(operation: ops.Operation | None) -> str:
    """Return the name of an operation; `?` without a transaction."""
    if operation is None:
        return "?"
    is_unknown = isinstance(operation, ops.UnknownOperation)
    return "Unknown" if is_unknown else type(operation).__name__


def _indices(operation: ops.CreateIndex) -> str:
    new = {index.name for index in operation.new_indices}
    gone = {index.name for index in operation.removed_indices} - new
    parts = [", ".join(sorted(new))] if new else []
    if gone:
        parts.append(f"without {', '.join(sorted(gone))}")
    return " ".join(parts)


def _config(operation: ops.UpdateConfig) -> str:
    maps: list[tuple[str, MapUpdate | None]] = [
        ("", operation.config),
        ("metadata ", operation.table_metadata),
        ("schema ", operation.schema_metadata),
    ]
    parts = [f"{label}{_keys(update)}" for label, update in maps if update is not None]
    if operation.field_metadata:
        parts.append(plural(len(operation.field_metadata), "field"))
    return ", ".join(parts)


def _keys(update: MapUpdate) -> str:
    return ", ".join(f"-{key}" if value is None else key for key, value in update.entries.items())


Json = Any  # what the json module takes
_ROW_VERSIONS = ("created_at_versions", "last_updated_at_versions")


def document(value: object) -> Json:
    """Convert a value to plain objects, lists, strings and numbers."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case bytes():
            return _text_or_base64(value)
        case Enum():
            return value.name.lower()
        case UUID():
            return str(value)
        case Fragment():
            return _fragment(value)
        case IndexMetadata():
            return _index(value)
        case Mapping():
            return {str(key): document(each) for key, each in value.items()}
        case Sequence():
            return [document(each) for each in value]
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return _fields(value)
        case _:
            return str(value)


def manifest_document(snapshot: Snapshot) -> Json:
    """Return a manifest with its index section."""
    manifest = snapshot.manifest
    body = _fields(manifest)
    body["timestamp"] = manifest.timestamp.isoformat() if manifest.timestamp else None
    body["data_version"] = manifest.data_version.value
    for word in ("reader_feature_flags", "writer_feature_flags"):
        body[word] = flag_names(getattr(manifest, word))
    body["indices"] = document(snapshot.indices)
    body["schema_metadata"] = document(manifest.schema.metadata)
    body["fields"] = document(manifest.schema.fields)
    for replaced in ("schema", "timestamp_ns", "version_aux_data"):
        body.pop(replaced, None)
    stored = {"name": snapshot.name.name, "size_bytes": snapshot.manifest_size}
    # The longest list is last.
    fragments = body.pop("fragments")
    return {"file": stored, **body, "fragments": fragments}


def schema_document(snapshot: Snapshot) -> Json:
    """Return the columns of a version."""
    schema = snapshot.manifest.schema
    return {
        "version": snapshot.version,
        "fields": [field_document(field) for field in schema.fields],
        "metadata": document(schema.metadata),
        "primary_key": [schema.path_of(field.id) for field in schema.primary_key()],
    }


def transaction_document(transaction: Transaction) -> Json:
    """Return a transaction, with its operation by name."""
    return {**_fields(transaction), "operation": operation_document(transaction.operation)}


def operation_document(operation: Operation) -> Json:
    """Return an operation as an object with its name."""
    named = {"name": name(operation)}
    if isinstance(operation, UnknownOperation):
        return {**named, "tag": operation.tag, "data": _text_or_base64(operation.data)}
    return {**named, **document(operation)}


def tag_document(name: str, tag: Tag) -> Json:
    """Return a tag with its name."""
    return {"kind": "tag", "name": name, **_fields(tag)}


def branch_document(name: str, branch: Branch) -> Json:
    """Return a branch with its name."""
    return {"kind": "branch", "name": name, **_fields(branch)}


def field_document(field: Field) -> Json:
    """Return a field of the schema with its children."""
    return {
        "name": field.name,
        "id": field.id,
        "type": field.logical_type,
        "nullable": field.nullable,
        "primary_key": field.unenforced_primary_key,
        "primary_key_position": field.unenforced_primary_key_position or None,
        "metadata": document(field.metadata),
        "fields": [field_document(child) for child in field.children],
    }


def writer_text(writer: WriterVersion | None) -> str | None:
    """Return the library and version that wrote a version."""
    if writer is None:
        return None
    extra = f"-{writer.prerelease}" if writer.prerelease else ""
    return f"{writer.library} {writer.version}{extra}"


def flag_names(flags: int) -> list[str]:
    """Return the names of the bits of a flag word; an unknown bit by its number."""
    bits = [1 << i for i in range(flags.bit_length()) if flags >> i & 1]
    names = {int(flag): (flag.name or "").lower() for flag in FeatureFlags}
    return [names.get(bit, f"{bit:#x}") for bit in bits]


def _fields(value: Any) -> dict[str, Json]:  # any dataclass
    """Return the fields of a dataclass; unknown fields are included only if there are any."""
    named = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    return {k: document(v) for k, v in named.items() if k != "unknown" or v}


def _fragment(fragment: Fragment) -> Json:
    body = _fields(fragment)
    if isinstance(fragment.row_ids, bytes):
        body["row_ids"] = _row_ids(fragment.row_ids)
    for name in _ROW_VERSIONS:
        source = getattr(fragment, name)
        if isinstance(source, bytes):
            body[name] = _row_versions(source)
    return body


def _row_ids(data: bytes) -> Json:
    try:
        parts = rowids.decode_row_ids(data)
    except LanceTableError:
        return _text_or_base64(data)
    return [_segment(part) for part in parts]


def _segment(part: rowids.Segment) -> Json:
    body: dict[str, Json] = {"kind": type(part).__name__, "rows": rowids.length(part)}
    if isinstance(part, rowids.SortedArray | rowids.Array):
        return body
    return {**body, "start": part.start, "end": part.end}


def _row_versions(data: bytes) -> Json:
    try:
        return [
            {"rows": rows, "version": version} for rows, version in rowids.decode_versions(data)
        ]
    except LanceTableError:
        return _text_or_base64(data)


def _index(index: IndexMetadata) -> Json:
    body = _fields(index)
    body.pop("fragment_bitmap", None)
    try:
        covered = index.fragments()
        kind, parameters = index_meta.describe(index.details)
    except LanceTableError as error:
        return {**body, "damage": error.problem}
    body["kind"] = kind
    body["fragments"] = None if covered is None else list(covered)
    if parameters:
        body["parameters"] = document(parameters)
    return body


def _text_or_base64(data: bytes) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return base64.b64encode(data).decode()
    return text if text.isprintable() else base64.b64encode(data).decode()


def optimize_document(summary: OptimizeSummary) -> dict[str, Any]:
    """Return what `optimize` did, or would do, and why steps were skipped."""
    compaction, cleanup = summary.compaction, summary.cleanup
    removed = None
    if cleanup is not None:
        removed = {
            "versions": list(cleanup.versions),
            "files": cleanup.files_removed,
            "bytes": cleanup.bytes_removed,
        }
    return {
        "dry_run": summary.is_dry_run,
        "compaction": None if compaction is None else asdict(compaction),
        "indices": list(summary.indices),
        "cleanup": removed,
        "skipped": list(summary.skipped),
        "conflict": summary.conflict,
    }
