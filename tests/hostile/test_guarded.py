"""Hostile tables reach nothing outside of them, and use limited memory.

`LANCELAKE_HOSTILE=all` tries every value of every field; without it one of each, chosen by a seed.
`LANCELAKE_HOSTILE_ONLY` names the cases to try, `LANCELAKE_HOSTILE_COSTS` prints the processor time
and the peak memory of each.
"""

from __future__ import annotations

import functools
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lancelake.proto import table_pb2, transaction_pb2
from tests.hostile import indexed_table, memwal_table, rich_table
from tests.hostile.cases import (
    Outside,
    Tamper,
    blob_cases,
    external_blob,
    file_cases,
    manifest_cases,
    transaction_cases,
)
from tests.hostile.document_cases import entry_cases, index_file_cases, memwal_cases
from tests.hostile.watched import watched
from tests.support.table_surgery import edit_manifest, edit_transaction

EVERY = os.environ.get("LANCELAKE_HOSTILE") == "all"
SEED = int(os.environ.get("LANCELAKE_SEED", "20"))
SAMPLE = 40
ONLY = os.environ.get("LANCELAKE_HOSTILE_ONLY", "")
QUICK = {"client_max_retries": "0", "region": "r", "access_key_id": "a", "secret_access_key": "b"}
PEAK_MB = 500
REPO = Path(__file__).parents[2]


class Process:
    """The guarded process."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.hostile.guarded"],
            cwd=REPO,
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, **question: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, f"the process ended with {self._process.wait()}"
        found: dict[str, Any] = json.loads(answer)
        return found

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


@dataclass(frozen=True, slots=True)
class Found:
    """What became of a case: the answer of the process, accesses that were seen, and calls."""

    answer: dict[str, Any]
    seen: list[str]
    callers: int

    @property
    def problems(self) -> list[str]:
        """Everything that must not be."""
        return [
            *self.answer["reached"],
            *self.answer["failures"],
            *self.seen,
            *["the port was called"] * self.callers,
            *["too much memory"] * (self.answer["peak_mb"] > PEAK_MB),
        ]

    @property
    def only_seen(self) -> bool:
        """Whether there is no problem but accesses to the watched folder."""
        return bool(self.seen) and self.problems == self.seen

    @property
    def costs(self) -> str:
        """Processor time and peak memory."""
        return f"{self.answer['cpu_s']:.2f} s {self.answer['peak_mb']} MB"


BUILDERS = {"rows": rich_table.build, "indices": indexed_table.build, "memwal": memwal_table.build}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a function that builds the table of some actions."""

    @functools.cache
    def build(actions: str) -> Path:
        return BUILDERS[actions](tmp_path_factory.mktemp("hostile"))

    return build


@pytest.fixture
def table(tables: Callable[[str], Path]) -> Path:
    return tables("rows")


@pytest.fixture
def place(tmp_path: Path) -> Outside:
    """A folder that is none of the table's business."""
    folder = tmp_path / "outside"
    (folder / "data").mkdir(parents=True)
    (folder / "secret").write_text("secret")
    (folder / "data" / "secret").write_text("secret")
    return Outside(folder=folder, port=0)


def sample(kind: str, table: Path) -> Any:
    found: list[Any] = []
    if kind == "manifest":
        message = table_pb2.Manifest()
        edit_manifest(table, lambda m: found.append(message) or message.CopyFrom(m))
    else:
        message = transaction_pb2.Transaction()
        edit_transaction(table, lambda m: found.append(message) or message.CopyFrom(m))
    return found[0]


def chosen(cases: Iterable[tuple[str, Tamper]]) -> Iterator[tuple[str, Tamper]]:
    every = [case for case in cases if ONLY in case[0]]
    return iter(every if EVERY else random.Random(SEED).sample(every, min(SAMPLE, len(every))))


def test_the_watch_sees_what_is_reached_outside(
    table: Path, place: Outside, tmp_path: Path
) -> None:
    copy = shutil.copytree(table, tmp_path / "copy.lance")
    with watched(place.folder) as (seen, listener):
        proxy = f"http://127.0.0.1:{listener.port}"
        process = Process({"AWS_ENDPOINT_URL": proxy, "AWS_ALLOW_HTTP": "true"})
        for uri in (str(place.folder / "secret"), "s3://bucket/x"):
            external_blob(uri)(copy)
            seen.seen()
            process.ask(
                uri=str(copy),
                actions="rows",
                allowed=[],
                how={"storage_options": QUICK},
                writes=False,
            )
            assert seen.seen() or listener.callers
        process.close()
    assert listener.callers


