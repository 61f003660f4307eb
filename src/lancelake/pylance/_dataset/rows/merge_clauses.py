"""Clauses of a merge builder: what happens to matched and to other rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from lancelake.format.frozen import FrozenMap
from lancelake.table.merge.clauses import (
    DeleteRow,
    Fail,
    InsertAll,
    InsertValues,
    Matched,
    NotMatched,
    NotMatchedBySource,
    UpdateAll,
    UpdateSet,
)


class MergeClauses:
    """Methods of a merge builder that add clauses."""

    _matched: tuple[Matched, ...] = ()
    _not_matched: tuple[NotMatched, ...] = ()
    _by_source: tuple[NotMatchedBySource, ...] = ()

    def when_matched_update_all(self, condition: str | None = None) -> Self:
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

    def when_matched_update(self, values: Mapping[str, str], condition: str | None = None) -> Self:
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

    def when_matched_delete(self, condition: str | None = None) -> Self:
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

    def when_matched_fail(self, condition: str | None = None) -> Self:
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

    def when_not_matched_insert_all(self, condition: str | None = None) -> Self:
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
    ) -> Self:
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

    def when_not_matched_by_source_delete(self, expr: str | None = None) -> Self:
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
    ) -> Self:
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
