"""A segment built by tasks is the one that is built at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import lancelake.pylance as lance
from lancelake.engine.port import Engine, Job, LocalEngine
from lancelake.errors import StorageError
from lancelake.table.index.build import IndexRun, create_index
from lancelake.table.index.parallel import BuiltByTasks
from lancelake.table.index.request import IndexRequest
from tests.support.scalar_index_tables import FILTERS, IndexedTable, entries

KINDS = {"BTREE": "i", "BITMAP": "k", "LABEL_LIST": "l"}


@pytest.mark.parametrize("kind", KINDS)
def test_groups_of_fragments_are_merged_into_one_segment(
    table: lance.LanceDataset, kind: str
) -> None:
    column = KINDS[kind]
    run = IndexRun(builder=BuiltByTasks(LocalEngine(parallelism=2)))
    create_index(table._snapshot, IndexRequest(column=column, kind=kind), run)

    found = IndexedTable(table.uri)
    assert [w for text in FILTERS[column] if (w := found.difference(text, column))] == []
    (entry,) = entries(table.uri)
    assert {path.parent.name for path in Path(table.uri, "_indices").glob("*/*")} == {
        str(entry.uuid)
    }


class FailsAfterOne:
    """An engine that runs one task of a job, and then fails."""

    parallelism = 2

    def run(self, job: Job) -> Iterator[bytes]:
        """Yield the result of the first task."""
        yield job.tasks[0].run()
        raise StorageError("the connection was lost")


class Counted:
    """An engine that counts its tasks."""

    parallelism = 2

    def __init__(self) -> None:
        self.tasks = 0

    def run(self, job: Job) -> Iterator[bytes]:
        """Yield the results of all tasks."""
        self.tasks += len(job.tasks)
        return LocalEngine(parallelism=1).run(job)


def build(uri: str, engine: Engine) -> None:
    run = IndexRun(builder=BuiltByTasks(engine))
    create_index(lance.dataset(uri)._snapshot, IndexRequest(column="i", kind="BITMAP"), run)


def groups(uri: str) -> int:
    """Return the number of tasks of a build."""
    engine = Counted()
    build(uri, engine)
    lance.dataset(uri).drop_index("i_idx")
    return engine.tasks


def test_parts_that_a_failed_build_finished_are_not_built_again(table: lance.LanceDataset) -> None:
    every, engine = groups(table.uri), Counted()
    with pytest.raises(StorageError):
        build(table.uri, FailsAfterOne())
    build(table.uri, engine)
    assert engine.tasks == every - 1
    found = IndexedTable(table.uri)
    assert [w for text in FILTERS["i"] if (w := found.difference(text, "i"))] == []


def test_a_part_that_was_damaged_since_is_built_again(table: lance.LanceDataset) -> None:
    every, engine = groups(table.uri), Counted()
    before = set(Path(table.uri, "_indices").glob("*/*.lance"))
    with pytest.raises(StorageError):
        build(table.uri, FailsAfterOne())
    (part,) = set(Path(table.uri, "_indices").glob("*/*.lance")) - before
    part.write_bytes(part.read_bytes()[:-1])
    build(table.uri, engine)
    assert engine.tasks == every


def test_parts_of_rows_that_changed_since_are_built_again(table: lance.LanceDataset) -> None:
    with pytest.raises(StorageError):
        build(table.uri, FailsAfterOne())
    first = table.get_fragments()[0].fragment_id
    lance.dataset(table.uri).delete(f"_rowaddr = {first << 32}")
    every, engine = groups(table.uri), Counted()
    build(table.uri, engine)
    assert engine.tasks == every


class LosesItsParts:
    """An engine whose first results are removed, as by another build of the same index."""

    parallelism = 2

    def __init__(self, uri: str) -> None:
        self._indices = Path(uri, "_indices")
        self.jobs = 0

    def run(self, job: Job) -> Iterator[bytes]:
        """Yield the results of all tasks."""
        self.jobs += 1
        results = list(LocalEngine(parallelism=1).run(job))
        for path in self._indices.glob("*/*") if self.jobs == 1 else ():
            path.unlink()
        return iter(results)


def test_a_build_whose_parts_were_removed_is_repeated(table: lance.LanceDataset) -> None:
    engine = LosesItsParts(table.uri)
    build(table.uri, engine)
    assert engine.jobs == 2
    found = IndexedTable(table.uri)
    assert [w for text in FILTERS["i"] if (w := found.difference(text, "i"))] == []
