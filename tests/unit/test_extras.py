from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lancelake.errors import MissingPackageError
from lancelake.extras import optional


def test_an_installed_module_is_returned() -> None:
    assert optional("json.decoder", extra="x", purpose="a test") is sys.modules["json.decoder"]


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tantivy", None)
    words = r'a test requires the package tantivy.*pip install "lancelake\[search\]"'
    with pytest.raises(MissingPackageError, match=words):
        optional("tantivy", extra="search", purpose="a test")


def test_a_failure_inside_an_installed_package_is_not_a_missing_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "broken_package"
    folder.mkdir()
    (folder / "__init__.py").write_text("import a_module_that_does_not_exist")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ModuleNotFoundError, match="a_module_that_does_not_exist") as caught:
        optional("broken_package", extra="x", purpose="a test")
    assert not isinstance(caught.value, MissingPackageError)


def test_the_package_and_the_command_line_work_without_optional_packages() -> None:
    program = """
import sys
for name in ("pyspark", "py4j", "faiss", "tantivy", "torch", "boto3"):
    sys.modules[name] = None
import tempfile, pyarrow as pa, lancelake
uri = tempfile.mkdtemp() + "/t.lance"
ds = lancelake.write_dataset(pa.table({"x": [1, 2, 3]}), uri)
assert ds.to_table(filter="x > 1").num_rows == 2
ds.create_scalar_index("x", "BTREE")
found = ds.sql("SELECT sum(x) AS s FROM dataset").build().to_batch_records()
assert found[0]["s"].to_pylist() == [6]
try:
    from lancelake.spark import session
except lancelake.LanceTableError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert done.stdout.strip() == (
        "lancelake.spark requires the package pyspark, which is not installed. "
        'Install it with `pip install "lancelake[spark]"`.'
    )
