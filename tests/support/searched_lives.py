"""Lives of tables with indices: rows are added, deleted, updated and moved after the build."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, assert_never

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

import lancelake.pylance as lance
from tests.support.searched_tables import add_segment

NAN = float("nan")
KINDS = {
    "i": ("BTREE", "BITMAP", "ZONEMAP", "BLOOMFILTER"),
    "f": ("BTREE", "BITMAP", "ZONEMAP", "BLOOMFILTER"),
    "s": ("BTREE", "BITMAP", "ZONEMAP", "BLOOMFILTER", "NGRAM"),
    "w": ("NGRAM", "BTREE"),
    "b": ("BITMAP", "BTREE", "ZONEMAP"),
    "d": ("BTREE", "ZONEMAP", "BLOOMFILTER"),
    "l": ("LABEL_LIST",),
    "st.x": ("BTREE", "BITMAP", "ZONEMAP"),
    "st.s": ("BTREE", "NGRAM"),
}
# Small pages and zones, so that there are several in a small table.
_PARAMETERS: dict[str, dict[str, Any]] = {
    "BTREE": {"zone_size": 4},
    "ZONEMAP": {"rows_per_zone": 4},
    "BLOOMFILTER": {"number_of_items": 4},
}
_UPDATES = ({"i": "i + 1"}, {"f": "-f"}, {"s": "'ab'"}, {"w": "'pie'"}, {"b": "NOT b"})
_SOME_ROWS = ("n % 3 = 1", "n < 8", "i = 2", "n BETWEEN 12 AND 30", "s IS NULL")


@dataclass(frozen=True, slots=True)
class Append:
    """More rows, in a fragment that no index covers."""

    count: int
    seed: int


@dataclass(frozen=True, slots=True)
class AddIndex:
    """A segment for all fragments that the index does not cover yet."""

    column: str
    kind: str
    is_by_address: bool


@dataclass(frozen=True, slots=True)
class Delete:
    """Rows that are deleted."""

    where: str


@dataclass(frozen=True, slots=True)
class Update:
    """Rows that are written again, with other values."""

    column: str
    where: str


@dataclass(frozen=True, slots=True)
class Upsert:
    """Rows of a source that replace those of the same number."""

    count: int
    seed: int


@dataclass(frozen=True, slots=True)
class Compact:
    """Small fragments are joined; indices of addresses are changed, or left as they are."""

    is_deferred: bool


@dataclass(frozen=True, slots=True)
class Restore:
    """A version before the last one becomes the newest."""

    back: int


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch is created, and what follows happens to it."""

    back: int


@dataclass(frozen=True, slots=True)
class Refresh:
    """Rows that indices do not cover are added to them."""


Change = Append | AddIndex | Delete | Update | Upsert | Compact | Restore | Refresh
Step = Change | Branch


@dataclass(frozen=True, slots=True)
class Life:
    """What happens to a table."""

    has_stable_row_ids: bool
    first_rows: int
    rows_per_file: int
    steps: tuple[Step, ...]


@st.composite
def _add_index(draw: st.DrawFn) -> AddIndex:
    column = draw(st.sampled_from(sorted(KINDS)))
    kind = draw(st.sampled_from(KINDS[column]))
    return AddIndex(column, kind, kind == "BTREE" and draw(st.booleans()))


_CHANGES: st.SearchStrategy[Step] = st.one_of(
    st.builds(Append, st.integers(1, 20), st.integers(0, 99)),
    st.builds(Delete, st.sampled_from(_SOME_ROWS)),
    st.builds(Update, st.sampled_from("ifswb"), st.sampled_from(_SOME_ROWS)),
    st.builds(Upsert, st.integers(1, 10), st.integers(0, 99)),
    st.builds(Compact, st.booleans()),
    st.builds(Restore, st.integers(1, 3)),
    st.builds(Branch, st.integers(0, 2)),
    st.builds(Refresh),
    _add_index(),
)


