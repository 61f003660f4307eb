"""The faiss library, which is loaded by the first build that needs it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lancelake.errors import MissingPackageError
from lancelake.extras import optional


def faiss_or_none() -> Any | None:
    """Return the faiss module, or None if it is not installed."""
    try:
        return faiss()
    except MissingPackageError:
        return None


def use_one_thread() -> None:
    """Let faiss use no further threads for calls of this thread."""
    library = faiss_or_none()
    if library is not None:
        library.omp_set_num_threads(1)


@contextmanager
def one_thread() -> Iterator[None]:
    """Let faiss use no further threads meanwhile: for little work they wait for each other."""
    library = faiss_or_none()
    if library is None:
        yield
        return
    before = library.omp_get_max_threads()
    library.omp_set_num_threads(1)
    try:
        yield
    finally:
        library.omp_set_num_threads(before)


def faiss() -> Any:
    """Return the faiss module; raise MissingPackageError if it is not installed."""
    return optional("faiss", extra="search", purpose="building a vector index")
