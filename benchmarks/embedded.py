"""Benchmark of tables without Spark, compared with delta-rs and PyIceberg.

.interop/peers/bin/python -m benchmarks.embedded --rows 100000
"""

from __future__ import annotations

import argparse
import os
import shutil
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.dataset

import lancelake
from benchmarks import tables
from benchmarks.measure import Case, compare
from benchmarks.processes import MissingPeerError, print_result, skipping

ROWS = 5_000_000
_COLUMNS = 6
_TARGET = 1.0
_SHORT, _LONG = 15, 5
_FOLDER = tables.ROOT / "embedded"


class Format(Protocol):
    """What is asked of each library; `place` is a folder."""

    label: str

    def write(self, place: Path, rows: pa.Table) -> object: ...
    def append(self, place: Path, rows: pa.Table) -> object: ...
    def read(self, place: Path, columns: list[str] | None, key: tuple[int, int] | None) -> int: ...
    def delete(self, place: Path, below: int) -> object: ...
    def upsert(self, place: Path, rows: pa.Table) -> object: ...
    def count(self, place: Path) -> int: ...


class Lance:
    """Lancelake."""

    label = "Lancelake"

    def write(self, place: Path, rows: pa.Table) -> None:
        lancelake.write_dataset(rows, place)

    def append(self, place: Path, rows: pa.Table) -> None:
        lancelake.write_dataset(rows, place, mode="append")

    def read(self, place: Path, columns: list[str] | None, key: tuple[int, int] | None) -> int:
        condition = None if key is None else f"key >= {key[0]} AND key < {key[1]}"
        return int(lancelake.dataset(place).to_table(columns, filter=condition).num_rows)

    def delete(self, place: Path, below: int) -> None:
        lancelake.dataset(place).delete(f"key < {below}")

    def upsert(self, place: Path, rows: pa.Table) -> None:
        merge = lancelake.dataset(place).merge_insert("key")
        merge.when_matched_update_all().when_not_matched_insert_all().execute(rows)

    def count(self, place: Path) -> int:
        return int(lancelake.dataset(place).count_rows())


class Delta:
    """delta-rs."""

    def __init__(self) -> None:
        import deltalake  # noqa: PLC0415  # may be absent

        self._module = deltalake
        self.label = f"delta-rs {deltalake.__version__}"

    def write(self, place: Path, rows: pa.Table) -> None:
        self._module.write_deltalake(place, rows)

    def append(self, place: Path, rows: pa.Table) -> None:
        self._module.write_deltalake(place, rows, mode="append")

    def read(self, place: Path, columns: list[str] | None, key: tuple[int, int] | None) -> int:
        field = pa.dataset.field("key")
        condition = None if key is None else (field >= key[0]) & (field < key[1])
        table = self._module.DeltaTable(place).to_pyarrow_dataset()
        return int(table.to_table(columns, filter=condition).num_rows)

    def delete(self, place: Path, below: int) -> None:
        self._module.DeltaTable(place).delete(f"key < {below}")

    def upsert(self, place: Path, rows: pa.Table) -> None:
        merge = self._module.DeltaTable(place).merge(
            rows, "t.key = s.key", source_alias="s", target_alias="t"
        )
        merge.when_matched_update_all().when_not_matched_insert_all().execute()

    def count(self, place: Path) -> int:
        return int(self._module.DeltaTable(place).count())


class Iceberg:
    """PyIceberg, with a catalog in SQLite beside each table."""

    def __init__(self) -> None:
        import pyiceberg.catalog.sql  # noqa: PLC0415  # may be absent

        self._catalog_of = pyiceberg.catalog.sql.SqlCatalog
        self.label = f"PyIceberg {version('pyiceberg')}"

    def _catalog(self, place: Path) -> Any:
        uri = f"sqlite:///{place.resolve()}/catalog.db"
        return self._catalog_of("bench", uri=uri, warehouse=f"file://{place.resolve()}")

    def _table(self, place: Path) -> Any:
        return self._catalog(place).load_table("db.rows")

    def write(self, place: Path, rows: pa.Table) -> None:
        place.mkdir(parents=True)
        catalog = self._catalog(place)
        catalog.create_namespace("db")
        catalog.create_table("db.rows", schema=rows.schema).append(rows)

    def append(self, place: Path, rows: pa.Table) -> None:
        self._table(place).append(rows)

    def read(self, place: Path, columns: list[str] | None, key: tuple[int, int] | None) -> int:
        options: dict[str, Any] = {} if columns is None else {"selected_fields": tuple(columns)}
        if key is not None:
            options["row_filter"] = f"key >= {key[0]} AND key < {key[1]}"
        return int(self._table(place).scan(**options).to_arrow().num_rows)

    def delete(self, place: Path, below: int) -> None:
        self._table(place).delete(f"key < {below}")

    def upsert(self, place: Path, rows: pa.Table) -> None:
        self._table(place).upsert(rows, join_cols=["key"])

    def count(self, place: Path) -> int:
        return int(self._table(place).scan().count())


