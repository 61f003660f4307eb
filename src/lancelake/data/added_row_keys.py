"""Key columns of rows added by a concurrent commit, read for conflict checks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from lancelake.format import layout
from lancelake.format.fragment import Fragment
from lancelake.format.ids import FieldId
from lancelake.format.names import ManifestNaming, manifest_name
from lancelake.storage.location import Location
from lancelake.storage.table_files import FileAt, TableFiles
from lancelake.txn.state import TableState

_BATCH_ROWS = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedRowKeys:
    """Reads the columns of a key from the files of a table."""

    root: Location

    def key_columns(
        self, fragments: Sequence[Fragment], field_ids: Sequence[FieldId], state: TableState
    ) -> Iterator[Sequence[pa.Array]]:
        """Yield the columns of these fields, batch by batch; `state` is after that commit."""
        # The codec is slow to import, and few commits have to read added rows.
        from lancelake.data.fragment_reader import FragmentReader  # noqa: PLC0415

        manifest = state.manifest
        by_id = manifest.schema.by_id()
        schema = replace(manifest.schema, fields=tuple(by_id[i] for i in field_ids))
        files = TableFiles(root=self.root, bases=manifest.base_paths)
        name = manifest_name(manifest.version, ManifestNaming.V2)
        place = FileAt(root=self.root, path=layout.manifest(name))
        for fragment in fragments:
            reader = FragmentReader(files, place, fragment, schema)
            rows = reader.physical_rows
            for batch in reader.batches(start=0, stop=rows, batch_rows=_BATCH_ROWS):
                yield batch.columns
