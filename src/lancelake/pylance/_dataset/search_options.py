"""Scan options that search for rows."""

from __future__ import annotations

from typing import Any, Self

from lancelake.pylance._dataset.nearest import nearest_request


class VectorSearchOptions:
    """Methods of a scan builder that search for vectors."""

    def _with(self, **changes: Any) -> Self:
        raise NotImplementedError

    def nearest(
        self,
        column: str,
        q: Any,
        k: int | None = None,
        metric: str | None = None,
        nprobes: int | None = None,
        minimum_nprobes: int | None = None,
        maximum_nprobes: int | None = None,
        refine_factor: int | None = None,
        use_index: bool = True,
        ef: int | None = None,
        query_parallelism: int | None = None,
        approx_mode: str = "normal",
        distance_range: tuple[float | None, float | None] | None = None,
        search_effort: float | None = None,
    ) -> Self:
        """Find the `k` rows (10 if not given) whose vectors are nearest to `q`.

        Several queries at once return up to `k` rows each, with the column `query_index`; of a
        multivector column they are one query. `nprobes` is the number of partitions of an index
        that are searched. `query_parallelism` and `approx_mode` tune official Lance.
        """
        options = {k: v for k, v in locals().items() if k not in ("self", "column", "q")}
        return self._with(nearest=nearest_request(column, q, **options))