def main() -> None:
    """Report every case, with each peer in turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    for library in (Delta, Iceberg):
        with skipping():
            for case in cases(_loaded(library), options.rows):
                if options.only in case.name:
                    print_result(compare(case))
    shutil.rmtree(_FOLDER, ignore_errors=True)


def cases(peer: Format, rows: int) -> Iterator[Case]:
    """Yield the comparisons with one peer; every call opens the table."""
    ours, places = Lance(), (_FOLDER / "ours", _FOLDER / "peer")
    every = _batch(np.arange(rows))
    few, upserted = _batch(np.arange(rows, rows + 1000)), _upserted(rows)

    def clear() -> None:
        for place in places:
            shutil.rmtree(place, ignore_errors=True)

    def put_back() -> None:
        clear()
        for place in places:
            shutil.copytree(_first(place), place, copy_function=_linked)

    def case(
        name: str,
        rounds: int,
        work: Callable[[Format, Path], object],
        before: Callable[[], object] | None = None,
    ) -> Case:
        return Case(
            name=name,
            target=_TARGET,
            before=before,
            ours=lambda: work(ours, places[0]),
            official=lambda: work(peer, places[1]),
            rounds=rounds,
            peer=peer.label,
        )

    yield case(f"write {rows:,} rows", _LONG, lambda lib, at: lib.write(at, every), clear)
    clear()
    for library, place in zip((ours, peer), places, strict=True):
        library.write(place, every)
        shutil.rmtree(_first(place), ignore_errors=True)
        shutil.copytree(place, _first(place))
    yield case("read all", _LONG, lambda lib, at: lib.read(at, None, None))
    yield case("read 2 of 6 columns", _LONG, lambda lib, at: lib.read(at, ["key", "c1"], None))
    point, tenth = (rows // 2, rows // 2 + 1), (rows // 2, rows // 2 + rows // 10)
    yield case("read one row by its key", _SHORT, lambda lib, at: lib.read(at, None, point))
    yield case("read 10 % by a range of keys", _LONG, lambda lib, at: lib.read(at, None, tenth))
    yield case("append 1,000 rows", _SHORT, lambda lib, at: lib.append(at, few))
    yield case("delete 1 % and count", 3, lambda lib, at: _deleted(lib, at, rows), put_back)
    name = f"upsert {len(upserted):,} rows and count"
    yield case(name, 3, lambda lib, at: _merged(lib, at, upserted), put_back)


def _deleted(library: Format, place: Path, rows: int) -> int:
    library.delete(place, rows // 100)
    return library.count(place)


def _merged(library: Format, place: Path, rows: pa.Table) -> int:
    library.upsert(place, rows)
    return library.count(place)


def _first(place: Path) -> Path:
    """Return where a copy of the table before all changes is."""
    return place.with_name(f"{place.name}-first")


def _linked(source: str, target: str) -> None:
    """Link a file that never changes; the catalog in SQLite does."""
    if source.endswith(".db"):
        shutil.copy2(source, target)
    else:
        os.link(source, target)


def _upserted(rows: int) -> pa.Table:
    """Return 900 keys of the table, spread over it, and 100 new ones."""
    known = np.arange(900) * (rows // 900)
    return _batch(np.concatenate([known, np.arange(rows, rows + 100)]))


def _batch(keys: np.ndarray) -> pa.Table:
    return pa.Table.from_batches([tables.plain_batch(keys, _COLUMNS)])


def _loaded(library: Callable[[], Format]) -> Format:
    try:
        return library()
    except ImportError as error:
        raise MissingPeerError(f"{error.name} is not installed") from error


if __name__ == "__main__":
    main()
