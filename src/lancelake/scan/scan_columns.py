"""Columns that the tasks of a scan read, and how selective its filter is so far."""

from __future__ import annotations

from dataclasses import dataclass

from lancelake.data.projection import project
from lancelake.data.recently_used import RecentlyUsed
from lancelake.data.small_files import interned
from lancelake.format.computed_once import computed_once
from lancelake.format.schema import Schema
from lancelake.scan.output_builder import needed_paths
from lancelake.scan.plan import ScanSpec

_CACHED = 256

_Paths = tuple[tuple[str, ...], ...]

# A schema is kept with its projections, so that no other gets its id.
_projections: RecentlyUsed[tuple[int, _Paths], tuple[Schema, Schema]] = RecentlyUsed(_CACHED)


class Density:
    """Selectivity of a filter so far."""

    def __init__(self) -> None:
        self._seen = 0
        self._kept = 0

    def add(self, seen: int, kept: int) -> None:
        """Add the counts of a chunk."""
        self._seen += seen
        self._kept += kept

    def is_high(self, width: float, cost: float) -> bool:
        """Whether rows of this width are cheaper to read all than to fetch at this cost each."""
        return self._kept * cost > self._seen * width


@dataclass(frozen=True)
class ScanColumns:
    """Columns that the tasks of a scan read, computed once."""

    spec: ScanSpec
    density: Density

    @staticmethod
    def of(spec: ScanSpec) -> ScanColumns:
        """Return the columns of a scan."""
        return ScanColumns(spec, Density())

    @computed_once
    def output(self) -> Schema:
        """Columns of the outputs."""
        return self._columns(self._outputs)

    @computed_once
    def filter(self) -> Schema:
        """Columns of the filter."""
        return self._columns(self._filters)

    @computed_once
    def late(self) -> Schema:
        """Columns of the outputs that the filter does not need."""
        return self._columns(tuple(p for p in self._outputs if p not in self._filters))

    @computed_once
    def both(self) -> Schema:
        """Columns of outputs and filter."""
        return self._columns(self._outputs + self._filters)

    @computed_once
    def _outputs(self) -> _Paths:
        return needed_paths(self.spec.outputs)

    @computed_once
    def _filters(self) -> _Paths:
        return () if self.spec.predicate is None else self.spec.predicate.paths

    def _columns(self, paths: _Paths) -> Schema:
        """Project the table's schema; what is cached for a projection is found by its identity."""
        key = id(self.spec.table_schema), paths
        return _projections.get(key, lambda: (self.spec.table_schema, self._projected(paths)))[1]

    def _projected(self, paths: _Paths) -> Schema:
        found = project(self.spec.table_schema, paths)
        return interned(found) if self.spec.remembers_small else found
