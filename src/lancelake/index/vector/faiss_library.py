"""The faiss library, which is loaded by the first build that needs it."""

from __future__ import annotations

from typing import Any

from lancelake.errors import UnsupportedError


def faiss_or_none() -> Any | None:
    """Return the faiss module, or None if it is not installed."""
    try:
        return faiss()
    except UnsupportedError:
        return None


def use_one_thread() -> None:
    """Let faiss use no further threads for calls of this thread."""
    library = faiss_or_none()
    if library is not None:
        library.omp_set_num_threads(1)


def faiss() -> Any:
    """Return the faiss module; raise UnsupportedError if it is not installed."""
    try:
        import faiss as found  # noqa: PLC0415  # an optional library
    except ImportError as error:
        raise UnsupportedError(
            "building a vector index needs faiss", action='pip install "lancelake[search]"'
        ) from error
    return found
