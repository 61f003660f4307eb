"""The recipe for Ray works: tasks read fragments, and write fragments for one commit."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.libraries import recipes

ray = pytest.importorskip("ray", reason="ray is not installed: make test-libraries")


def test_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    try:
        ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    except Exception as error:  # noqa: BLE001  # Ray gives itself 30 seconds and raises this
        pytest.skip(f"Ray did not start: {error}")
    try:
        assert recipes.run("Ray")["numbers"].version == 2
    finally:
        ray.shutdown()
