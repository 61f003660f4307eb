"""Columns that the tasks of a scan read, and how selective its filter is so far."""

from __future__ import annotations

from dataclasses import dataclass

from lancelake.data.projection import project
from lancelake.data.small_files import interned
from lancelake.format.schema import Schema
from lancelake.scan.output_builder import needed_paths
from lancelake.scan.plan import ScanSpec


class Density:
    """Selectivity of a filter so far."""

    def __init__(self) -> None:
        self._seen = 0
        self._kept = 0

    def add(self, seen: int, kept: int) -> None:
        """Add the counts of a chunk."""
        self._seen += seen
        self._kept += kept

    def is_high(self, width: float, cost: int) -> bool:
        """Whether rows of this width are cheaper to read all than to fetch at this cost each."""
        return self._kept * cost > self._seen * width


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanColumns:
    """Columns that the tasks of a scan read, computed once."""

    output: Schema
    filter: Schema
    late: Schema
    both: Schema
    density: Density

    @staticmethod
    def of(spec: ScanSpec) -> ScanColumns:
        """Compute the columns for outputs and filter, for the filter, and for the outputs."""
        outputs = needed_paths(spec.outputs)
        filters = () if spec.predicate is None else spec.predicate.paths

        def columns(paths: tuple[tuple[str, ...], ...]) -> Schema:
            found = project(spec.table_schema, paths)
            return interned(found) if spec.remembers_small else found

        return ScanColumns(
            output=columns(outputs),
            filter=columns(filters),
            late=columns(tuple(p for p in outputs if p not in filters)),
            both=columns(outputs + filters),
            density=Density(),
        )
