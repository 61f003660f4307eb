"""Messages to executors: read by the same release, refused by others with a clear error."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle

from lancelake import __version__
from lancelake.engine import port
from lancelake.errors import ReleaseMismatchError
from lancelake.format.fragment import Fragment
from lancelake.format.ids import FragmentId
from lancelake.spark.tasks.on_executors import (
    Portable,
    portable,
    sealed_fragments,
    unsealed_fragments,
)

_CALL = "import pickle, sys; print(pickle.loads(sys.stdin.buffer.read())())"


class Traveler(Portable):
    """An object with a member."""

    def __init__(self, member: int) -> None:
        self.member = member

    def __call__(self) -> int:
        """Return the member."""
        return self.member


def dumped(value: object) -> bytes:
    pickled: bytes = cloudpickle.dumps(value)  # type: ignore[no-untyped-call]
    return pickled


def called_with(package: Path, message: bytes) -> subprocess.CompletedProcess[bytes]:
    """Load and call what a message holds in an interpreter that finds this package first."""
    environment = {**os.environ, "PYTHONPATH": str(package)}
    command = [sys.executable, "-c", _CALL]
    return subprocess.run(command, input=message, capture_output=True, env=environment, check=False)


def older_release(folder: Path) -> Path:
    """Make a package of a release that knows no envelope."""
    package = folder / "lancelake"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "errors.py").write_text(
        "class UnsupportedError(Exception):\n"
        "    def __init__(self, problem, action):\n"
        "        super().__init__(f'{problem}. {action}')\n"
    )
    return folder


def test_a_function_travels_to_the_same_release() -> None:
    found = cloudpickle.loads(dumped(portable(lambda: 7)))
    assert found() == 7


def test_an_object_travels_to_the_same_release() -> None:
    assert cloudpickle.loads(dumped(Traveler(7))).member == 7


@pytest.mark.parametrize("value", [portable(lambda: 7), Traveler(7)], ids=["function", "object"])
def test_a_worker_of_another_release_names_both(
    value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = dumped(value)
    monkeypatch.setattr(port, "__version__", "7.8.9")
    with pytest.raises(ReleaseMismatchError, match=rf"{__version__}.*7\.8\.9"):
        cloudpickle.loads(message)()


def test_a_worker_of_a_release_without_envelopes_is_asked_to_upgrade(tmp_path: Path) -> None:
    found = called_with(older_release(tmp_path), dumped(portable(lambda: 7)))
    assert found.returncode
    last = found.stderr.decode().strip().splitlines()[-1]
    assert last.startswith("lancelake.errors.UnsupportedError: the driver runs lancelake ")
    assert __version__ in last
    assert "older release" in last


def test_fragments_of_a_worker_of_another_release_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    message = sealed_fragments([Fragment(id=FragmentId(3), files=())])
    assert [f.id for f in unsealed_fragments([message])] == [3]
    monkeypatch.setattr(port, "__version__", "7.8.9")
    with pytest.raises(ReleaseMismatchError):
        unsealed_fragments([message])
