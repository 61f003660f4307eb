"""Keys that a transaction inserted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lancelake.errors import CorruptTableError, ObjectNotFoundError
from lancelake.format.file_version import FileVersion
from lancelake.format.fragment import Fragment
from lancelake.format.hashing import U64
from lancelake.format.ids import FieldId
from lancelake.format.primary_key import KeyExistenceFilter
from lancelake.txn import key_bloom
from lancelake.txn.key_bloom import MOST_KEYS, KeyHashes
from lancelake.txn.rules import OK, Context, Retryable, Verdict


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class InsertedKeys:
    """Keys of new rows; `hashes` is None when there are too many to keep in memory."""

    recorded: KeyExistenceFilter
    hashes: KeyHashes | None


def collected(field_ids: Sequence[FieldId], batches: Iterable[Sequence[pa.Array]]) -> InsertedKeys:
    """Collect the keys of new rows; each batch has one array per field of the key."""
    parts: list[U64] | None = []
    count = 0

    def hashed() -> Iterator[U64]:
        nonlocal parts, count
        for columns in batches:
            hashes = key_bloom.hashed(field_ids, columns)
            count += len(hashes)
            parts = None if parts is None or count > MOST_KEYS else [*parts, hashes]
            yield hashes

    recorded = key_bloom.of_hashes(field_ids, hashed())
    return InsertedKeys(recorded=recorded, hashes=None if parts is None else KeyHashes.of(parts))


def united(parts: Sequence[InsertedKeys]) -> InsertedKeys:
    """Merge the keys of several parts of the new rows."""
    hashes = KeyHashes.of(None if p.hashes is None else p.hashes.hashes for p in parts)
    return InsertedKeys(recorded=key_bloom.merged([p.recorded for p in parts]), hashes=hashes)


def judged(
    keys: KeyExistenceFilter, *, has_rows: bool, added: Sequence[Fragment], context: Context
) -> Verdict:
    """Return OK when none of the added rows has a key that mine inserts.

    `has_rows` is set when mine writes rows. Rows that cannot be read count as a conflict.
    """
    exact = context.inserted_keys
    if not added or (exact is not None and not len(exact)):
        return OK
    if exact is None and has_rows and may_be_unrecorded(keys, context):
        return Retryable("inserted keys of this type may not have been recorded")
    if not set(keys.field_ids) <= {f.id for f in context.theirs_after.manifest.schema.fields}:
        return Retryable("a column of the key no longer exists")
    port = context.key_port
    if port is None or not all(_is_readable(fragment) for fragment in added):
        return Retryable("added rows may have the same keys")
    try:
        for columns in port.key_columns(added, keys.field_ids, context.theirs_after):
            hashes = key_bloom.hashed(keys.field_ids, columns)
            if key_bloom.may_contain(keys, hashes) and (
                exact is None or exact.contains_any(hashes)
            ):
                return Retryable("rows with the same keys were added")
    except (CorruptTableError, ObjectNotFoundError):
        # After a retry, the change reads the newest version, which may not need these files.
        return Retryable("added rows cannot be read")
    return OK


def may_be_unrecorded(keys: KeyExistenceFilter, context: Context) -> bool:
    """Whether a filter is empty because official releases do not record keys of these types."""
    fields = context.base.manifest.schema.by_id()
    types = (fields[i].logical_type for i in keys.field_ids if i in fields)
    return key_bloom.is_empty(keys) and not all(key_bloom.recorded_by_all(t) for t in types)


def _is_readable(fragment: Fragment) -> bool:
    """Whether the rows can be read without the manifest of their version."""
    return fragment.deletion_file is None and all(
        file.version is not FileVersion.LEGACY for file in fragment.files
    )
