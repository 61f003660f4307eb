"""Checks of values run as tasks that can be pickled, on any engine."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path

from lancelake.engine.port import Job
from lancelake.maintenance.check.run import check
from lancelake.storage.location import Location
from tests.support.sound_tables import findings


class Elsewhere:
    """Runs tasks as another process would: from their bytes."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []

    @property
    def parallelism(self) -> int:
        """One after the other."""
        return 1

    def run(self, job: Job) -> Iterator[bytes]:
        """Run a job."""
        self.jobs.append(job)
        for task in job.tasks:
            yield pickle.loads(pickle.dumps(task)).run()


def test_every_fragment_is_a_task(sound: Path) -> None:
    engine = Elsewhere()
    found = list(check(Location.parse(sound), data=True, engine=engine))
    sizes = [len(job.tasks) for job in engine.jobs]
    # The ends of all files in one task, then fragments, of which the branch shares three, then
    # the segments of indices.
    assert (found, sizes) == ([], [1, 3, 1, 1, 4, 1])


def test_an_engine_finds_what_threads_find(table: Path) -> None:
    for path in (table / "data").glob("*.lance"):
        path.write_bytes(path.read_bytes()[:-100] + bytes(100))
    elsewhere = list(check(Location.parse(table), data=True, engine=Elsewhere()))
    assert elsewhere == findings(table, data=True)
    assert "data-file-damaged" in {f.code for f in elsewhere}


def test_nothing_is_run_unless_values_are_to_be_read(sound: Path) -> None:
    engine = Elsewhere()
    list(check(Location.parse(sound), engine=engine))
    assert engine.jobs == []