@st.composite
def lives(draw: st.DrawFn) -> Life:
    """Draw a life with a few indices, built at different times."""
    first = draw(st.lists(_add_index(), min_size=2, max_size=6))
    later = draw(st.lists(_CHANGES, max_size=8))
    return Life(
        has_stable_row_ids=draw(st.booleans()),
        first_rows=draw(st.integers(1, 60)),
        rows_per_file=draw(st.sampled_from([7, 20])),
        steps=(*first, *later),
    )


def rows(first: int, count: int, seed: int) -> pa.Table:
    """Return rows with nulls and edges in every column; `n` numbers the rows."""
    chance = np.random.default_rng(seed)

    def drawn(pool: list[Any], dtype: pa.DataType) -> pa.Array:
        return pa.array([pool[place] for place in chance.integers(0, len(pool), count)], dtype)

    words = ["apple pie 1", "APPLE", "pie", "é", "ab", "piea11", "", None]
    texts = ["", "a", "ab", "abc", "b", "é", "pie", None]
    members = [{"x": x, "s": s} for x in (-1, 2, None) for s in ("ab", "apple1", None)]
    return pa.table(
        {
            "n": pa.array(range(first, first + count), pa.int64()),
            "i": drawn([-3, -1, 0, 1, 2, 5, None], pa.int32()),
            "f": drawn([0.0, -0.0, NAN, 1.5, -1.5, float("inf"), None], pa.float64()),
            "s": drawn(texts, pa.string()),
            "w": drawn(words, pa.string()),
            "b": drawn([True, False, None], pa.bool_()),
            "d": drawn([-1, 0, 1, 2, None], pa.date32()),
            "l": drawn([["x"], ["x", "y"], [], None, [None, "z"], [None]], pa.list_(pa.string())),
            "st": drawn([*members, None], pa.struct([("x", pa.int64()), ("s", pa.string())])),
        }
    )


def live(life: Life, uri: str) -> lance.LanceDataset:
    """Let it all happen, and return the newest version."""
    lance.write_dataset(
        rows(0, life.first_rows, 0),
        uri,
        max_rows_per_file=life.rows_per_file,
        enable_stable_row_ids=life.has_stable_row_ids,
    )
    for number, step in enumerate(life.steps):
        if isinstance(step, Branch):
            uri = _branched(lance.dataset(uri), f"b{number}", step.back)
        else:
            _take(step, uri)
    return lance.dataset(uri)


def _branched(table: lance.LanceDataset, name: str, back: int) -> str:
    """Create a branch at the newest version or one before it, and return its URI."""
    known = sorted(entry["version"] for entry in table.versions())
    return table.create_branch(name, known[max(0, len(known) - 1 - back)]).uri


def _take(step: Change, uri: str) -> None:
    table = lance.dataset(uri)
    match step:
        case Append():
            lance.write_dataset(
                rows(1000 + table.version, step.count, step.seed), uri, mode="append"
            )
        case AddIndex():
            _index(table, uri, step)
        case Delete():
            table.delete(step.where)
        case Update():
            (change,) = [each for each in _UPDATES if step.column in each]
            table.update(change, where=step.where)
        case Upsert():
            merge = table.merge_insert("n").when_matched_update_all()
            merge.when_not_matched_insert_all().execute(rows(0, step.count, step.seed))
        case Compact():
            deferred = step.is_deferred and not table.has_stable_row_ids
            table.optimize.compact_files(defer_index_remap=deferred)
        case Restore():
            known = sorted(entry["version"] for entry in table.versions())
            lance.dataset(uri, version=known[max(0, len(known) - 1 - step.back)]).restore()
        case Refresh():
            table.optimize.optimize_indices()
        case _:
            assert_never(step)


def _index(table: lance.LanceDataset, uri: str, step: AddIndex) -> None:
    by_address = step.is_by_address and table.has_stable_row_ids
    name = f"{step.column}_{step.kind}{'_v1' if by_address else ''}".replace(".", "_")
    covered: set[int] = set()
    for entry in table.list_indices():
        if entry["name"] == name:
            covered |= set(entry["fragment_ids"])
    open_fragments = {f.fragment_id for f in table.get_fragments()} - covered
    add_segment(
        uri,
        step.column,
        step.kind,
        name=name,
        fragments=open_fragments,
        index_version=1 if by_address else None,
        **_PARAMETERS.get(step.kind, {}),
    )
