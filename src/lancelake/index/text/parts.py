"""Parts of a full text index that workers write to one folder: partitions of one index."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import pyarrow as pa

from lancelake.data.codec.index_file import SegmentFolder
from lancelake.engine.stages import Stages
from lancelake.errors import InvalidRequestError
from lancelake.index.kind import Parameters
from lancelake.index.text.build import OCCURRENCES_AT_ONCE, TextIndexWriter, write_metadata
from lancelake.index.text.layout import METADATA_FILE, part_metadata_file, read_layout
from lancelake.index.text.parameters import TextParameters

_METADATA = re.compile(r"part_(\d+)_metadata\.lance")
# Partitions of a part are numbered from the number of its first fragment on, above these bits.
_PARTITION_BITS = 32


def write_text_part(
    folder: SegmentFolder,
    first_fragment: int,
    parameters: Parameters,
    batches: Iterable[pa.RecordBatch],
) -> None:
    """Write the partitions of some rows, and the metadata of the part."""
    first = first_fragment << _PARTITION_BITS
    requested = TextParameters.requested(parameters)
    writer = TextIndexWriter(folder, requested, OCCURRENCES_AT_ONCE, first=first)
    writer.add_texts(batches)
    writer.finish(part_metadata_file(first))


def text_parts(names: Iterable[str]) -> list[str]:
    """Return the metadata files of parts among the files of a folder, by number."""
    found = [match for name in names if (match := _METADATA.fullmatch(name)) is not None]
    return [match[0] for match in sorted(found, key=lambda match: int(match[1]))]


def merge_text_parts(folder: SegmentFolder, parts: Sequence[str], stages: Stages) -> None:
    """Write the metadata of the index that has the partitions of all parts."""
    layouts = []
    with stages.stage("read_partition_metadata", len(parts), "files") as advance:
        for name in parts:
            layouts.append(read_layout(folder, name))
            advance(1)
    parameters = layouts[0].parameters
    with stages.stage("remap_partition_files", len(parts), "files"):
        if any(layout.parameters != parameters for layout in layouts):
            problem = "parts of a text index with different parameters cannot be merged"
            raise InvalidRequestError(problem)
        partitions = [number for layout in layouts for number in layout.partitions]
    with stages.stage("write_merged_metadata", unit="files"):
        write_metadata(folder, METADATA_FILE, partitions, parameters)
