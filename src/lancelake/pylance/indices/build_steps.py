"""Files between the steps of an IVF_PQ build: encoded rows, and rows grouped by partition."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from lancelake.commit.snapshot import Snapshot
from lancelake.data.codec.index_file import IndexFileReader
from lancelake.errors import InvalidRequestError
from lancelake.format.ids import Version
from lancelake.index.vector.coded_rows import (
    GROUPS,
    PARTITION,
    RowPartitions,
    group,
    grouped_batch,
    grouped_rows_of,
    grouped_schema,
)
from lancelake.index.vector.grouped_rows import grouped_rows
from lancelake.index.vector.write import PartitionCodes
from lancelake.pylance._values.vector_models import file_folder, opened_file
from lancelake.table.index.build import IndexRun
from lancelake.table.index.request import IndexRequest, chosen_fragments
from lancelake.table.index.segments import commit_segments
from lancelake.table.index.steps import encoded_rows, segment_of

# Metadata that files of official releases do not have.
_FRAGMENTS, _VERSION = "lancelake:fragments", "lancelake:version"
_ADDRESS_BITS = np.uint64(32)


def write_encoded(
    base: Snapshot, request: IndexRequest, uri: str, known: RowPartitions | None = None
) -> None:
    """Write the partition and the code of each row to a file."""
    fragments = chosen_fragments(base, request.fragment_ids)
    schema, batches = encoded_rows(base, request, known)
    folder, name = file_folder(uri, dict(base.location.options))
    file = folder.create(name, schema)
    for batch in batches:
        file.write(batch)
    file.finish({_FRAGMENTS: json.dumps(list(fragments)), _VERSION: str(base.version)})


def write_grouped(
    sources: Sequence[str], target: str, partitions: int, options: Mapping[str, str] | None
) -> None:
    """Write the rows of files with encoded rows to one file, a row for each partition."""
    files = [opened_file(uri, options) for uri in sources]
    coded = files[0].schema.remove_metadata()
    for file in files:
        file.require(*coded.names)
    folder, name = file_folder(target, options)
    with grouped_rows(partitions) as groups:
        group(_all_rows(files), groups)
        out = folder.create(name, grouped_schema(coded))
        for number in range(partitions):
            out.write(grouped_batch(coded, number, groups.partition(number)))
        out.finish(_joined_metadata(files))


def commit_grouped(
    base: Snapshot, request: IndexRequest, sources: Sequence[str], run: IndexRun
) -> Snapshot:
    """Commit an index of the rows of files that are grouped by partition."""
    files = _GroupedFiles([opened_file(uri, dict(base.location.options)) for uri in sources])
    covered = files.covered(base)
    part = IndexRequest(
        column=request.column,
        kind=request.kind,
        name=request.name,
        fragment_ids=tuple(covered),
        parameters=request.parameters,
    )
    entry = segment_of(base, part, files.partition, version=files.version(base), run=run)
    return commit_segments(base, entry.name, request.column, [entry], run)


def known_partitions(table: pa.Table) -> RowPartitions:
    """Return the partitions of a table of assignments: columns `row_id` and `partition`."""
    missing = {"row_id", "partition"} - set(table.column_names)
    if missing:
        problem = f"a table of assigned partitions has no column {min(missing)!r}"
        raise InvalidRequestError(problem)
    return RowPartitions.of(table["row_id"].to_numpy(), table["partition"].to_numpy())


@dataclass(frozen=True, slots=True)
class _GroupedFiles:
    """Files in which each row has the rows of a partition."""

    files: Sequence[IndexFileReader]

    def partition(self, number: int) -> PartitionCodes | None:
        parts = [found for file in self.files if (found := _partition(file, number)) is not None]
        if not parts:
            return None
        return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])

    def version(self, base: Snapshot) -> Version:
        """Return the oldest version of which the files have rows."""
        known = [int(file.metadata.get(_VERSION, base.version)) for file in self.files]
        return Version(min([*known, base.version]))

    def covered(self, base: Snapshot) -> BitMap:
        """Return the fragments of which the files have rows.

        Files of official releases do not record them: there the addresses of rows tell.
        """
        found: BitMap = BitMap()
        for file in self.files:
            recorded = file.metadata.get(_FRAGMENTS)
            if recorded is not None:
                found |= BitMap(json.loads(recorded))
            elif base.manifest.has_stable_row_ids:
                problem = "the files do not record which fragments of the table they cover"
                action = "Write them by transform_vectors again."
                raise InvalidRequestError(problem, table=base.location.uri, action=action)
            else:
                found |= _fragments_of_rows(file)
        return found


def _partition(file: IndexFileReader, number: int) -> PartitionCodes | None:
    rows = file.read(number, number + 1, columns=[GROUPS]).combine_chunks()
    return next((grouped_rows_of(batch) for batch in rows.to_batches()), None)


def _fragments_of_rows(file: IndexFileReader) -> BitMap:
    found: BitMap = BitMap()
    for number in range(file.num_rows):
        part = _partition(file, number)
        if part is not None:
            found |= BitMap(np.unique(part[0] >> _ADDRESS_BITS).tolist())
    return found


def _all_rows(files: Sequence[IndexFileReader]) -> Iterator[pa.RecordBatch]:
    for file in files:
        file.require(PARTITION)
        yield from file.batches()


def _joined_metadata(files: Sequence[IndexFileReader]) -> dict[str, str]:
    """Return what the files record, if each of them does."""
    found: list[dict[str, Any]] = [file.metadata for file in files]
    if any(_FRAGMENTS not in each for each in found):
        return {}
    fragments = sorted({number for each in found for number in json.loads(each[_FRAGMENTS])})
    oldest = min(int(each[_VERSION]) for each in found)
    return {_FRAGMENTS: json.dumps(fragments), _VERSION: str(oldest)}
