"""SQL queries over one version, planned by DataFusion and read by our scan."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.dataset as pads
from datafusion import DataFrame, RuntimeEnvBuilder, SessionConfig, SessionContext, SQLOptions
from datafusion.plan import LogicalPlan

from lancelake.commit.snapshot import Snapshot
from lancelake.data.arrays.batches import retype
from lancelake.errors import InvalidExpressionError, LanceTableError
from lancelake.expr.evaluate import datafusion_threads, reason
from lancelake.expr.json_functions import register_json_functions
from lancelake.expr.literals import plain_type, type_without_views, without_views
from lancelake.expr.planned import ALL_ROWS, QueryReads, every_read, only_read, table_scans
from lancelake.expr.structure import check_chains, register_size_limits, tokenize, with_size_limits
from lancelake.format import jsonb
from lancelake.format.frozen import FrozenMap
from lancelake.format.schema import EXTENSION_NAME
from lancelake.scan.plan import ScanPlan, explain
from lancelake.scan.planner import plan
from lancelake.scan.request import BINARY_JSON, ScanRequest, expression_schema
from lancelake.scan.stream import run
from lancelake.threads import OwnStream, driven_aside, streamed

_MEMORY_BYTES = 512 << 20
_OUT_OF_MEMORY = "Resources exhausted"
_NO_TABLE = re.compile(r"table '(?:[^']*\.)?(?P<name>[^'.]+)' not found")
_ROWS = "__version_rows"
_READ_ONLY = SQLOptions().with_allow_ddl(False).with_allow_dml(False).with_allow_statements(False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlRequest:
    """A query, its name for the table, the columns it can access, and other tables by name."""

    text: str
    table_name: str = "dataset"
    others: Mapping[str, Snapshot] = field(default_factory=FrozenMap)
    with_row_id: bool = False
    with_row_address: bool = False
    blob_values: bool = False
    batch_size: int | None = None


class Query:
    """A validated query, which can run any number of times."""

    @driven_aside
    def __init__(self, snapshot: Snapshot, request: SqlRequest, *, spills: bool = False) -> None:
        """Plan a query; with `spills` it is slower, but joins run in bounded memory."""
        self._snapshot = snapshot
        self._request = request
        self._spills = spills
        self._others: dict[str, _Rows] = {}
        self._names: tuple[str, ...] | None = None
        check_chains(tokenize(request.text), request.text)
        self._rows = _Rows(snapshot, request)
        if request.others:
            # Conditions of a join are not attributed to one table; columns are still pruned.
            self._others = {name: _Rows(at, request) for name, at in request.others.items()}
            self._frame = self._understood(_all_of(_ROWS))
            return
        self._frame = self._understood(f'SELECT * FROM "{_ROWS}"')
        needed = self._needed()
        if needed is None:
            self._rows = _Rows(snapshot, request)
            self._frame = self._understood(_all_of(_ROWS))
            needed = self._needed_by_all()
        self._rows.narrow(needed)

    @property
    def schema(self) -> pa.Schema:
        """Schema of the result."""
        fields = [_shown(field) for field in self._frame.schema()]
        if self._names is None:
            return pa.schema(fields)
        named = zip(fields, self._names, strict=True)
        return pa.schema([field.with_name(name) for field, name in named])

    def run(self) -> pa.RecordBatchReader:
        """Stream the result."""
        batches = OwnStream(streamed(self._batches), "a query")
        return pa.RecordBatchReader.from_batches(self.schema, batches)

    @driven_aside
    def explain(self) -> str:
        """Describe the query plan, and how the rows are read for it."""
        plan_text = self._frame.execution_plan().display_indent()
        return f"{plan_text}\n{explain(self._rows.plan())}"

    def _batches(self) -> Iterator[pa.RecordBatch]:
        schema = self.schema
        has_begun = False
        try:
            for part in self._frame.execute_stream():
                batch = part.to_pyarrow()
                has_begun = True
                columns = zip(batch.columns, batch.schema, schema, strict=True)
                arrays = [_value(array, source, target) for array, source, target in columns]
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)
        except LanceTableError:
            raise
        except Exception as error:  # DataFusion raises bare Exception
            for rows in (self._rows, *self._others.values()):
                if rows.failure is not None:
                    raise rows.failure from error
            if has_begun or self._spills or _OUT_OF_MEMORY not in str(error):
                raise self._refused(error) from error
            yield from Query(self._snapshot, self._request, spills=True)._batches()

    def _refused(self, error: Exception) -> InvalidExpressionError:
        text, at = self._request.text, self._snapshot
        problem = f"query {text!r} cannot be run: {self._cause(str(error))}"
        return InvalidExpressionError(problem, table=at.location.uri, version=at.version, text=text)

    def _cause(self, error: str) -> str:
        unknown = _NO_TABLE.search(error)
        if unknown is None:
            return reason(error)
        known = ", ".join((self._request.table_name, *self._request.others))
        return f"there is no table {unknown['name']!r}; the query can use {known}"

    def _needed(self) -> QueryReads | None:
        """Return the rows that are needed, if the table is read at most once."""
        try:
            scans = self._reads()
        except InvalidExpressionError:
            # Some conditions, such as `i IN (1, NULL)`, fail when they are pushed down to a read.
            return None
        if scans is None or len(scans) > 1:
            return None
        return only_read(scans[0], _ROWS, self._rows.filter_schema) if scans else QueryReads()

    def _needed_by_all(self) -> QueryReads:
        scans = self._reads()
        return QueryReads() if scans is None else every_read(scans, _ROWS, self._rows.filter_schema)

    def _reads(self) -> list[tuple[LogicalPlan, ...]] | None:
        """Return the reads of the table; None if the plan hides some, as subqueries do."""
        try:
            scans = table_scans(self._frame.optimized_logical_plan())
            self._frame.execution_plan()
        except Exception as error:  # DataFusion raises bare Exception
            raise self._refused(error) from error
        return scans if self._rows.planned_reads == len(scans) else None

    def _understood(self, rows: str) -> DataFrame:
        context = _context(self._request, spills=self._spills)
        context.register_dataset(_ROWS, self._rows)
        try:
            context.register_view(self._request.table_name, context.sql(rows))
            for name, other in self._others.items():
                context.register_dataset(f"{_ROWS}_{name}", other)
                context.register_view(name, context.sql(_all_of(f"{_ROWS}_{name}")))
            text = with_size_limits(self._request.text)
            if text != self._request.text:
                plain = context.sql_with_options(self._request.text, _READ_ONLY)
                self._names = tuple(plain.schema().names)
            return context.sql_with_options(text, _READ_ONLY)
        except Exception as error:  # DataFusion raises bare Exception
            raise self._refused(error) from error


class _Rows(pads.Dataset):  # type: ignore[misc]  # pyarrow has no types
    """The rows of a version as a pyarrow dataset of one fragment for DataFusion."""

    def __init__(self, snapshot: Snapshot, request: SqlRequest) -> None:
        self.failure: LanceTableError | None = None
        self.planned_reads = 0
        self._source = snapshot
        self._request = ScanRequest(
            with_row_id=request.with_row_id,
            with_row_address=request.with_row_address,
            blob_values=request.blob_values,
            batch_size=request.batch_size,
            json_binary=True,
        )
        self._schema = _plain(plan(self._source, self._request).schema)

    @property
    def schema(self) -> pa.Schema:
        """Schema of the rows."""
        return self._schema

    @property
    def filter_schema(self) -> pa.Schema:
        """The columns that conditions see identically in a scan and in a query."""
        names = set(self._schema.names)
        fields = [
            field
            for field in expression_schema(self._source.manifest.schema)
            if field.name in names and field.type.equals(self._schema.field(field.name).type)
        ]
        return pa.schema(fields)

    def narrow(self, reads: QueryReads) -> None:
        """Restrict the read to the rows that the query needs."""
        self._request = replace(self._request, filter=reads.condition, limit=reads.limit)

    def plan(self, columns: list[str] | None = None) -> ScanPlan:
        """Plan to read these columns."""
        if columns is None:
            return plan(self._source, self._request)
        request = replace(
            self._request, columns=tuple(columns), with_row_id=False, with_row_address=False
        )
        return plan(self._source, request)

    def get_fragments(self, filter: object = None) -> list[_Rows]:  # noqa: ARG002  # pyarrow's signature
        """Return the rows as the only fragment; called once when a read is planned."""
        self.planned_reads += 1
        return [self]

    def scanner(self, *_: object, columns: list[str] | None = None, **__: object) -> _Scan:
        """Return a scan of these columns."""
        return _Scan(self, self.plan(columns))


class _Scan:
    """One read of the rows."""

    def __init__(self, rows: _Rows, scan: ScanPlan) -> None:
        self._rows = rows
        self._plan = scan

    @property
    def projected_schema(self) -> pa.Schema:
        """Schema of the batches."""
        return _plain(self._plan.schema)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches."""
        schema = self.projected_schema
        try:
            for batch in run(self._plan):
                columns = zip(batch.columns, schema, strict=True)
                arrays = [retype(array, field.type) for array, field in columns]
                yield pa.RecordBatch.from_arrays(arrays, schema=schema) if arrays else batch
        except LanceTableError as error:
            # DataFusion only keeps the text of an error.
            self._rows.failure = error
            raise


