"""`MergeInsertBuilder`: a merge that is built and run, as in pylance."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypedDict

import pyarrow as pa

from lancelake.errors import naming
from lancelake.format.fragment import Fragment
from lancelake.format.operations import Update
from lancelake.format.primary_key import key_names
from lancelake.format.transaction import Transaction as Entry
from lancelake.pylance._dataset.arguments.os_errors import os_errors
from lancelake.pylance._dataset.rows.merge_clauses import MergeClauses
from lancelake.pylance._dataset.rows.merge_options import MergedDataset, MergeOptions
from lancelake.pylance._dataset.writing.transaction import Transaction, from_transaction
from lancelake.pylance._values.reprs import call_text
from lancelake.table.ingest import to_reader
from lancelake.table.merge.clauses import (
    MergeSpec,
)
from lancelake.table.merge.explain import explain
from lancelake.table.merge.keys import key_fields
from lancelake.table.merge.run import MergeCounts, merge, prepare
from lancelake.table.merge.source import kept


class MergeStats(TypedDict):
    """Counts of a merge."""

    num_inserted_rows: int
    num_updated_rows: int
    num_deleted_rows: int


class MergeInsertBuilder(MergeClauses, MergeOptions):
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

    def __init__(self, dataset: MergedDataset, on: str | Iterable[str] | None = None) -> None:
        """Start a merge by a key; without `on`, by the primary key of the schema."""
        self._dataset = dataset
        schema = dataset._snapshot.manifest.schema
        named = key_names(schema) if on is None else on
        keys = (named,) if isinstance(named, str) else tuple(named)
        self._on = keys
        if keys:
            key_fields(keys, schema)
        else:
            MergeSpec(on=())

    def __repr__(self) -> str:
        return call_text(self, self._dataset, on=self._on or None)

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


def _stats(counts: MergeCounts) -> MergeStats:
    return MergeStats(
        num_inserted_rows=counts.inserted,
        num_updated_rows=counts.updated,
        num_deleted_rows=counts.deleted,
    )
