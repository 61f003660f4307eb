"""Completion of columns, tags and branches in the shell."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.cli.tables import complete_branches, complete_columns, complete_refs


@pytest.fixture
def context(tmp_path: Path) -> SimpleNamespace:
    dataset = lance.write_dataset(pa.table({"id": [1], "index": [2], "s": ["a"]}), tmp_path / "t")
    dataset.tags.create("release", 1)
    dataset.create_branch("retry")
    return SimpleNamespace(
        params={"uri": str(tmp_path / "t"), "options": None, "at": None}, args=[]
    )


def test_columns_continue_a_list(context: SimpleNamespace) -> None:
    assert complete_columns(context, "i") == ["id", "index"]
    assert complete_columns(context, "s,ind") == ["s,index"]


def test_tags_and_branches(context: SimpleNamespace) -> None:
    assert complete_refs(context, "re") == ["release", "retry:"]
    assert complete_branches(context, "") == ["retry"]


def test_a_table_that_does_not_exist_completes_nothing(tmp_path: Path) -> None:
    context = SimpleNamespace(params={"uri": str(tmp_path / "none"), "options": None}, args=[])
    assert complete_columns(context, "") == []
    assert complete_refs(context, "") == []


def test_the_shell_gets_columns(context: SimpleNamespace) -> None:
    words = f"lancelake head {context.params['uri']} -c i"
    environment = {"COMP_WORDS": words, "COMP_CWORD": "4", "_LANCELAKE_COMPLETE": "complete_bash"}
    done = subprocess.run(
        [Path(sys.executable).parent / "lancelake"],
        env=os.environ | environment,
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == ["id", "index"]
