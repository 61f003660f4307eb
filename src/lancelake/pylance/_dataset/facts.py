"""Properties and transactions of the open version."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lancelake.commit.snapshot import Snapshot
from lancelake.commit.versions import find_version
from lancelake.format.arrow_schema import public_schema
from lancelake.pylance._dataset.refs import Branches, Tags
from lancelake.pylance._dataset.stats import LanceStats
from lancelake.pylance._dataset.transaction import Transaction, from_transaction
from lancelake.pylance.schema import LanceSchema
from lancelake.table.history import history


class DatasetFacts:
    """Properties of the open version, and the transactions that led to it."""

    _snapshot: Snapshot
    _default_scan_options: dict[str, Any] | None

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema, with the columns that the default scan options add."""
        if self._default_scan_options:
            dataset: Any = self
            schema: pa.Schema = dataset.scanner().projected_schema
            return schema
        return public_schema(self._snapshot.manifest.schema)

    @property
    def lance_schema(self) -> LanceSchema:
        """The schema with field ids."""
        return LanceSchema(self._snapshot.manifest.schema)

    @property
    def data_storage_version(self) -> str:
        """Format version of the table's data files."""
        return self._snapshot.manifest.data_version.value

    @property
    def has_stable_row_ids(self) -> bool:
        """Whether rows keep their ids when they are moved."""
        return self._snapshot.manifest.has_stable_row_ids

    @property
    def max_field_id(self) -> int:
        """Highest field id in use."""
        return self._snapshot.manifest.schema.max_field_id

    @property
    def metadata(self) -> dict[str, str]:
        """Metadata of the table."""
        return dict(self._snapshot.manifest.table_metadata)

    @property
    def schema_metadata(self) -> dict[str, str]:
        """Metadata of the Arrow schema."""
        found = self._snapshot.manifest.schema.metadata
        return {key: value.decode() for key, value in found.items()}

    def config(self) -> dict[str, str]:
        """Settings stored with the table."""
        return dict(self._snapshot.manifest.config)

    @property
    def tags(self) -> Tags:
        """The table's tags."""
        return Tags(self._snapshot)

    @property
    def branches(self) -> Branches:
        """The table's branches."""
        return Branches(self._snapshot)

    @property
    def stats(self) -> LanceStats:
        """Statistics of the table."""
        return LanceStats(self._snapshot)

    @property
    def partition_expression(self) -> Any:
        """Not supported, as in pylance."""
        raise NotImplementedError("partitioning not yet supported")

    def read_transaction(self, version: int) -> Transaction | None:
        """Return the transaction of a version, if it was recorded."""
        location = self._snapshot.location
        found = Snapshot.load(location, find_version(location, version)).transaction
        return None if found is None else from_transaction(found)

    def get_transactions(self, recent_transactions: int = 10) -> list[Transaction | None]:
        """Return the transactions of the latest versions up to this one, newest first."""
        out: list[Transaction | None] = []
        for snapshot in history(self._snapshot.location, newest_first=True):
            if snapshot.version > self._snapshot.version:
                continue
            if len(out) == recent_transactions:
                break
            found = snapshot.transaction
            out.append(None if found is None else from_transaction(found))
        return out
