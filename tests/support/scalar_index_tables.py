"""Tables with scalar indices, built by us and searched through our kinds."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

import lancelake.pylance as lance
from lancelake.data.codec.index_file import SegmentFolder
from lancelake.expr.condition import And, Condition, Not, Or
from lancelake.expr.predicate import sql_condition
from lancelake.format import index_meta
from lancelake.format.arrow_schema import from_arrow
from lancelake.format.index_meta import IndexMetadata
from lancelake.format.manifest import decode_manifest
from lancelake.index.kind import (
    BuildInput,
    BuiltSegment,
    IdKind,
    IndexKind,
    OpenSegment,
    SegmentFacts,
)
from lancelake.index.kinds import kind_of, kind_of_files
from lancelake.index.row_sets import Answer
from lancelake.index.scalar.btree.kind import BTREE
from lancelake.pylance._dataset.index_values import Index, IndexFile, from_index
from lancelake.storage.location import Location
from lancelake.storage.table_files import FileAt
from tests.support.index_segments import build_input, truths

NAN = float("nan")
_FLOATS = [0.0, -0.0, NAN, 1.5, -1.5, float("inf"), float("-inf"), None]
_WORDS = ["", "a", "ab", "abc", "b", "é", "z\U0010ffff", None]
_LABELS = [["x"], ["x", "y"], [], None, [None, "x"], ["y", "z"], [None]]


def rows(count: int, seed: int = 0) -> pa.Table:
    """Return rows with a column of each sort of values; `n` numbers the rows."""
    chance = np.random.default_rng(seed)

    def drawn(pool: Sequence[object], dtype: pa.DataType) -> pa.Array:
        places = chance.integers(0, len(pool), count)
        return pa.array(pool, dtype).take(pa.array(places))

    numbers = pa.array(chance.integers(-500, 500, count))
    return pa.table(
        {
            "n": pa.array(np.arange(count)),
            "i": pa.array(numbers.to_numpy(), mask=np.asarray(chance.random(count) < 0.1)),
            "f": drawn(_FLOATS, pa.float64()),
            "s": drawn(_WORDS, pa.string()),
            "k": drawn([1, 2, 3, None], pa.int8()),
            "b": drawn([True, False, None], pa.bool_()),
            "d": drawn([*range(-400, 400), None], pa.date32()),
            "t": drawn([*range(-400, 400), None], pa.timestamp("us")),
            "l": drawn(_LABELS, pa.list_(pa.string())),
            "g": drawn([[1, 2], [2], None, [], [3, None]], pa.list_(pa.int32())),
        }
    )


FILTERS = {
    "i": (
        "i = 7",
        "i != 7",
        "i < -490",
        "i >= 490",
        "i between -3 and 3",
        "i in (1, 2, 900)",
        "i is null",
        "i is not null",
        "not (i < 100 or i > 120)",
    ),
    "f": (
        "f = 0.0",
        "f != 0.0",
        "f < 0.0",
        "f > 1.5",
        "f >= -0.0",
        "f in (0.0, 1.5)",
        "f is null",
        "f = CAST('NaN' AS DOUBLE)",
        "f < CAST('NaN' AS DOUBLE)",
        "not (f > 0.0)",
    ),
    "s": (
        "s = 'ab'",
        "s < 'ab'",
        "starts_with(s, 'ab')",
        "s like 'a%'",
        "s in ('', 'é')",
        "s is null",
        "not (s = 'ab' or s is null)",
    ),
    "k": ("k = 1", "k <> 1", "k in (1, 3)", "k > 1", "k is null", "not (k = 2)"),
    "b": ("b", "not b", "b = true", "b is null"),
    "d": ("d < DATE '1969-01-01'", "d = DATE '1970-01-02'", "d is null"),
    "t": ("t < TIMESTAMP '1969-12-31 23:59:59.9999'", "t is null"),
    "l": (
        "array_has(l, 'x')",
        "array_contains(l, 'y')",
        "array_has_any(l, ['y', 'z'])",
        "array_has_all(l, ['x', 'y'])",
        "not array_has(l, 'x')",
        "array_has(l, 'none')",
        "not array_has_all(l, ['y'])",
    ),
    "g": ("array_has(g, 2)", "array_has_any(g, [1, 3])", "not array_has(g, 2)"),
}


def scan_differences(uri: str, column: str) -> list[str]:
    """Return the filters on a column that a read through all segments answers unlike a scan."""
    table = lance.dataset(uri)

    def answer(text: str, *, by_index: bool) -> list[int]:
        found = table.to_table(["n"], text, use_scalar_index=by_index)
        return sorted(found["n"].to_pylist())

    texts = FILTERS[column]
    return [t for t in texts if answer(t, by_index=True) != answer(t, by_index=False)]


class IndexedTable:
    """One version of a table, with the indices of some columns open."""

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self.dataset = lance.dataset(uri)
        self._schema = self.dataset.schema
        self._entries = entries(uri)

    def difference(self, text: str, column: str) -> str | None:
        """Say how the answer of the index differs from the scan; None if it does not."""
        entry = self._entry(column)
        kind = kind_in(entry, self.uri, self._schema.field(column).type)
        condition = sql_condition(text, from_arrow(self._schema), self._schema)
        answer = _answer(condition, self.segment(column))
        if answer is None:
            return f"{text} is not served"
        live, wanted = self._rows(kind, entry, None), set(self._rows(kind, entry, text))
        truth = truths(answer, live)
        found = {row for row, is_true in zip(live, truth, strict=True) if is_true}
        return None if found == wanted else f"{text}: {len(found)} rows, not {len(wanted)}"

    def segment(self, column: str) -> OpenSegment:
        """Open the index of a column."""
        entry = self._entry(column)
        kind = kind_in(entry, self.uri, self._schema.field(column).type)
        return kind.open(self.facts(column))

    def facts(self, column: str) -> SegmentFacts:
        """Return what is known of the index of a column."""
        entry = self._entry(column)
        place = FileAt(root=Location.parse(self.uri), path=f"_indices/{entry.uuid}")
        counts = {f.fragment_id: f.physical_rows for f in self.dataset.get_fragments()}
        return SegmentFacts(
            folder=SegmentFolder(place=place),
            dtype=self._schema.field(column).type,
            details=entry.details,
            index_version=entry.index_version or 0,
            fragment_rows=counts.get,
        )

    def _entry(self, column: str) -> IndexMetadata:
        (entry,) = (entry for entry in self._entries if entry.name == index_name(column))
        return entry

    def _rows(self, kind: IndexKind, entry: IndexMetadata, text: str | None) -> list[int]:
        name = _id_column(self.dataset, kind, entry.index_version or 0)
        options = {"with_row_address": True, "with_row_id": True}
        return self.dataset.to_table(filter=text, columns=["n"], **options)[name].to_pylist()


def _answer(condition: Condition, segment: OpenSegment) -> Answer | None:
    match condition:
        case Not():
            inner = _answer(condition.part, segment)
            return None if inner is None else ~inner
        case And() | Or():
            parts = [_answer(part, segment) for part in condition.parts]
            known = [part for part in parts if part is not None]
            if len(known) < len(parts):
                return None
            found = known[0]
            for part in known[1:]:
                found = found & part if isinstance(condition, And) else found | part
            return found
        case _:
            return segment.answer(condition)


def entries(uri: str) -> tuple[IndexMetadata, ...]:
    """Return the index entries of the newest version."""
    paths = (Path(uri) / "_versions").glob("*.manifest")
    found = [decode_manifest(path.read_bytes()) for path in paths]
    newest = max(found, key=lambda each: each.manifest.version)
    if newest.index_section is None:
        return ()
    return index_meta.decode_section(newest.index_section)


def kind_in(entry: IndexMetadata, uri: str, dtype: pa.DataType) -> IndexKind:
    """Return the kind of an entry, with details or without."""
    folder = Path(uri) / "_indices" / str(entry.uuid)
    names = [path.name for path in folder.iterdir()]
    kind = kind_of(entry) if entry.details is not None else kind_of_files(names, dtype)
    assert kind is not None
    return kind


def create_index(uri: str, column: str, kind: IndexKind, *, ranges: int = 0) -> None:
    """Build an index over all fragments with our own code, in so many ranges, and commit it."""
    rows = input_of(lance.dataset(uri), column, kind)

    def build(folder: SegmentFolder) -> BuiltSegment:
        return _in_ranges(rows, ranges, folder) if ranges else kind.build(rows, folder)

    commit_index(uri, column, build)


def input_of(
    dataset: lance.LanceDataset, column: str, kind: IndexKind, *, index_version: int = 0
) -> BuildInput:
    """Return the rows of a table as a kind wants them."""
    table = dataset.to_table(columns=[column], with_row_address=True, with_row_id=True)
    values = pa.concat_arrays(table.column(column).chunks)
    ids = table.column(_id_column(dataset, kind, index_version)).to_pylist()
    return build_input(kind, values, ids)


def commit_index(uri: str, column: str, build: Callable[[SegmentFolder], BuiltSegment]) -> None:
    """Build a segment over all fragments and commit it in place of those that there are."""
    dataset = lance.dataset(uri)
    unique = uuid.uuid4()
    place = FileAt(root=Location.parse(uri), path=f"_indices/{unique}")
    written = build(SegmentFolder(place=place))
    index = Index(
        str(unique),
        index_name(column),
        [dataset.lance_schema.field(column).id()],
        dataset.version,
        {fragment.fragment_id for fragment in dataset.get_fragments()},
        written.index_version,
        files=[IndexFile(file.path, file.size_bytes) for file in written.files],
        index_details=(written.details.type_url, written.details.value),
    )
    old = [from_index(entry) for entry in entries(uri) if entry.name == index_name(column)]
    operation = lance.LanceOperation.CreateIndex([index], old)
    lance.LanceDataset.commit(uri, operation, read_version=dataset.version)


def index_name(column: str) -> str:
    """Return the name that official releases give an index."""
    return f"{column}_idx"


def _in_ranges(rows: BuildInput, ranges: int, folder: SegmentFolder) -> BuiltSegment:
    table = pa.Table.from_batches(rows.batches)
    size = -(-table.num_rows // ranges)
    parts = [
        BTREE.build_range(
            replace(rows, batches=table.slice(n * size, size).to_batches()), n, folder
        )
        for n in range(ranges)
    ]
    return BTREE.finish_ranges(parts, rows.dtype, {}, folder)


def _id_column(dataset: lance.LanceDataset, kind: IndexKind, index_version: int) -> str:
    is_stable = dataset.has_stable_row_ids
    stored = kind.stored_ids(index_version, has_stable_row_ids=is_stable)
    return "_rowaddr" if stored is IdKind.ADDRESS else "_rowid"