def _all_of(name: str) -> str:
    """Return a query of all rows; its limit keeps conditions out of the read."""
    return f'SELECT * FROM "{name}" LIMIT {ALL_ROWS}'


def _context(request: SqlRequest, *, spills: bool) -> SessionContext:
    datafusion_threads.ensure_alive()
    runtime = RuntimeEnvBuilder().with_disk_manager_os().with_fair_spill_pool(_MEMORY_BYTES)
    config = (
        SessionConfig()
        # Conditions on struct fields are kept, since they narrow the scan.
        .set("datafusion.optimizer.enable_leaf_expression_pushdown", "false")
        # Rows keep the order of the scan, which has its own threads.
        .set("datafusion.optimizer.enable_round_robin_repartition", "false")
        .set("datafusion.optimizer.prefer_hash_join", str(not spills).lower())
    )
    if request.batch_size is not None:
        config = config.with_batch_size(request.batch_size)
    context = SessionContext(config, runtime)
    register_json_functions(context)
    register_size_limits(context)
    return context


def _plain(schema: pa.Schema) -> pa.Schema:
    """Return the schema with extension types as storage types, as DataFusion computes with them."""
    fields = [
        pa.field(field.name, plain_type(field.type), field.nullable, field.metadata)
        for field in schema
    ]
    return pa.schema(fields)


def _is_json(field: pa.Field) -> bool:
    return (field.metadata or {}).get(EXTENSION_NAME.encode()) == BINARY_JSON


def _shown(field: pa.Field) -> pa.Field:
    """Return the field of a result with its public type."""
    if _is_json(field):
        return pa.field(field.name, pa.json_(pa.utf8()), field.nullable)
    dtype = type_without_views(field.type)
    return pa.field(field.name, dtype, field.nullable, field.metadata)


def _value(array: pa.Array, source: pa.Field, target: pa.Field) -> pa.Array:
    if _is_json(source):
        return retype(jsonb.decode_array(array), target.type)
    return without_views(array)