CASES: dict[str, tuple[str, Callable[[Path, Outside], Iterator[tuple[str, Tamper]]]]] = {
    "manifest": ("rows", lambda table, out: manifest_cases(sample("manifest", table), out)),
    "transaction": (
        "rows",
        lambda table, out: transaction_cases(sample("transaction", table), out),
    ),
    "files": ("rows", lambda _, out: file_cases(out)),
    "blobs": ("rows", lambda _, out: blob_cases(out)),
    "index entries": ("indices", entry_cases),
    "index files": ("indices", index_file_cases),
    "memwal": ("memwal", memwal_cases),
}


@pytest.mark.parametrize(
    ("reached", "callers", "is_repeated"), [([], 0, True), (["open x"], 0, False), ([], 1, False)]
)
def test_a_case_is_repeated_for_accesses_that_may_be_of_another_program(
    reached: list[str], callers: int, is_repeated: bool
) -> None:
    answer = {"reached": reached, "failures": [], "peak_mb": 1}
    found = Found(answer, [" (0x40000020)"], callers)
    assert found.problems
    assert found.only_seen is is_repeated


def test_a_table_that_is_built_again_has_the_same_cases(place: Outside, tmp_path: Path) -> None:
    found = []
    for number in range(2):
        folder = tmp_path / str(number)
        folder.mkdir()
        table = indexed_table.build(folder)
        # Without the values, which are those of trained models.
        found.append([name.partition(" = ")[0] for name, _ in index_file_cases(table, place)])
    assert found[0] == found[1]


@pytest.mark.parametrize("kind", CASES)
def test_nothing_outside_is_reached(
    kind: str, tables: Callable[[str], Path], place: Outside, tmp_path: Path
) -> None:
    actions, make_cases = CASES[kind]
    table = tables(actions)
    with watched(place.folder) as (seen, listener):
        outside = Outside(folder=place.folder, port=listener.port)
        shutil.copytree(table, tmp_path / "original", symlinks=True)
        cases = make_cases(table, outside)
        scratch = tmp_path / "scratch"
        scratch.mkdir()
        proxy = f"http://127.0.0.1:{listener.port}"
        process = Process(
            {
                "AWS_ENDPOINT_URL": proxy,
                "AWS_ALLOW_HTTP": "true",
                "AWS_ACCESS_KEY_ID": "key",
                "AWS_SECRET_ACCESS_KEY": "secret",
                "HTTPS_PROXY": proxy,
                "HTTP_PROXY": proxy,
                "HOME": str(place.folder),
                "TMPDIR": str(scratch),
                # A commit says so when the cleanup that should follow it cannot be.
                "PYTHONWARNINGS": "ignore",
            }
        )
        problems = []
        for number, (name, tamper) in enumerate(chosen(cases)):
            # Files of indices never change, so those of one place are read once.
            root = table if actions == "rows" else tmp_path / f"case {number}"

            def touched(root: Path = root, tamper: Tamper = tamper, number: int = number) -> Found:
                shutil.rmtree(root, ignore_errors=True)
                shutil.copytree(tmp_path / "original", root, symlinks=True)
                tamper(root)
                seen.seen()
                listener.callers = 0
                answer = process.ask(
                    uri=str(root),
                    actions=actions,
                    allowed=[str(root), str(scratch)],
                    how={"confine_to": []},
                    writes=EVERY or number % 4 == 0,
                )
                shutil.rmtree(root)
                return Found(answer, seen.seen(), listener.callers)

            found = touched()
            if found.only_seen:
                # The watch does not tell whose access it was: other programs list folders too.
                found = touched()
            if os.environ.get("LANCELAKE_HOSTILE_COSTS"):
                print(found.costs, name, *found.problems, file=sys.stderr)
            if found.problems:
                problems.append((name, found.answer["peak_mb"], found.problems[:3]))
        process.close()
        # The next test begins with the table as it was.
        shutil.rmtree(table, ignore_errors=True)
        shutil.copytree(tmp_path / "original", table, symlinks=True)
        assert not problems, "\n".join(map(str, problems))
        assert (place.folder / "secret").read_text() == "secret"
