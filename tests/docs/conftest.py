"""An S3 server with what the pages read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lancelake
from tests.support.s3_server import S3Server, s3_server


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server


@pytest.fixture
def bucket(s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return a bucket with what the pages read, which the environment gives access to."""
    for name, value in s3.storage_options.items():
        monkeypatch.setenv(f"AWS_{name.removeprefix('aws_')}".upper(), value)
    place = f"s3://{s3.new_bucket()}"
    lancelake.write_dataset(pa.table({"id": [1]}), f"{place}/photos.lance")
    pq.write_table(pa.table({"sensor": [1]}), tmp_path / "readings.parquet")
    (tmp_path / "lake").mkdir()
    (tmp_path / "readings.parquet").rename(tmp_path / "lake" / "readings.parquet")
    s3.upload(tmp_path / "lake", f"{place}/lake/readings")
    return place
