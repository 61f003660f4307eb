"""Where did rows go that moved? The record that leads indices from old addresses to new ones."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from pyroaring import BitMap

from lancelake.commit.snapshot import Snapshot
from lancelake.data.deletion_files import load_deletions
from lancelake.format import layout, roaring_treemap
from lancelake.format.fragment import Fragment
from lancelake.format.ids import Version
from lancelake.format.index_meta import FRAGMENT_REUSE, IndexDetails, IndexFile, IndexMetadata
from lancelake.format.operations.rewrite import RewriteGroup
from lancelake.format.unknown import parse
from lancelake.proto import table_pb2
from lancelake.scan.count import live_rows, physical_rows
from lancelake.storage.confined import confined_path
from lancelake.storage.open import open_store
from lancelake.table.publish import Surroundings
from lancelake.txn import fragment_reuse

Moves = table_pb2.FragmentReuseIndexDetails

_TYPE_URL = "/lance.table.FragmentReuseIndexDetails"
_DETAILS_FILE = "details.binpb"
_MOST_INLINE_BYTES = 204_800
_FILES_AT_ONCE = 16


def recorded_moves(
    base: Snapshot, groups: Sequence[RewriteGroup], version: int, surroundings: Surroundings
) -> IndexMetadata:
    """Return the entry that leads from the addresses of old rows to those of new ones.

    The rows of each group must have kept their order. `version` is one that the moves come after.
    What was recorded before stays in.
    """
    details = _moves(base) or Moves()
    added = details.inline.versions.add(dataset_version=version)
    with ThreadPoolExecutor(_FILES_AT_ONCE) as pool:
        added.groups.extend(pool.map(lambda group: _group(base, group), groups))
    covered = BitMap(
        f.id for v in details.inline.versions for g in v.groups for f in g.new_fragments
    )
    entry = IndexMetadata(
        uuid=surroundings.ids.uuid4(),
        name=FRAGMENT_REUSE,
        fields=(),
        dataset_version=Version(version),
        fragment_bitmap=bytes(covered.serialize()),
        details=IndexDetails(type_url=_TYPE_URL, value=details.SerializeToString()),
        index_version=0,
        created_at_ms=surroundings.clock.now_ns() // 1_000_000,
    )
    size_bytes = len(details.inline.SerializeToString())
    return entry if size_bytes <= _MOST_INLINE_BYTES else _outside(base, entry, details)


def with_inline_moves(base: Snapshot) -> tuple[IndexMetadata, ...]:
    """Return the index entries, with moves that lie in a file read from there."""
    if not fragment_reuse.has_hidden_moves(base.indices):
        return base.indices
    moves = _moves(base) or Moves()
    inline = IndexDetails(type_url=_TYPE_URL, value=moves.SerializeToString())
    return tuple(
        replace(i, details=inline) if i.name == FRAGMENT_REUSE else i for i in base.indices
    )


def _moves(base: Snapshot) -> Moves | None:
    """Read what is recorded so far."""
    entry = next((i for i in base.indices if i.name == FRAGMENT_REUSE), None)
    if entry is None or entry.details is None:
        return None
    details = Moves()
    parse(details, entry.details.value, what="fragment reuse details")
    if details.WhichOneof("content") != "external":
        return details
    file = details.external
    folder = base.files.index_dir(entry)
    data = open_store(folder.root).get_range(
        f"{folder.path}/{confined_path(file.path)}", start=file.offset, length=file.size
    )
    inline = Moves()
    parse(inline.inline, data, what="fragment reuse details")
    inline.inline.SetInParent()
    return inline


def _outside(base: Snapshot, entry: IndexMetadata, details: Moves) -> IndexMetadata:
    """Put the record into a file, where it does not weigh on the manifest."""
    data = details.inline.SerializeToString()
    path = f"{layout.index_dir(entry.uuid)}/{_DETAILS_FILE}"
    open_store(base.location).create(path, data)
    place = Moves()
    place.external.path, place.external.offset, place.external.size = _DETAILS_FILE, 0, len(data)
    return replace(
        entry,
        details=IndexDetails(type_url=_TYPE_URL, value=place.SerializeToString()),
        files=(IndexFile(path=_DETAILS_FILE, size_bytes=len(data)),),
    )


def _group(base: Snapshot, group: RewriteGroup) -> Moves.Group:
    return Moves.Group(
        changed_row_addrs=_addresses(base, group.old_fragments),
        old_fragments=[_digest(base, f) for f in group.old_fragments],
        new_fragments=[_digest(base, f) for f in group.new_fragments],
    )


def _digest(base: Snapshot, fragment: Fragment) -> Moves.FragmentDigest:
    places = base.files, base.manifest_at, fragment
    rows = physical_rows(*places)
    return Moves.FragmentDigest(
        id=fragment.id, physical_rows=rows, num_deleted_rows=rows - live_rows(*places)
    )


def _addresses(base: Snapshot, fragments: Sequence[Fragment]) -> bytes:
    """Write the addresses of live rows as a Roaring treemap: fragments, a bitmap for each."""
    live: dict[int, BitMap] = {}
    for fragment in fragments:
        rows = physical_rows(base.files, base.manifest_at, fragment)
        live[fragment.id] = BitMap(range(rows)) - load_deletions(base.files, fragment)
        live[fragment.id].run_optimize()
    return roaring_treemap.encode(live)
