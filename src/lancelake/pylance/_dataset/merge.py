"""Merge builder, as in pylance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, Protocol, TypedDict

import pyarrow as pa

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import InvalidRequestError, UnsupportedError, naming
from lancelake.format import file_version
from lancelake.format.fragment import Fragment
from lancelake.format.frozen import FrozenMap
from lancelake.format.merged_generation import MergedGeneration
from lancelake.format.operations import Update
from lancelake.format.primary_key import key_names
from lancelake.format.transaction import Transaction as Entry
from lancelake.pylance._dataset.os_errors import os_errors
from lancelake.pylance._dataset.transaction import Transaction, from_transaction
from lancelake.pylance._values.shards import CompactedSsTable, shard_uuid
from lancelake.table.conflict_retry import DEFAULT, Retries
from lancelake.table.ingest import to_reader
from lancelake.table.merge.clauses import (
    DeleteRow,
    Duplicates,
    Fail,
    InsertAll,
    InsertValues,
    Matched,
    MergeSpec,
    NotMatched,
    NotMatchedBySource,
    UpdateAll,
    UpdateSet,
)
from lancelake.table.merge.explain import explain
from lancelake.table.merge.keys import key_fields
from lancelake.table.merge.run import MergeCounts, merge, prepare
from lancelake.table.merge.source import kept
from lancelake.table.publish import CommitChoices

_WRITE_MODES = ("auto", "rewrite_rows", "rewrite_columns")


class MergeStats(TypedDict):
    """Counts of a merge."""

    num_inserted_rows: int
    num_updated_rows: int
    num_deleted_rows: int


class _Merges(Protocol):
    _snapshot: Snapshot

    @property
    def _choices(self) -> CommitChoices: ...


class MergeInsertBuilder:
    """A merge into a dataset: clauses first, then the source.

    Of several clauses for the same kind of row, the first whose condition is true applies.
    Conditions and values refer to columns as `source.x` and `target.x`. Every method but those that
    run the merge returns the builder.

    Examples:
        >>> rows = {"id": [2, 4], "name": ["bo", "di"], "score": [9.0, 4.5]}
        >>> merge = ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
        >>> merge.execute(rows)
        {'num_inserted_rows': 1, 'num_updated_rows': 1, 'num_deleted_rows': 0}
    """

    def __init__(self, dataset: _Merges, on: str | Iterable[str] | None = None) -> None:
        """Start a merge by a key; without `on`, by the primary key of the schema."""
        self._dataset = dataset
        schema = dataset._snapshot.manifest.schema
        named = key_names(schema) if on is None else on
        keys = (named,) if isinstance(named, str) else tuple(named)
        self._on = keys
        self._matched: tuple[Matched, ...] = ()
        self._not_matched: tuple[NotMatched, ...] = ()
        self._by_source: tuple[NotMatchedBySource, ...] = ()
        self._retries: Retries = DEFAULT
        self._duplicates = Duplicates.REFUSE
        self._adds_columns = False
        self._use_index = True
        self._generations: tuple[MergedGeneration, ...] = ()
        if keys:
            key_fields(keys, schema)
        else:
            MergeSpec(on=())

    def when_matched_update_all(self, condition: str | None = None) -> MergeInsertBuilder:
        """Set all columns of matched rows that the source has.

        Args:
            condition: SQL that the pair of rows must match.

        Returns:
            The builder.

        Examples:
            >>> merge = ds.merge_insert("id").when_matched_update_all("source.score > target.score")
            >>> merge.execute({"id": [1, 2], "score": [9.0, 0.0]})
            {'num_inserted_rows': 0, 'num_updated_rows': 1, 'num_deleted_rows': 0}
        """
        self._matched += (UpdateAll(condition=condition),)
        return self

    def when_matched_update(
        self, values: Mapping[str, str], condition: str | None = None
    ) -> MergeInsertBuilder:
        """Set columns of matched rows to the values of expressions.

        Args:
            values: SQL expressions by column.
            condition: SQL that the pair of rows must match.

        Returns:
            The builder.

        Examples:
            >>> total = {"score": "target.score + source.score"}
            >>> merge = ds.merge_insert("id").when_matched_update(total)
            >>> done = merge.execute({"id": [1], "score": [1.0]})
            >>> ds.to_table(["score"], "id = 1").to_pydict()
            {'score': [2.5]}
        """
        self._matched += (UpdateSet(values=FrozenMap(dict(values)), condition=condition),)
        return self

    def when_matched_delete(self, condition: str | None = None) -> MergeInsertBuilder:
        """Delete matched rows.

        Args:
            condition: SQL that the pair of rows must match.

        Returns:
            The builder.

        Examples:
            >>> ds.merge_insert("id").when_matched_delete().execute({"id": [1, 7]})
            {'num_inserted_rows': 0, 'num_updated_rows': 0, 'num_deleted_rows': 1}
        """
        self._matched += (DeleteRow(condition=condition),)
        return self

    def when_matched_fail(self, condition: str | None = None) -> MergeInsertBuilder:
        """Fail the merge if a row matches.

        Args:
            condition: SQL that the pair of rows must match.

        Returns:
            The builder.

        Examples:
            >>> merge = ds.merge_insert("id").when_matched_fail().when_not_matched_insert_all()
            >>> merge.execute({"id": [7], "name": ["eve"], "score": [0.5]})["num_inserted_rows"]
            1
        """
        self._matched += (Fail(condition=condition),)
        return self

    def when_not_matched_insert_all(self, condition: str | None = None) -> MergeInsertBuilder:
        """Insert source rows without a match.

        Args:
            condition: SQL that the source row must match.

        Returns:
            The builder.

        Examples:
            >>> merge = ds.merge_insert("id").when_not_matched_insert_all()
            >>> merge.execute({"id": [3, 4], "name": ["cy", "di"], "score": [0.0, 4.5]})
            {'num_inserted_rows': 1, 'num_updated_rows': 0, 'num_deleted_rows': 0}
        """
        self._not_matched += (InsertAll(condition=condition),)
        return self

    def when_not_matched_insert(
        self, values: Mapping[str, str], condition: str | None = None
    ) -> MergeInsertBuilder:
        """Insert rows with the values of expressions; other columns are null.

        Args:
            values: SQL expressions by column.
            condition: SQL that the source row must match.

        Returns:
            The builder.

        Examples:
            >>> values = {"id": "source.id", "score": "0.0"}
            >>> done = ds.merge_insert("id").when_not_matched_insert(values).execute({"id": [4]})
            >>> ds.take([3]).to_pylist()
            [{'id': 4, 'name': None, 'score': 0.0}]
        """
        clause = InsertValues(values=FrozenMap(dict(values)), condition=condition)
        self._not_matched += (clause,)
        return self

    def when_not_matched_by_source_delete(self, expr: str | None = None) -> MergeInsertBuilder:
        """Delete table rows not matched by the source.

        Args:
            expr: SQL that the table's row must match.

        Returns:
            The builder.

        Examples:
            >>> merge = ds.merge_insert("id").when_not_matched_by_source_delete("score > 2")
            >>> merge.execute({"id": [3]})
            {'num_inserted_rows': 0, 'num_updated_rows': 0, 'num_deleted_rows': 1}
        """
        self._by_source += (DeleteRow(condition=expr),)
        return self

    def when_not_matched_by_source_update(
        self, values: Mapping[str, str], expr: str | None = None
    ) -> MergeInsertBuilder:
        """Set columns of rows not matched by the source.

        Args:
            values: SQL expressions by column.
            expr: SQL that the table's row must match.

        Returns:
            The builder.

        Examples:
            >>> merge = ds.merge_insert("id").when_not_matched_by_source_update({"score": "0.0"})
            >>> merge.execute({"id": [3]})["num_updated_rows"]
            2
        """
        self._by_source += (UpdateSet(values=FrozenMap(dict(values)), condition=expr),)
        return self

    def last_source_row_wins(self) -> MergeInsertBuilder:
        """Let the last of several source rows with the same key win, instead of refusing them.

        Returns:
            The builder.

        Examples:
            >>> merge = ds.merge_insert("id").when_matched_update_all().last_source_row_wins()
            >>> done = merge.execute({"id": [1, 1], "score": [8.0, 9.0]})
            >>> ds.to_table(["score"], "id = 1").to_pydict()
            {'score': [9.0]}
        """
        self._duplicates = Duplicates.LAST_WINS
        return self

    def with_schema_evolution(self) -> MergeInsertBuilder:
        """Add columns to the table that only the source has.

        Returns:
            The builder.

        Examples:
            >>> merge = ds.merge_insert("id").when_matched_update_all().with_schema_evolution()
            >>> done = merge.execute({"id": [1], "city": ["Oslo"]})
            >>> ds.to_table(["city"], "id = 1").to_pydict()
            {'city': ['Oslo']}
        """
        self._adds_columns = True
        return self

    def conflict_retries(self, max_retries: int) -> MergeInsertBuilder:
        """Set the number of retries after conflicts.

        Args:
            max_retries: Retries, at most.

        Returns:
            The builder.

        Examples:
            >>> merge = ds.merge_insert("id").when_matched_delete().conflict_retries(3)
            >>> merge.execute({"id": [1]})["num_deleted_rows"]
            1
        """
        self._retries = replace(self._retries, most=max_retries)
        return self

    def retry_timeout(self, timeout: timedelta) -> MergeInsertBuilder:
        """Set the time limit of retries after conflicts.

        Args:
            timeout: The time limit.

        Returns:
            The builder.

        Examples:
            >>> from datetime import timedelta
            >>> merge = ds.merge_insert("id").retry_timeout(timedelta(minutes=5))
            >>> merge.when_matched_delete().execute({"id": [1]})["num_deleted_rows"]
            1
        """
        self._retries = replace(self._retries, timeout_s=timeout.total_seconds())
        return self

    def write_mode(self, mode: str) -> MergeInsertBuilder:
        """Select how rows are written.

        Args:
            mode: `auto` or `rewrite_rows`, which are the same; `rewrite_columns` is not supported.

        Returns:
            The builder.

        Raises:
            InvalidRequestError: The mode is unknown.
            UnsupportedError: The mode is `rewrite_columns`.

        Examples:
            >>> merge = ds.merge_insert("id").when_matched_delete().write_mode("auto")
            >>> merge.execute({"id": [1]})["num_deleted_rows"]
            1
        """
        if mode not in _WRITE_MODES:
            problem = f"invalid write_mode {mode!r}; valid modes: {', '.join(_WRITE_MODES)}"
            raise InvalidRequestError(problem)
        if mode == "rewrite_columns":
            raise UnsupportedError("write_mode 'rewrite_columns' of a merge is not supported")
        return self

    def data_storage_version(self, version: str) -> MergeInsertBuilder:
        """Accept the version of the table's data files.

        Args:
            version: The version.

        Returns:
            The builder.

        Raises:
            UnsupportedError: It is not the version of the table.

        Examples:
            >>> merge = ds.merge_insert("id").data_storage_version(ds.data_storage_version)
        """
        ensure_same_version(self._dataset._snapshot, version)
        return self

    def target_bases(self, bases: list[str]) -> MergeInsertBuilder:
        """Not supported: merges write to the table's own root.

        Args:
            bases: Names of base paths.

        Raises:
            UnsupportedError: Always.
        """
        raise UnsupportedError("target_bases of a merge is not supported")

    def target_all_bases(self, include_primary: bool = True) -> MergeInsertBuilder:
        """Not supported: merges write to the table's own root.

        Args:
            include_primary: Whether the root is one of them.

        Raises:
            UnsupportedError: Always.
        """
        raise UnsupportedError("target_all_bases of a merge is not supported")

    def mark_sstables_as_compacted(
        self, sstables: Iterable[CompactedSsTable]
    ) -> MergeInsertBuilder:
        """Record in the same commit that generations of a MemWAL are merged.

        The source must have all their rows, and those of the unmerged generations before them.

        Args:
            sstables: The generations.

        Returns:
            The builder.

        Examples:
            >>> merge = ds.merge_insert("id").mark_sstables_as_compacted([])
        """
        self._generations = tuple(
            MergedGeneration(region_id=shard_uuid(s.shard_id), generation=s.generation)
            for s in sstables
        )
        return self

    def use_index(self, use_index: bool) -> MergeInsertBuilder:
        """Choose how matching rows are found.

        Args:
            use_index: Use indices of the key columns, or read the columns.

        Returns:
            The builder.

        Examples:
            >>> merge = ds.merge_insert("id").when_matched_delete().use_index(False)
            >>> merge.execute({"id": [1]})["num_deleted_rows"]
            1
        """
        self._use_index = use_index
        return self

    def execute(self, data_obj: Any, *, schema: pa.Schema | None = None) -> MergeStats:
        """Merge, commit, and move the dataset to the new version.

        Args:
            data_obj: The source, as in `write_dataset`.
            schema: Schema of data that has no types of its own.

        Returns:
            The numbers of inserted, updated and deleted rows.

        Raises:
            InvalidRequestError: Two source rows have the same key.
            SchemaMismatchError: The source does not fit the columns of the table.
            RetryableConflictError: Every retry conflicted.

        Examples:
            >>> ds.merge_insert("id").when_matched_delete().execute({"id": [1]})
            {'num_inserted_rows': 0, 'num_updated_rows': 0, 'num_deleted_rows': 1}
        """
        rows, spec = to_reader(data_obj, schema), self._spec()
        with os_errors():
            done = merge(
                self._dataset._snapshot,
                rows,
                spec,
                retries=self._retries,
                choices=self._dataset._choices,
            )
        self._dataset._snapshot = done.snapshot
        return _stats(done.counts)

    def execute_uncommitted(
        self, data_obj: Any, *, schema: pa.Schema | None = None
    ) -> tuple[Transaction, MergeStats]:
        """Merge without committing.

        Args:
            data_obj: The source, as in `write_dataset`.
            schema: Schema of data that has no types of its own.

        Returns:
            The transaction, which can be committed later, and the counts.

        Examples:
            >>> merge = ds.merge_insert("id").when_matched_delete()
            >>> transaction, counts = merge.execute_uncommitted({"id": [1]})
            >>> lance.LanceDataset.commit(ds, transaction).count_rows()
            2
        """
        with kept(to_reader(data_obj, schema)) as rows, os_errors():
            ready = prepare(self._dataset._snapshot, rows, self._spec())
        return from_transaction(ready.transaction), _stats(ready.counts)

    def execute_batches(self, new_data: Any) -> MergeStats:
        """Merge rows in memory, as `execute`.

        Args:
            new_data: The source.

        Returns:
            The counts.

        Examples:
            >>> merge = ds.merge_insert("id").when_matched_delete()
            >>> merge.execute_batches(pa.record_batch({"id": [1]}))["num_deleted_rows"]
            1
        """
        return self.execute(new_data)

    def execute_uncommitted_batches(self, new_data: Any) -> tuple[Transaction, MergeStats]:
        """Merge rows in memory without committing, as `execute_uncommitted`.

        Args:
            new_data: The source.

        Returns:
            The transaction and the counts.

        Examples:
            >>> rows = pa.record_batch({"id": [1]})
            >>> merge = ds.merge_insert("id").when_matched_delete()
            >>> merge.execute_uncommitted_batches(rows)[1]["num_deleted_rows"]
            1
        """
        return self.execute_uncommitted(new_data)

    def analyze_plan_batches(self, new_data: Any) -> str:
        """Describe a merge of rows in memory, as `analyze_plan`.

        Args:
            new_data: The source.

        Returns:
            The steps with their counts.

        Examples:
            >>> merge = ds.merge_insert("id").when_matched_delete()
            >>> "num_deleted_rows=1" in merge.analyze_plan_batches(pa.record_batch({"id": [1]}))
            True
        """
        return self.analyze_plan(new_data)

    def explain_plan(self, schema: pa.Schema | None = None, verbose: bool = False) -> str:
        """Describe the steps of the merge.

        Args:
            schema: Schema of the source; by default that of the table.
            verbose: Ignored.

        Returns:
            The steps as text.

        Examples:
            >>> "id" in ds.merge_insert("id").when_matched_update_all().explain_plan()
            True
        """
        names = None if schema is None else schema.names
        return explain(self._dataset._snapshot, self._spec(), source=names)

    def analyze_plan(self, data_obj: Any, *, schema: pa.Schema | None = None) -> str:
        """Run the merge without committing, and describe it with its counts.

        Args:
            data_obj: The source, as in `write_dataset`.
            schema: Schema of data that has no types of its own.

        Returns:
            The steps with their counts.

        Examples:
            >>> plan = ds.merge_insert("id").when_matched_delete().analyze_plan({"id": [1]})
            >>> "num_deleted_rows=1" in plan, ds.count_rows()
            (True, 3)
        """
        with kept(to_reader(data_obj, schema)) as rows, os_errors():
            ready = prepare(self._dataset._snapshot, rows, self._spec())
        plan = explain(self._dataset._snapshot, self._spec(), source=rows.schema.names)
        written = [file for fragment in _added(ready.transaction) for file in fragment.files]
        every = {
            **_stats(ready.counts),
            "num_files_written": len(written),
            "bytes_written": sum(file.file_size_bytes or 0 for file in written),
        }
        counts = ", ".join(f"{name}={count}" for name, count in every.items())
        head, _, rest = plan.partition("\n")
        return f"{head}, metrics=[source_rows={rows.num_rows}, {counts}]\n{rest}"

    def _spec(self) -> MergeSpec:
        with naming(self._dataset._snapshot.location.uri, self._dataset._snapshot.version):
            return self._given()

    def _given(self) -> MergeSpec:
        return MergeSpec(
            on=self._on,
            matched=self._matched,
            not_matched=self._not_matched,
            not_matched_by_source=self._by_source,
            duplicates=self._duplicates,
            adds_columns=self._adds_columns,
            use_index=self._use_index,
            merged_generations=self._generations,
        )


def _added(transaction: Entry) -> tuple[Fragment, ...]:
    """Return the new fragments of a merge."""
    operation = transaction.operation
    return operation.new_fragments if isinstance(operation, Update) else ()


def ensure_same_version(base: Snapshot, name: str | None) -> None:
    """Raise an error unless a data storage version is that of the table."""
    own = base.manifest.data_version
    if name is not None and file_version.from_name(name) is not own:
        problem = f"the table's files have version {own.value}, and cannot be mixed with {name}"
        raise UnsupportedError(problem, table=base.location.uri)


def _stats(counts: MergeCounts) -> MergeStats:
    return MergeStats(
        num_inserted_rows=counts.inserted,
        num_updated_rows=counts.updated,
        num_deleted_rows=counts.deleted,
    )
