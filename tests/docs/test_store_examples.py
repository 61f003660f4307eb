"""The Python on the pages that uses an object store runs."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancelake
from tests.support.s3_server import S3Server

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^ *```py\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", ["README.md", "docs/object-stores.md"])
def test_the_first_block_with_a_bucket_runs(page: str, bucket: str, s3: S3Server) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    code = next(block for block in BLOCK.findall(text) if "s3://bucket" in block)
    code = textwrap.dedent(code).replace("s3://bucket", bucket)
    if page == "README.md":
        code = code.replace("photos.lance", "new.lance")  # the bucket has the photos of other pages
    names: dict[str, Any] = {"lancelake": lancelake, "photos": pa.table({"id": [1, 2]})}
    exec(compile(code.replace("http://localhost:9000", s3.endpoint), page, "exec"), names)
    assert names["ds"].count_rows() > 0
