"""Groups of columns that the codec reads together, and those that need a transplant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lancelake.data.codec.column_transplant import Transplant
from lancelake.data.codec.container import Container
from lancelake.data.codec.file_layout import (
    ColumnKind,
    FileLayout,
    PhysicalColumn,
    is_fixed_size_structs,
)
from lancelake.data.codec.page_layout import page_layout
from lancelake.data.codec.transplant_plan import plan_transplant, without_text
from lancelake.errors import UnsupportedError
from lancelake.format.column_path import quoted_path
from lancelake.format.schema import Field
from lancelake.proto import file2_pb2

_LARGE_OFFSET_BITS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadGroup:
    """Columns to read with one reader.

    Its batches have the parents of `columns` under the file's names, in the order of `columns`.
    Without a transplant the codec reads `projection` of the file itself; with one, all columns
    of the transplanted file.
    """

    columns: tuple[PhysicalColumn, ...]
    projection: tuple[str, ...]
    transplant: Transplant | None


def read_groups(
    layout: FileLayout,
    container: Container,
    wanted: Sequence[int],
    *,
    blob_values: bool = False,
    raw_text: bool = False,
) -> tuple[ReadGroup, ...]:
    """Split columns, given by index, into groups that the codec reads correctly.

    A column of a map or of a fixed-size list of structs includes all columns of that node.
    Blob v1 columns are read as positions and sizes; with `blob_values` as values, unless they
    follow a blob v2 column. With `raw_text`, strings are read as binaries.
    """
    planner = _Planner(layout, container, blob_values=blob_values, raw_text=raw_text)
    groups: list[list[_Unit]] = []
    shared: dict[bool, list[_Unit]] = {}
    for unit in _units(layout, wanted):
        must_move = planner.must_move(unit)
        if _is_alone(unit, layout):
            groups.append([unit])
        elif must_move in shared:
            shared[must_move].append(unit)
        else:
            shared[must_move] = [unit]
            groups.append(shared[must_move])
    return tuple(planner.group(units) for units in groups)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unit:
    """A node that the codec reads only as a whole, and its columns."""

    nodes: tuple[Field, ...]
    columns: tuple[PhysicalColumn, ...]

    @property
    def path(self) -> tuple[str, ...]:
        return tuple(node.name for node in self.nodes)


def _units(layout: FileLayout, wanted: Sequence[int]) -> Iterator[_Unit]:
    done: set[int] = set()
    for index in wanted:
        column = layout.find(index)
        if column is None or index in done or column.kind is ColumnKind.PARENT:
            continue
        _ensure_readable(column, layout)
        nodes = _whole(column.nodes)
        columns: tuple[PhysicalColumn, ...] = (column,)
        if len(nodes) < len(column.nodes):
            columns = tuple(c for c in layout.columns if _is_value_below(c, nodes))
        done.update(c.index for c in columns)
        yield _Unit(nodes=nodes, columns=columns)


def _ensure_readable(column: PhysicalColumn, layout: FileLayout) -> None:
    """Raise for types that abort the process in the codec; no release reads them."""
    if not column.is_below_list or not layout.version.leaves_only:
        return
    if column.kind in (ColumnKind.BLOB_V1, ColumnKind.EMPTY_STRUCT):
        path = quoted_path(column.path)
        raise UnsupportedError(
            f"Column {path} of a data file of version {layout.version.value} has a "
            f"{column.kind.value} inside of a list",
            column=path,
            file_version=layout.version.value,
        )


def _is_value_below(column: PhysicalColumn, nodes: tuple[Field, ...]) -> bool:
    if column.kind is ColumnKind.PARENT or len(column.nodes) < len(nodes):
        return False
    return column.nodes[len(nodes) - 1] is nodes[-1]


def _whole(nodes: tuple[Field, ...]) -> tuple[Field, ...]:
    """Cut a path at the first node that the codec reads as a whole or not at all."""
    for depth, node in enumerate(nodes, 1):
        if node.logical_type == "map" or is_fixed_size_structs(node):
            return nodes[:depth]
    return nodes


def _is_alone(unit: _Unit, layout: FileLayout) -> bool:
    """Whether the codec misreads other columns together with these."""
    if is_fixed_size_structs(unit.nodes[-1]):
        return True
    is_empty = any(c.kind is ColumnKind.EMPTY_STRUCT for c in unit.columns)
    return is_empty and layout.version.leaves_only


class _Planner:
    """Planner for the columns of one file."""

    def __init__(
        self, layout: FileLayout, container: Container, *, blob_values: bool, raw_text: bool
    ) -> None:
        self._layout = layout
        self._container = container
        self._blob_values = blob_values
        self._raw_text = raw_text
        self._first_blob = layout.first_blob_v2
        self._nodes_at = _nodes_by_path(layout)
        self._short_json: set[int] = set()

    def must_move(self, unit: _Unit) -> bool:
        """Whether the codec misreads these columns in the file itself."""
        short_json = {c.index for c in unit.columns if self._has_short_offsets(c)}
        self._short_json |= short_json
        is_behind_blob = self._first_blob is not None and any(
            c.index >= self._first_blob for c in unit.columns
        )
        is_unreachable = "" in unit.path or len(self._nodes_at[unit.path]) > 1
        has_blob = any(c.kind is ColumnKind.BLOB_V1 for c in unit.columns)
        has_text = any(without_text(c.field) != c.field for c in unit.columns)
        return (
            self._layout.has_gaps
            or (self._raw_text and has_text)
            or bool(short_json)
            or is_behind_blob
            or is_unreachable
            or (has_blob and not self._blob_values)
        )

    def group(self, units: list[_Unit]) -> ReadGroup:
        """Return the group of these columns."""
        columns = tuple(column for unit in units for column in unit.columns)
        if self.must_move(units[0]):
            plan = plan_transplant(
                self._layout, columns, short_json=self._short_json, raw_text=self._raw_text
            )
            return ReadGroup(columns=columns, projection=(), transplant=plan)
        projection = tuple(quoted_path(unit.path) for unit in units)
        return ReadGroup(columns=columns, projection=projection, transplant=None)

    def _has_short_offsets(self, column: PhysicalColumn) -> bool:
        """Whether JSON was stored as a string, where the codec expects a large binary."""
        if column.kind is not ColumnKind.JSON_TEXT or not self._layout.version.leaves_only:
            return False
        pages = self._container.column(column.index).pages
        return _LARGE_OFFSET_BITS not in {bits for page in pages for bits in _offset_bits(page)}


def _nodes_by_path(layout: FileLayout) -> dict[tuple[str, ...], set[int]]:
    """Find the nodes of each path; more than one where fields share a name."""
    found: dict[tuple[str, ...], set[int]] = {}
    for column in layout.columns:
        path = column.path
        for depth, node in enumerate(column.nodes, 1):
            found.setdefault(path[:depth], set()).add(id(node))
    return found


def _offset_bits(page: file2_pb2.ColumnMetadata.Page) -> Iterator[int]:
    layout = page_layout(page)
    for encoding in (
        layout.mini_block_layout.value_compression,
        layout.mini_block_layout.dictionary,
        layout.full_zip_layout.value_compression,
    ):
        inner = encoding.general.values if encoding.HasField("general") else encoding
        if inner.HasField("variable"):
            yield inner.variable.offsets.flat.bits_per_value
