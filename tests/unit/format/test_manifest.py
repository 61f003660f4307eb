"""Derived properties of a manifest."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime

import pytest

from lancelake.format.fragment import BasePath, FileVersion
from lancelake.format.ids import BaseId, Version
from lancelake.format.manifest import Manifest, WriterVersion
from lancelake.format.schema import Schema
from tests.unit.format.golden.files import RELEASES, manifest


def made(**values: object) -> Manifest:
    return Manifest(
        schema=Schema(fields=()),
        fragments=(),
        version=Version(1),
        data_version=FileVersion.V2_1,
        **values,  # type: ignore[arg-type]
    )


def test_the_timestamp_is_in_utc():
    assert made(timestamp_ns=1_700_000_000_123_456_789).timestamp == datetime(
        2023, 11, 14, 22, 13, 20, 123456, tzinfo=UTC
    )


def test_a_manifest_may_have_no_timestamp():
    assert made().timestamp is None


@pytest.mark.parametrize("flags", [{"reader_feature_flags": 2}, {"writer_feature_flags": 2}])
def test_row_ids_are_stable_when_either_flag_word_says_so(flags):
    assert made(**flags).has_stable_row_ids


def test_row_ids_are_not_stable_otherwise():
    assert not made(reader_feature_flags=1).has_stable_row_ids


def test_a_base_is_found_by_its_id():
    base = BasePath(id=BaseId(0), is_dataset_root=True, path="p")

    assert made(base_paths=(base,)).base_path(BaseId(0)) is base


def test_a_base_that_is_not_declared_is_not_found():
    assert made().base_path(BaseId(0)) is None


@pytest.mark.parametrize("release", RELEASES)
def test_a_manifest_survives_pickling(release):
    read = manifest(release, "rewrite").manifest

    assert pickle.loads(pickle.dumps(read)) == read


@pytest.mark.parametrize(
    ("version", "release"),
    [
        ("14.0.2", (14, 0, 2)),
        ("0.8.15-beta.1", (0, 8, 15)),
        ("1", (1,)),
        ("dev", ()),
        ("", ()),
        ("9" * 5000, (999999999,)),
    ],
)
def test_the_release_of_a_writer_is_its_numbers(version: str, release: tuple[int, ...]) -> None:
    assert WriterVersion(library="lance", version=version).release == release
