"""Concurrent writers of ours and of official Lance on one table: no lost or duplicate rows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.maintenance.check.finding import Severity
from lancelake.maintenance.check.run import check
from lancelake.storage.location import Location
from tests.support.mixed_writer import SCHEMA
from tests.support.official import RELEASES, OfficialPool, interpreter, is_installed
from tests.support.s3_server import s3_server

REPO = Path(__file__).resolve().parents[2]
SCRIPT = REPO / "tests" / "support" / "mixed_writer.py"
SECONDS = os.environ.get("LANCELAKE_SOAK_SECONDS")
FIRST_ROWS = 120
OURS = "ours"
# Nobody is stuck: every writer ends in time.
PATIENCE_S = 300 + float(SECONDS or 0)
# A soak has eight writers, half of them of one official release.
PAIRS = 2 if SECONDS is None else 4
S3_CREWS = [[OURS, *RELEASES]] if SECONDS is None else [[OURS, r] * PAIRS for r in RELEASES]


@dataclass
class Expected:
    """What the logs of all writers say about the rows of the table."""

    values: dict[int, int] = field(default_factory=dict)
    deleted: set[int] = field(default_factory=set)
    uncertain: set[int] = field(default_factory=set)
    tags: dict[str, int] = field(default_factory=dict)
    done: Counter[str] = field(default_factory=Counter)
    refused: list[str] = field(default_factory=list)


def run_writers(location: Location, writers: list[str], operations: int) -> list[list[Any]]:
    """Let all writers loose at the same time; return their logs."""
    processes = []
    for number, release in enumerate(writers):
        given = {
            "library": "lancelake.pylance" if release == OURS else "lance",
            "uri": location.uri,
            "options": location.storage_options,
            "writer": number,
            "seed": number,
            "operations": operations,
            "seconds": None if SECONDS is None else float(SECONDS),
            "rows": list(range(number, FIRST_ROWS, len(writers))),
        }
        python = sys.executable if release == OURS else str(interpreter(release))
        processes.append(
            subprocess.Popen(
                [python, str(SCRIPT), json.dumps(given)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env={**os.environ, "PYTHONPATH": f"{REPO / 'src'}:{REPO}"},
            )
        )
    ready = [_ready(process) for process in processes]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    logs = []
    for process, first in zip(processes, ready, strict=True):
        out, err = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, err
        logs.append([json.loads(line) for line in (first + out).splitlines()])
    return logs


def _ready(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def expected(logs: list[list[Any]]) -> Expected:
    """Put together what was acknowledged, and what may or may not have happened."""
    found = Expected(values=dict.fromkeys(range(FIRST_ROWS), -1))
    for log in logs:
        begun: Any = None
        for line in log:
            if "begun" in line:
                begun = line
            elif "done" in line:
                _apply(found, begun)
            elif "failed" in line:
                found.refused.append(line["error"])
                found.uncertain |= set(begun.get("ids", ()))
    return found


def _apply(found: Expected, line: Any) -> None:
    found.done[line["kind"]] += 1
    match line["kind"]:
        case "append":
            found.values |= dict.fromkeys(line["ids"], 0)
        case "delete":
            found.deleted |= set(line["ids"])
        case "update":
            found.values |= dict.fromkeys(line["ids"], line["value"])
        case "tag":
            found.tags[line["name"]] = line["version"]


def ensure_as_told(rows: pa.Table, told: Expected) -> None:
    """Every row that was acknowledged is there once, none that was deleted is."""
    counts = Counter(rows["id"].to_pylist())
    certain = {i: v for i, v in told.values.items() if i not in told.deleted | told.uncertain}
    found = dict(zip(rows["id"].to_pylist(), rows["value"].to_pylist(), strict=True))
    assert [i for i, n in counts.items() if n > 1] == []
    assert (told.deleted - told.uncertain) & set(counts) == set()
    assert {i: found.get(i) for i in certain} == certain
    assert set(counts) <= set(certain) | told.uncertain


def ensure_sound(location: Location, told: Expected, officials: OfficialPool) -> None:
    """The history has no holes, and every judge finds the table in order, with the same rows."""
    options = location.storage_options
    ds = lance.dataset(location.uri, storage_options=options)
    rows = ds.to_table()
    ensure_as_told(rows, told)
    versions = [v["version"] for v in ds.versions()]
    assert versions == list(range(1, len(versions) + 1))
    assert {name: tag["version"] for name, tag in ds.tags.list().items()} == told.tags
    problems = [f for f in check(location, data=True, versions="all") if _is_grave(f)]
    assert problems == []
    for release in _installed():
        body = officials(release).run(location.uri, JUDGE, options=options)
        assert sorted(body["ids"]) == sorted(rows["id"].to_pylist())
        assert body["versions"] == versions
        assert set(body["tags"]) == set(told.tags)


def _is_grave(finding: Any) -> bool:
    return finding.severity is Severity.ERROR


JUDGE = """
ds = lance.dataset(uri, storage_options=options)
ds.validate()
result = {
    "ids": ds.to_table(columns=["id"])["id"].to_pylist(),
    "versions": [v["version"] for v in ds.versions()],
    "tags": list(ds.tags.list()),
}
"""


def _installed() -> list[str]:
    return [release for release in RELEASES if is_installed(release)]


def _start(location: Location) -> None:
    rows = pa.table([list(range(FIRST_ROWS)), [-1] * FIRST_ROWS], schema=SCHEMA)
    lance.write_dataset(
        rows, location.uri, max_rows_per_file=60, storage_options=location.storage_options
    )


@pytest.mark.parametrize("release", RELEASES)
def test_nothing_is_lost_among_our_writers_and_official_ones_on_disk(
    release: str, officials: OfficialPool, tmp_path: Path
) -> None:
    _need(release)
    location = Location.parse(tmp_path / "table.lance")
    _start(location)
    told = expected(run_writers(location, [OURS, release] * PAIRS, operations=10))
    _report(told)
    ensure_sound(location, told, officials)
    assert {"append", "delete", "update", "tag"} <= set(told.done)


@pytest.mark.parametrize("crew", S3_CREWS, ids=" ".join)
def test_nothing_is_lost_among_our_writers_and_official_ones_on_s3(
    crew: list[str], officials: OfficialPool
) -> None:
    for release in set(crew) - {OURS}:
        _need(release)
    with s3_server() as server:
        uri = f"s3://{server.new_bucket()}/table.lance"
        location = Location.parse(uri, server.storage_options)
        _start(location)
        told = expected(run_writers(location, crew, operations=6))
        _report(told)
        ensure_sound(location, told, officials)


def _report(told: Expected) -> None:
    """Say what a soak did; `pytest -s` shows it."""
    refusals = Counter(error.partition(":")[0] for error in told.refused)
    print(f"done {dict(told.done)}, refused {dict(refusals)}")


def _need(release: str) -> None:
    if not is_installed(release):
        pytest.skip(f"official release {release} is not installed under .interop/")
