"""The record of rows that compactions moved, read from an index entry or from its file."""

from __future__ import annotations

from dataclasses import replace

from lancelake.commit.snapshot import Snapshot
from lancelake.format.index_meta import FRAGMENT_REUSE, IndexDetails, IndexMetadata
from lancelake.format.unknown import parse
from lancelake.proto import table_pb2
from lancelake.storage.confined import confined_path
from lancelake.storage.open import open_store
from lancelake.txn import fragment_reuse

TYPE_URL = "/lance.table.FragmentReuseIndexDetails"

Moves = table_pb2.FragmentReuseIndexDetails


def recorded_moves(base: Snapshot) -> Moves | None:
    """Read all recorded moves of a version, inline; None if there are none."""
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


def with_inline_moves(base: Snapshot) -> tuple[IndexMetadata, ...]:
    """Return the index entries of a version; moves that are recorded in a file are read."""
    if not fragment_reuse.has_hidden_moves(base.indices):
        return base.indices
    moves = recorded_moves(base) or Moves()
    inline = IndexDetails(type_url=TYPE_URL, value=moves.SerializeToString())
    return tuple(
        replace(i, details=inline) if i.name == FRAGMENT_REUSE else i for i in base.indices
    )
