"""Queries of the explorer run in a process with limited memory."""

from __future__ import annotations

import pickle
import subprocess
import sys

from tests.unit.ui.conftest import PATIENCE_S, Ask

TOO_LARGE = "length(replace(repeat('x', 60000), 'x', repeat('x', 60000)))"


def test_a_query_that_needs_too_much_memory_ends_its_process_only(
    send: Ask, photos_id: str
) -> None:
    path = f"tables/{photos_id}/sql"
    refused = send(path, {"query": f"SELECT {TOO_LARGE}"}, status=400)
    assert "lack of memory" in refused["problem"]
    assert send(path, {"query": "SELECT 1 AS one"})["rows"]


def test_conditions_of_a_user_run_there_too(ask: Ask, photos_id: str) -> None:
    refused = ask(f"tables/{photos_id}/count", status=400, filter=f"{TOO_LARGE} = 1")
    assert "lack of memory" in refused["problem"]


def test_the_process_ends_with_the_server() -> None:
    command = [sys.executable, "-m", "lancelake.ui.query_process"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE)
    try:
        process.communicate(pickle.dumps(()), timeout=PATIENCE_S)
    finally:
        process.kill()
    assert process.returncode == 0
