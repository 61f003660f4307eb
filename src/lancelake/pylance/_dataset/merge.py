"""Builder of merges: clauses, execution, plans."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Self, TypedDict

import pyarrow as pa

from lancelake.core.values import writes
from lancelake.core.values.metadata import Fragment, FrozenMap, Update, key_names
from lancelake.core.values.metadata import Transaction as Entry
from lancelake.errors import naming
from lancelake.pylance._dataset.arguments import os_errors
from lancelake.pylance._dataset.merge_options import (
    MergeOptions,
)
from lancelake.pylance._dataset.transactions import Transaction, from_transaction
from lancelake.pylance._values.opened import OpenedDataset, call_text, describes_as


class MergeClauses:
    """Methods of a merge builder that add clauses."""

    _matched: tuple[writes.Matched, ...] = ()
    _not_matched: tuple[writes.NotMatched, ...] = ()
    _by_source: tuple[writes.NotMatchedBySource, ...] = ()

    def when_matched_update_all(self, condition: str | None = None) -> Self:
        """Set all columns of matched rows that the source has.

        Args:
            condition: SQL that the pair of rows must match.

        Examples:
            >>> merge = ds.merge_insert("id").when_matched_update_all("source.score > target.score")
            >>> merge.execute({"id": [1, 2], "score": [9.0, 0.0]})
            {'num_inserted_rows': 0, 'num_updated_rows': 1, 'num_deleted_rows': 0}
        """
        self._matched += (writes.UpdateAll(condition=condition),)
        return self

    def when_matched_update(self, values: Mapping[str, str], condition: str | None = None) -> Self:
        """Set columns of matched rows to the values of expressions.

        Args:
            values: SQL expressions by column.
            condition: SQL that the pair of rows must match.

        Examples:
            >>> total = {"score": "target.score + source.score"}
            >>> merge = ds.merge_insert("id").when_matched_update(total)
            >>> done = merge.execute({"id": [1], "score": [1.0]})
            >>> ds.to_table(["score"], "id = 1").to_pydict()
            {'score': [2.5]}
        """
        self._matched += (writes.UpdateSet(values=FrozenMap(dict(values)), condition=condition),)
        return self

    def when_matched_delete(self, condition: str | None = None) -> Self:
        """Delete matched rows.

        Args:
            condition: SQL that the pair of rows must match.

        Examples:
            >>> ds.merge_insert("id").when_matched_delete().execute({"id": [1, 7]})
            {'num_inserted_rows': 0, 'num_updated_rows': 0, 'num_deleted_rows': 1}
        """
        self._matched += (writes.DeleteRow(condition=condition),)
        return self

    def when_matched_fail(self, condition: str | None = None) -> Self:
        """Fail the merge if a row matches.

        Args:
            condition: SQL that the pair of rows must match.

        Examples:
            >>> merge = ds.merge_insert("id").when_matched_fail().when_not_matched_insert_all()
            >>> merge.execute({"id": [7], "name": ["eve"], "score": [0.5]})["num_inserted_rows"]
            1
        """
        self._matched += (writes.Fail(condition=condition),)
        return self

    def when_not_matched_insert_all(self, condition: str | None = None) -> Self:
        """Insert source rows without a match.

        Args:
            condition: SQL that the source row must match.

        Examples:
            >>> merge = ds.merge_insert("id").when_not_matched_insert_all()
            >>> merge.execute({"id": [3, 4], "name": ["cy", "di"], "score": [0.0, 4.5]})
            {'num_inserted_rows': 1, 'num_updated_rows': 0, 'num_deleted_rows': 0}
        """
        self._not_matched += (writes.InsertAll(condition=condition),)
        return self

    def when_not_matched_insert(
        self, values: Mapping[str, str], condition: str | None = None
    ) -> Self:
        """Insert rows with the values of expressions; other columns are null.

        Args:
            values: SQL expressions by column.
            condition: SQL that the source row must match.

        Examples:
            >>> values = {"id": "source.id", "score": "0.0"}
            >>> done = ds.merge_insert("id").when_not_matched_insert(values).execute({"id": [4]})
            >>> ds.take([3]).to_pylist()
            [{'id': 4, 'name': None, 'score': 0.0}]
        """
        clause = writes.InsertValues(values=FrozenMap(dict(values)), condition=condition)
        self._not_matched += (clause,)
        return self

    def when_not_matched_by_source_delete(self, expr: str | None = None) -> Self:
        """Delete table rows not matched by the source.

        Args:
            expr: SQL that the table's row must match.

        Examples:
            >>> merge = ds.merge_insert("id").when_not_matched_by_source_delete("score > 2")
            >>> merge.execute({"id": [3]})
            {'num_inserted_rows': 0, 'num_updated_rows': 0, 'num_deleted_rows': 1}
        """
        self._by_source += (writes.DeleteRow(condition=expr),)
        return self

    def when_not_matched_by_source_update(
        self, values: Mapping[str, str], expr: str | None = None
    ) -> Self:
        """Set columns of rows not matched by the source.

        Args:
            values: SQL expressions by column.
            expr: SQL that the table's row must match.

        Examples:
            >>> merge = ds.merge_insert("id").when_not_matched_by_source_update({"score": "0.0"})
            >>> merge.execute({"id": [3]})["num_updated_rows"]
            2
        """
        self._by_source += (writes.UpdateSet(values=FrozenMap(dict(values)), condition=expr),)
        return self


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

    def __init__(self, dataset: OpenedDataset, on: str | Iterable[str] | None = None) -> None:
        """Start a merge by a key; without `on`, by the primary key of the schema."""
        self._dataset = dataset
        schema = dataset._snapshot.manifest.schema
        named = key_names(schema) if on is None else on
        keys = (named,) if isinstance(named, str) else tuple(named)
        self._on = keys
        with naming(dataset._snapshot.location.uri, dataset._snapshot.version):
            if keys:
                writes.key_fields(keys, schema)
            else:
                writes.MergeSpec(on=())

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
        rows, spec = writes.to_reader(data_obj, schema), self._spec()
        with os_errors():
            done = self._dataset._table.merge(
                rows,
                spec,
                retries=self._retries,
                choices=self._dataset._choices,
            )
        self._dataset._snapshot = done.snapshot
        return _stats(done.counts)

    @describes_as(execute)
    def execute_uncommitted(
        self, data_obj: Any, *, schema: pa.Schema | None = None
    ) -> tuple[Transaction, MergeStats]:
        """Merge without committing.

        Returns:
            The transaction, which can be committed later, and the counts.

        Examples:
            >>> merge = ds.merge_insert("id").when_matched_delete()
            >>> transaction, counts = merge.execute_uncommitted({"id": [1]})
            >>> lance.LanceDataset.commit(ds, transaction).count_rows()
            2
        """
        with writes.read_source(writes.to_reader(data_obj, schema)) as rows, os_errors():
            ready = self._dataset._table.prepare_merge(rows, self._spec())
        return from_transaction(ready.transaction), _stats(ready.counts)

    def execute_batches(self, new_data: Any) -> MergeStats:
        """Merge rows in memory, as `execute`.

        Args:
            new_data: The source.

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

        Examples:
            >>> "id" in ds.merge_insert("id").when_matched_update_all().explain_plan()
            True
        """
        names = None if schema is None else schema.names
        return self._dataset._table.explain_merge(self._spec(), source=names)

    @describes_as(execute)
    def analyze_plan(self, data_obj: Any, *, schema: pa.Schema | None = None) -> str:
        """Run the merge without committing, and describe it with its counts.

        Examples:
            >>> plan = ds.merge_insert("id").when_matched_delete().analyze_plan({"id": [1]})
            >>> "num_deleted_rows=1" in plan, ds.count_rows()
            (True, 3)
        """
        with writes.read_source(writes.to_reader(data_obj, schema)) as rows, os_errors():
            ready = self._dataset._table.prepare_merge(rows, self._spec())
        plan = self._dataset._table.explain_merge(self._spec(), source=rows.schema.names)
        files = [file for fragment in _new_fragments(ready.transaction) for file in fragment.files]
        every = {
            **_stats(ready.counts),
            "num_files_written": len(files),
            "bytes_written": sum(file.file_size_bytes or 0 for file in files),
        }
        counts = ", ".join(f"{name}={count}" for name, count in every.items())
        head, _, rest = plan.partition("\n")
        return f"{head}, metrics=[source_rows={rows.num_rows}, {counts}]\n{rest}"

    def _spec(self) -> writes.MergeSpec:
        with naming(self._dataset._snapshot.location.uri, self._dataset._snapshot.version):
            return writes.MergeSpec(
                on=self._on,
                matched=self._matched,
                not_matched=self._not_matched,
                not_matched_by_source=self._by_source,
                duplicates=self._duplicates,
                adds_columns=self._adds_columns,
                use_index=self._use_index,
                merged_generations=self._generations,
            )


def _new_fragments(transaction: Entry) -> tuple[Fragment, ...]:
    """Return the new fragments of a merge."""
    operation = transaction.operation
    return operation.new_fragments if isinstance(operation, Update) else ()


def _stats(counts: writes.RowCounts) -> MergeStats:
    return MergeStats(
        num_inserted_rows=counts.inserted,
        num_updated_rows=counts.updated,
        num_deleted_rows=counts.deleted,
    )
