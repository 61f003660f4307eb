"""Tables of files that this library wrote, with a manifest of version 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from lancelake.clock import SystemIds
from lancelake.data.column_file import WriteTask, write_fragments
from lancelake.format import arrow_schema, layout
from lancelake.format.fragment import FileVersion, Fragment, version_from_name
from lancelake.format.ids import FragmentId, Version
from lancelake.format.manifest import Manifest, WriterVersion, encode_manifest
from lancelake.format.schema import Schema
from lancelake.storage.location import Location, Session

Options = Any  # further fields of a WriteTask


def write_table(
    root: str | Path | Location,
    table: pa.Table,
    version: str,
    *,
    batch_rows: int | None = None,
    **task: Options,
) -> tuple[Fragment, ...]:
    """Write a table as version 1 of a new table, and return its fragments."""
    schema = arrow_schema.from_arrow(table.schema)
    reader = table.to_reader(batch_rows)
    where = root if isinstance(root, Location) else Location.parse(root)
    # The names of files are the same each time.
    named = replace(where, session=Session(ids=SystemIds(7)))
    format = version_from_name(version)
    fragments = write_fragments(
        WriteTask(root=named, schema=schema, file_version=format, **task), reader
    )
    publish(where, schema, fragments, version_from_name(version))
    return fragments


def publish(
    root: Location, schema: Schema, fragments: Sequence[Fragment], version: FileVersion
) -> None:
    """Make version 1 of a table out of these fragments."""
    numbered = tuple(replace(f, id=FragmentId(i)) for i, f in enumerate(fragments))
    manifest = Manifest(
        schema=schema,
        fragments=numbered,
        version=Version(1),
        data_version=version,
        timestamp_ns=1_700_000_000_000_000_000,
        writer_version=WriterVersion(library="lancelake", version="0.1.0"),
        max_fragment_id=len(numbered) - 1 if numbered else None,
    )
    name = layout.manifest_name(1, layout.ManifestNaming.V2)
    root.store.put(layout.manifest(name), encode_manifest(manifest))
