"""The faiss library, which is loaded by the first build that needs it."""

from __future__ import annotations

from typing import Any

from lancelake.errors import UnsupportedError


def faiss() -> Any:
    """Return the faiss module; raise UnsupportedError if it is not installed."""
    try:
        import faiss as found  # noqa: PLC0415  # an optional library
    except ImportError as error:
        raise UnsupportedError(
            "building a vector index needs faiss", action='pip install "lancelake[search]"'
        ) from error
    return found
