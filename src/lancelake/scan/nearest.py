"""Vector search request: query vectors, number of neighbours and search effort."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lancelake.errors import InvalidRequestError
from lancelake.index.vector.metric import Metric
from lancelake.index.vector.top_rows import ANY_DISTANCE, DistanceRange

DISTANCE = "_distance"
"""Column of the distance to the query."""
QUERY_INDEX = "query_index"
"""Column of the position of the query, when there are several."""
DEFAULT_K = 10


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Nearest:
    """The `k` rows whose vectors are nearest to a query.

    Several `queries` of a column with one vector in each row are searched independently; of a
    multivector column they are one query of several vectors. Partitions between `minimum_nprobes`
    and `maximum_nprobes` of an index are searched: more than the minimum only to find `k` rows.
    With `refine_factor`, that many times `k` rows are re-ranked by their stored vectors.
    """

    column: str
    queries: npt.NDArray[np.float32]
    has_several: bool = False
    k: int = DEFAULT_K
    metric: Metric | None = None
    minimum_nprobes: int | None = None
    maximum_nprobes: int | None = None
    refine_factor: int | None = None
    use_index: bool = True
    ef: int | None = None
    effort: float | None = None
    """Share of the partitions, on a geometric scale, that are searched at first."""
    within: DistanceRange = ANY_DISTANCE

    def __post_init__(self) -> None:
        low, high = self.minimum_nprobes, self.maximum_nprobes
        if self.k <= 0:
            raise InvalidRequestError(f"Nearest-K must be > 0 but got {self.k}")
        if low is not None and low < 0:
            raise InvalidRequestError(f"Minimum nprobes must be >= 0 but got {low}")
        if high is not None and high < 0:
            raise InvalidRequestError(f"Maximum nprobes must be >= 0 but got {high}")
        if low is not None and high is not None and low > high:
            raise InvalidRequestError("minimum_nprobes must be <= maximum_nprobes")
        if self.refine_factor is not None and self.refine_factor < 1:
            problem = f"Refine factor must be 1 or more got {self.refine_factor}"
            raise InvalidRequestError(problem)
        if self.ef is not None and self.ef <= 0:
            raise InvalidRequestError(f"ef must be > 0 but got {self.ef}")
