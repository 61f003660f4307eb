from __future__ import annotations

from pathlib import Path

import pytest

from lancelake.errors import InvalidRequestError, WriterFencedError
from lancelake.format.index_meta import MergedGeneration
from lancelake.format.operations import Overwrite
from lancelake.memwal.setup import carried
from lancelake.table.publish import CommitChoices, new_transaction, publish
from tests.support.memwal_tables import (
    REGION,
    end_without_retirement,
    new_table,
    newest,
    rows,
    writer,
)


@pytest.fixture
def uri(tmp_path: Path) -> Path:
    """Return a table with a MemWAL."""
    new_table(tmp_path / "t", (1, "base"))
    return tmp_path / "t"


def test_regions_with_rows_are_not_continued(uri: Path) -> None:
    writer(newest(uri)).put(rows((1, "tail")))
    end_without_retirement(uri)
    with pytest.raises(InvalidRequestError, match="of an earlier MemWAL"):
        carried(newest(uri))


def test_a_writer_of_an_empty_region_is_fenced(uri: Path) -> None:
    old = writer(newest(uri))
    end_without_retirement(uri)
    assert carried(newest(uri)) == ()
    with pytest.raises(WriterFencedError):
        old.put(rows((1, "late")))


def test_generations_before_count_as_merged(uri: Path) -> None:
    with writer(newest(uri)) as mine:
        mine.put(rows((1, "flushed")))
    from_overwrite(uri)
    assert carried(newest(uri)) == (MergedGeneration(region_id=REGION, generation=1),)


def from_overwrite(uri: Path) -> None:
    """Overwrite the table; a process that stops then retires no region."""
    base = newest(uri)
    choices = CommitChoices(after=())
    operation = Overwrite(fragments=(), schema=base.manifest.schema)
    publish(base, new_transaction(operation, base.version, choices), choices)
