"""Tables and changes for the conflict verdicts."""

from __future__ import annotations

from dataclasses import dataclass

from tests.support.official import RELEASES


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a table has, which releases can make it so, and the changes to judge on it."""

    stable_row_ids: bool = False
    is_indexed: bool = False
    has_mem_wal: bool = False
    releases: tuple[str, ...] = RELEASES
    changes: tuple[str, ...]

    @property
    def table(self) -> dict[str, bool]:
        """What the table has, by name."""
        return {
            "stable_row_ids": self.stable_row_ids,
            "is_indexed": self.is_indexed,
            "has_mem_wal": self.has_mem_wal,
        }


_SCHEMA_CHANGES = (
    "merge, a column",
    "merge, a column, nulls as before",
    "project, without text",
    "project, without text, nulls as before",
)
_REWRITES = ("rewrite 0", "rewrite 1", "rewrite 0 and 1")
_CALLS = (
    "delete() 1, 2",
    "delete() 3, 4",
    "delete() 13",
    "delete() all of 0",
    "delete() none",
    "update() 1, 2",
    "update() 3, 4",
    "update() 13",
    "upsert 1",
    "upsert 3",
    "upsert 1, two columns",
    "upsert 19 to 22",
    "upsert 100 to 104",
    "upsert 200 to 204",
    "compact",
    "create_scalar_index value",
    "create_scalar_index text",
    "add_columns",
    "add null column",
    "drop_columns text",
    "rename text",
    "cast value",
    "add_bases x",
    "add_bases y",
)
_PLAIN = (
    "append",
    "overwrite",
    "overwrite, other schema",
    *_SCHEMA_CHANGES,
    "restore",
    "replace value in 0",
    "replace value in 1",
    "replace text in 0",
    *_REWRITES,
    "delete some of 0",
    "delete others of 0",
    "delete some of 1",
    "delete 0",
    "update some of 0",
    "update some of 1",
    "update 0",
    "insert by update",
    "index value of 0",
    "index value of 1, same name",
    "index text of 1",
    "index value removed",
    "config a",
    "config a removed",
    "config b",
    "config replaced",
    "table metadata a",
    "table metadata b",
    "schema metadata a",
    "schema metadata b",
    "metadata of value",
    "metadata of text",
    *_CALLS,
)
_SOME = (
    "append",
    "overwrite",
    *_SCHEMA_CHANGES,
    "restore",
    "replace value in 0",
    "rewrite 0",
    "delete some of 0",
    "delete 0",
    "update some of 0",
    "insert by update",
    "index text of 1",
    "config a",
    "delete() 1, 2",
    "update() 1, 2",
    "upsert 100 to 104",
    "compact",
    "create_scalar_index text",
    "drop_columns text",
    "add_bases x",
)

SETTINGS = {
    "row addresses": Setting(changes=_PLAIN),
    "stable row ids": Setting(stable_row_ids=True, changes=_PLAIN),
    "indexed": Setting(is_indexed=True, changes=(*_SOME, "compact, indices later")),
    "MemWAL": Setting(
        has_mem_wal=True,
        releases=RELEASES[-1:],
        changes=(
            *_SOME,
            "upsert 100 to 104, A at 1",
            "upsert 100 to 104, A at 2",
            "upsert 200 to 204, A at 1",
            "upsert 200 to 204, B at 1",
            "A at 1",
            "B at 1",
        ),
    ),
}
