from __future__ import annotations

import signal
import subprocess
import sys
from types import FrameType

import pyarrow as pa
import pytest

from lancelake.commit.snapshot import Latest, open_snapshot
from lancelake.storage.location import Location
from lancelake.table.config import update_config
from lancelake.table.publish import CommitChoices, Committed
from lancelake.table.write import WriteOptions, write

ROWS = pa.table({"a": [1]})


def _failing(made: Committed) -> None:
    raise RuntimeError(f"no more after {made.snapshot.version}")


def test_every_hook_is_called_with_the_version_in_order() -> None:
    told: list[tuple[str, int]] = []
    choices = CommitChoices(
        after=(
            lambda made: told.append(("a", made.snapshot.version)),
            lambda made: told.append(("b", made.snapshot.version)),
        )
    )
    base = write(
        None,
        Location.parse("memory://after-steps/t"),
        ROWS.to_reader(),
        WriteOptions(choices=choices),
    )
    update_config(base, {"k": "v"}, choices=choices)
    assert told == [("a", 1), ("b", 1), ("a", 2), ("b", 2)]


def test_a_step_that_fails_leaves_the_commit_and_the_next_step() -> None:
    told: list[int] = []
    place = Location.parse("memory://after-failure/t")
    base = write(None, place, ROWS.to_reader(), WriteOptions())
    choices = CommitChoices(after=(_failing, lambda made: told.append(made.snapshot.version)))
    with pytest.warns(RuntimeWarning, match="version 2 .* was committed, but .* no more after 2"):
        made = update_config(base, {"k": "v"}, choices=choices)
    assert (made.version, open_snapshot(place, Latest()).version, told) == (2, 2, [2])


def test_what_a_signal_handler_raises_in_a_step_reaches_the_caller() -> None:
    def late(_number: int, _frame: FrameType | None) -> None:
        raise TimeoutError

    def interrupted(_: Committed) -> None:
        signal.raise_signal(signal.SIGALRM)

    base = write(None, Location.parse("memory://after-signal/t"), ROWS.to_reader(), WriteOptions())
    before = signal.signal(signal.SIGALRM, late)
    try:
        with pytest.raises(TimeoutError):
            update_config(base, {"k": "v"}, choices=CommitChoices(after=(interrupted,)))
    finally:
        signal.signal(signal.SIGALRM, before)


def test_a_detached_commit_is_followed_by_nothing() -> None:
    base = write(
        None, Location.parse("memory://after-detached/t"), ROWS.to_reader(), WriteOptions()
    )
    update_config(base, {"k": "v"}, choices=CommitChoices(is_detached=True, after=(_failing,)))


def test_hooks_that_a_caller_names_replace_the_installed_ones() -> None:
    config = {"lance.auto_cleanup.interval": "no number"}
    base = write(None, Location.parse("memory://after-own/t"), ROWS.to_reader(), WriteOptions())
    made = update_config(base, config, choices=CommitChoices(after=()))
    with pytest.warns(RuntimeWarning, match="version 3 .* was committed, but .* 'no number'"):
        update_config(made, {"k": "v"})


def test_opening_a_table_does_not_load_the_cleanup() -> None:
    program = (
        "import sys, lancelake.commit.snapshot\n"
        "sys.exit(any(name.startswith('lancelake.maintenance.cleanup') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
