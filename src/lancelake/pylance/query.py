"""Values of full-text queries that calls on indices take, as in pylance."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["DocumentGranularity"]


class DocumentGranularity(StrEnum):
    """What one document of a full-text index is: a row, or an element of a list."""

    ROW = "row"
    LIST_ELEMENT = "list_element"
