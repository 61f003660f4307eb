"""Columns of images and of floats of 16 bits."""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.pylance import arrow


def test_short_floats_are_stored(tmp_path: Path) -> None:
    with contextlib.suppress(pa.ArrowKeyError):  # registered by the first import in a process
        pa.register_extension_type(arrow.BFloat16Type())
    floats = arrow.bfloat16_array([1.5, 2.25, None, 4.0])
    rows = pa.table(
        {"f": floats, "v": pa.FixedSizeListArray.from_arrays(floats[:2], 2).take([0] * 4)}
    )
    assert lance.write_dataset(rows, tmp_path / "t").to_table() == rows


def test_images_are_stored(tmp_path: Path) -> None:
    pixels = pa.FixedShapeTensorArray.from_numpy_ndarray(np.zeros((2, 3, 3), np.uint8))
    rows = pa.table(
        {
            "uri": arrow.ImageURIArray.from_uris(["file:///a.png", "file:///b.png"]),
            "encoded": arrow.ImageArray.from_array(pa.array([b"a", b"b"])),
            "pixels": arrow.ImageArray.from_array(pixels),
        }
    )
    found = lance.write_dataset(rows, tmp_path / "t").to_table()
    assert found == rows
    assert isinstance(found["pixels"].chunk(0), arrow.FixedShapeImageTensorArray)


def test_other_names_are_missing() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = arrow.nothing
