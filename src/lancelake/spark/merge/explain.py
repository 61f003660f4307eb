"""Which column is meant by a name that no column has?"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame


def explained(
    build: Callable[[Sequence[str]], DataFrame], named: Sequence[str] | None, every: Sequence[str]
) -> DataFrame:
    """Build a frame from columns; when some name is unknown, Spark says which of all is meant."""
    if named is None:
        return build(every)
    try:
        return build(named)
    except AnalysisException:
        build(every)
        raise
