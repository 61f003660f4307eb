"""Write legacy data files to memory, and count how they are read."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from lancelake.errors import CorruptTableError
from lancelake.format import arrow_schema
from lancelake.format.fragment import DataFile
from lancelake.format.ids import FieldId
from lancelake.format.schema import DictionaryPage, Field
from lancelake.proto import file_pb2


@dataclass
class MemorySource:
    """A file in memory that remembers which ranges were read."""

    data: bytes
    name: str = "f.lance"
    reads: list[tuple[int, int]] = field(default_factory=list)

    def size_bytes(self) -> int:
        """Length of the file."""
        return len(self.data)

    def read(self, start: int, length: int) -> bytes:
        """Return the range and remember it."""
        if start < 0 or length < 0 or start + length > len(self.data):
            raise CorruptTableError(f"{self.name} has no bytes {start} to {start + length}")
        self.reads.append((start, length))
        return self.data[start : start + length]

    @property
    def bytes_read(self) -> int:
        """Bytes handed out."""
        return sum(length for _, length in self.reads)


@dataclass(frozen=True, kw_only=True)
class LegacyTable:
    """A data file with the schema, the file entry and the manifest that a reader needs."""

    fields: tuple[Field, ...]
    file: DataFile
    data: bytes
    manifest: bytes

    def source(self) -> MemorySource:
        """Return the data file."""
        return MemorySource(self.data)

    def manifest_source(self) -> MemorySource:
        """Return the manifest, of which only dictionary values are real."""
        return MemorySource(self.manifest, name="1.manifest")


def legacy_table(groups: Sequence[pa.RecordBatch], *, first_id: int = 0) -> LegacyTable:
    """Write batches as the groups of rows of one file."""
    fields = arrow_schema.from_arrow(groups[0].schema, first_id=first_id).fields
    manifest = _Writer()
    fields = tuple(
        manifest.dictionary(f, column) for f, column in zip(fields, groups[0].columns, strict=True)
    )
    writer = _Writer()
    for batch in groups:
        for node, column in zip(fields, batch.columns, strict=True):
            writer.column(node, column)
        writer.end_group(batch.num_rows)
    ids = tuple(node.id for top in fields for node in top.walk())
    entry = DataFile(path="f.lance", fields=ids, file_major_version=0, file_minor_version=2)
    return LegacyTable(
        fields=fields, file=entry, data=writer.finish(ids), manifest=bytes(manifest.out)
    )


def pruned(fields: Iterable[Field], file: DataFile) -> tuple[Field, ...]:
    """Keep what a file holds of the fields."""
    return tuple(_pruned(fields, frozenset(file.fields)))


def _pruned(fields: Iterable[Field], held: frozenset[FieldId]) -> Iterator[Field]:
    for node in fields:
        if node.logical_type == "struct":
            members = tuple(_pruned(node.children, held))
            if members:
                yield node.with_children(members)
        elif node.id in held:
            yield node.with_children(tuple(_pruned(node.children, held)))


class _Writer:
    def __init__(self) -> None:
        self.out = bytearray()
        self.pages: dict[tuple[int, int], tuple[int, int]] = {}
        self.offsets = [0]

    def column(self, node: Field, array: pa.Array) -> None:
        if pa.types.is_struct(array.type):
            for child, member in zip(node.children, array.flatten(), strict=True):
                self.column(child, member)
        elif pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
            # Offsets of a slice do not start at 0, and neither do those in the file.
            offsets = array.offsets
            self._page(node, self._values(offsets), len(offsets))
            self.column(node.children[0], array.values)
        else:
            stored = array.indices if pa.types.is_dictionary(array.type) else array
            self._page(node, self._values(stored), len(stored))

    def dictionary(self, node: Field, array: pa.Array) -> Field:
        """Write the values of dictionaries and return the field that says where they are."""
        if pa.types.is_dictionary(array.type):
            page = DictionaryPage(
                offset=self._values(array.dictionary), length=len(array.dictionary)
            )
            return replace(node, dictionary=page)
        if pa.types.is_struct(array.type):
            members = array.flatten()
        elif node.children:
            members = [array.values]
        else:
            return node
        pairs = zip(node.children, members, strict=True)
        return node.with_children(tuple(self.dictionary(c, m) for c, m in pairs))

    def end_group(self, rows: int) -> None:
        self.offsets.append(self.offsets[-1] + rows)

    def finish(self, ids: Sequence[FieldId]) -> bytes:
        table_at = len(self.out)
        for field_id in range(ids[0], max(ids) + 1):
            for group in range(len(self.offsets) - 1):
                self.out += struct.pack("<qq", *self.pages.get((field_id, group), (0, 0)))
        message = file_pb2.Metadata(batch_offsets=self.offsets, page_table_position=table_at)
        body = message.SerializeToString()
        metadata_at = len(self.out)
        self.out += struct.pack("<I", len(body)) + body
        self.out += struct.pack("<qHH4s", metadata_at, 0, 2, b"LANC")
        return bytes(self.out)

    def _page(self, node: Field, position: int, length: int) -> None:
        self.pages[node.id, len(self.offsets) - 1] = (position, length)

    def _values(self, array: pa.Array) -> int:
        dtype = array.type
        if pa.types.is_fixed_size_list(dtype):
            size = dtype.list_size
            return self._values(array.values.slice(array.offset * size, len(array) * size))
        if pa.types.is_null(dtype):
            return len(self.out)
        if pa.types.is_boolean(dtype):
            bits = array.fill_null(False).to_numpy(zero_copy_only=False)
            return self._put(np.packbits(bits, bitorder="little").tobytes())
        if not _is_text(dtype):
            width = dtype.bit_width // 8
            data = array.buffers()[1].to_pybytes()
            return self._put(data[array.offset * width : (array.offset + len(array)) * width])
        values = [value or b"" for value in array.cast(pa.large_binary()).to_pylist()]
        start = self._put(b"".join(values))
        ends = itertools.accumulate((len(value) for value in values), initial=start)
        return self._put(b"".join(struct.pack("<q", end) for end in ends))

    def _put(self, data: bytes) -> int:
        position = len(self.out)
        self.out += data
        return position


def _is_text(dtype: pa.DataType) -> bool:
    large = pa.types.is_large_string(dtype) or pa.types.is_large_binary(dtype)
    return bool(large or pa.types.is_string(dtype) or pa.types.is_binary(dtype))
