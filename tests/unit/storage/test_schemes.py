"""Schemes of URIs: aliases are replaced, others are refused with advice."""

from __future__ import annotations

import re

import pytest

from lancelake.errors import InvalidRequestError, UnsupportedError
from lancelake.storage.location import Location, is_uri, taken_apart


@pytest.mark.parametrize(
    ("given", "uri"),
    [
        ("s3a://b/k", "s3://b/k"),
        ("s3n://b/k", "s3://b/k"),
        ("gcs://b/k", "gs://b/k"),
        ("abfs://c@a.dfs.core.windows.net/k", "abfss://c@a.dfs.core.windows.net/k"),
        ("abfs://c/k", "abfss://c/k"),
        ("wasbs://c@a.blob.core.windows.net/k", "abfss://c@a.dfs.core.windows.net/k"),
        ("WASB://c@a.blob.core.windows.net", "abfss://c@a.dfs.core.windows.net"),
    ],
)
def test_aliases_of_other_tools(given: str, uri: str) -> None:
    assert Location.parse(given).uri == uri


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("dbfs:/mnt/t.lance", "Write /dbfs/mnt/t.lance, or use /Volumes/..."),
        ("dbfs:///mnt/t.lance", "Write /dbfs/mnt/t.lance, or use /Volumes/..."),
        ("dbfs:/Volumes/c/s/v/t.lance", "Write /Volumes/c/s/v/t.lance"),
        ("s3:/bucket/x", "Write s3://bucket/x, or ./s3:/bucket/x for a local path"),
        ("S3A:bucket/x", "Write s3a://bucket/x"),
        ("file:t.lance", "Write file:///absolute/path, or ./file:t.lance"),
        (r"C:\data\x.lance", "In WSL, write /mnt/c/data/x.lance"),
        ("c:/data/x.lance", "In WSL, write /mnt/c/data/x.lance"),
        ("c:x.lance", "For a local path, write ./c:x.lance"),
        ("http://host/x", "known schemes: file, .*memory.*s3.*gs.*az.*abfss"),
    ],
)
def test_other_schemes_are_refused_with_advice(text: str, advice: str) -> None:
    pattern = advice if ".*" in advice else re.escape(advice)
    with pytest.raises(InvalidRequestError, match=pattern):
        taken_apart(text)


@pytest.mark.parametrize("text", ["hdfs://host:8020/t", "viewfs:///t", "webhdfs://h/t"])
def test_stores_of_hadoop_are_refused_with_the_reason(text: str) -> None:
    with pytest.raises(UnsupportedError, match="conditional create"):
        taken_apart(text)


@pytest.mark.parametrize("text", ["/a:b", "./a:b", "x/a:b", "1a:b", "_a:b", "ü:x", "a b:c", "a"])
def test_local_paths_have_no_scheme(text: str) -> None:
    assert not is_uri(text)
    assert taken_apart(text) is None
