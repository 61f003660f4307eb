"""The command that serves the explorer."""

from __future__ import annotations

import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pyarrow as pa
import pytest

import lancelake
from tests.cli.conftest import Run


def test_the_page_is_served_at_the_printed_address(tmp_path: Path) -> None:
    lancelake.write_dataset(pa.table({"a": [1]}), tmp_path / "t.lance")
    command = [sys.executable, "-m", "lancelake", "ui", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            address = next(line for line in server.stdout if line.startswith("http")).strip()
            base, _, token = address.partition("/#token=")
            assert base.startswith("http://127.0.0.1:")
            with urllib.request.urlopen(f"{base}/") as page:
                assert b"Lancelake" in page.read()
            asked = urllib.request.Request(
                f"{base}/api/tables", headers={"Authorization": f"Bearer {token}"}
            )
            with urllib.request.urlopen(asked) as answer:
                assert b"t.lance" in answer.read()
            with pytest.raises(urllib.error.HTTPError, match="401"):
                urllib.request.urlopen(f"{base}/api/tables")
        finally:
            server.send_signal(signal.SIGINT)
    assert server.returncode == 0


def test_without_the_extra_its_installation_is_named(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "starlette", None)
    result = run("ui", tmp_path)
    assert result.exit_code != 0 and "lancelake[ui]" in result.output
