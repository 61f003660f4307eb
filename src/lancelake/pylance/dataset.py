"""`LanceDataset`: a table at a version, as in pylance."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, TypedDict

import pyarrow as pa
import pyarrow.dataset as pads

from lancelake.clock import Ids, SystemIds, utc_from_ns
from lancelake.commit.locked import CommitLock
from lancelake.commit.snapshot import Snapshot
from lancelake.commit.versions import find_version, latest_version
from lancelake.errors import InvalidRequestError
from lancelake.format.arrow_schema import public_schema
from lancelake.format.fragment import Fragment
from lancelake.format.fragment_list import FragmentList
from lancelake.format.ids import FragmentId
from lancelake.pylance._dataset.arrow_methods import ArrowMethods
from lancelake.pylance._dataset.change_feed import DatasetDelta as DatasetDelta  # noqa: PLC0414  # a name of pylance's
from lancelake.pylance._dataset.change_feed import DatasetHistory
from lancelake.pylance._dataset.changing import DatasetChanges
from lancelake.pylance._dataset.cleaning import DatasetCleanup
from lancelake.pylance._dataset.columns import AlterColumn as AlterColumn  # noqa: PLC0414  # a name of pylance's
from lancelake.pylance._dataset.columns import DatasetColumns
from lancelake.pylance._dataset.guarded import missing_lock
from lancelake.pylance._dataset.indexing import DatasetIndices
from lancelake.pylance._dataset.merge import MergeInsertBuilder  # noqa: F401  # found here too, as in pylance
from lancelake.pylance._dataset.optimizing import DatasetMaintenance
from lancelake.pylance._dataset.optimizing import DatasetOptimizer as DatasetOptimizer  # noqa: PLC0414  # a name of pylance's
from lancelake.pylance._dataset.os_errors import names_dataset, os_errors
from lancelake.pylance._dataset.reading import DatasetReads
from lancelake.pylance._dataset.reference import VersionLike, reference
from lancelake.pylance._dataset.refs import Branches, Tags
from lancelake.pylance._dataset.rows import DatasetRows
from lancelake.pylance._dataset.scanner import (
    SCAN_OPTIONS,
    Columns,
    Filter,
    LanceScanner,
    ScannerBuilder,
)
from lancelake.pylance._dataset.sql import SqlQuery as SqlQuery  # noqa: PLC0414  # a name of pylance's
from lancelake.pylance._dataset.sql import SqlQueryBuilder as SqlQueryBuilder  # noqa: PLC0414  # likewise
from lancelake.pylance._dataset.stats import LanceStats
from lancelake.pylance._dataset.transaction import Transaction, from_transaction
from lancelake.pylance._dataset.uris import uri_of
from lancelake.pylance._dataset.writing import commit_lock_of, ensure_openable
from lancelake.pylance._values.ordering import ColumnOrdering
from lancelake.pylance.fragment import LanceFragment
from lancelake.pylance.schema import LanceSchema
from lancelake.scan.count import count_rows
from lancelake.storage.location import Location
from lancelake.table.check.ensure import ensure_in_order
from lancelake.table.history import (
    VersionFacts,
    VersionSummary,
    facts_of,
    history,
    history_in_numbers,
)
from lancelake.table.open import AtVersion, Latest, open_snapshot

_IDS: Ids = SystemIds()
_TOTALS = sorted(name for name in dir(VersionSummary) if name.startswith("total_"))


class Version(TypedDict):
    """A version in the table's history."""

    version: int
    timestamp: datetime
    metadata: dict[str, str]


class LanceDataset(
    DatasetChanges,
    DatasetColumns,
    DatasetRows,
    DatasetIndices,
    DatasetReads,
    DatasetHistory,
    DatasetMaintenance,
    DatasetCleanup,
    ArrowMethods,
    pads.Dataset,  # type: ignore[misc]  # pyarrow has no types
):
    """One version of a table."""

    def __init__(
        self,
        uri: str | Path,
        version: VersionLike | None = None,
        *,
        storage_options: dict[str, str] | None = None,
        default_scan_options: dict[str, Any] | None = None,
        confine_to: Iterable[str | Path] | None = None,
        commit_lock: CommitLock | None = None,
        **rest: Any,
    ) -> None:
        ensure_openable(rest)
        location = Location.parse(uri, storage_options, confine_to=confine_to)
        self._lock = commit_lock_of(commit_lock)
        self._default_scan_options = default_scan_options
        self._snapshot = open_snapshot(location, reference(version))
        self._uri = uri_of(uri)

    @classmethod
    def _of(
        cls,
        snapshot: Snapshot,
        default_scan_options: dict[str, Any] | None,
        uri: str | None = None,
        *,
        lock: CommitLock | None = None,
    ) -> LanceDataset:
        made = cls.__new__(cls)
        made._lock = lock
        made._snapshot = snapshot
        made._default_scan_options = default_scan_options
        made._uri = snapshot.location.uri if uri is None else uri
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        place = (self._snapshot.location, self.version)
        is_guarded = self._lock is not None
        return (_reopen, (*place, self._default_scan_options, self._uri, is_guarded))

    def __copy__(self) -> LanceDataset:
        options, uri = self._default_scan_options, self._uri
        return LanceDataset._of(self._snapshot, options, uri, lock=self._lock)

    def __len__(self) -> int:
        return self.count_rows()

    def __repr__(self) -> str:
        return f"LanceDataset({self.uri!r}, version={self.version})"

    @property
    def uri(self) -> str:
        """Location of the table, as given."""
        return self._uri

    @property
    def version(self) -> int:
        """The open version."""
        return self._snapshot.version

    @property
    def latest_version(self) -> int:
        """The newest version of this version line."""
        return latest_version(self._snapshot.location).version

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema, with the columns that the default scan options add."""
        if self._default_scan_options:
            return self.scanner().projected_schema
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

    def versions(self) -> list[Version]:
        """Return all versions, oldest first."""
        return [_version(facts) for facts in history_in_numbers(self._snapshot.location)]

    def get_version(self) -> Version:
        """Return the open version, in the form of `versions`."""
        return _version(facts_of(self._snapshot))

    def checkout_version(self, version: VersionLike) -> LanceDataset:
        """Return the table at another version, tag, or branch and version."""
        place = self._snapshot
        found = open_snapshot(place.location, reference(version), main=place.main_location)
        return LanceDataset._of(found, self._default_scan_options, self._uri, lock=self._lock)

    def checkout_latest(self) -> None:
        """Move this object to the newest version."""
        self._snapshot = open_snapshot(self._snapshot.location, Latest())

    def read_transaction(self, version: int) -> Transaction | None:
        """Return the transaction of a version, if it was recorded."""
        location = self._snapshot.location
        found = Snapshot.load(location, find_version(location, version)).transaction
        return None if found is None else from_transaction(found)

    def get_transactions(self, recent_transactions: int = 10) -> list[Transaction | None]:
        """Return the transactions of the latest versions up to this one, newest first."""
        out: list[Transaction | None] = []
        for snapshot in history(self._snapshot.location, newest_first=True):
            if snapshot.version > self.version:
                continue
            if len(out) == recent_transactions:
                break
            found = snapshot.transaction
            out.append(None if found is None else from_transaction(found))
        return out

    def get_fragments(self, filter: Any = None) -> list[LanceFragment]:
        """Return all fragments."""
        if filter is not None:
            raise InvalidRequestError("get_fragments() does not support filter yet")
        return [LanceFragment(self, number) for number in self._fragments()]

    def get_fragment(self, fragment_id: int) -> LanceFragment | None:
        """Return one fragment, or None."""
        return LanceFragment(self, fragment_id) if fragment_id in self._fragments() else None

    @names_dataset
    def scanner(
        self,
        columns: Columns = None,
        filter: Filter = None,
        limit: int | None = None,
        offset: int | None = None,
        nearest: dict[str, Any] | None = None,
        batch_size: int | None = None,
        batch_readahead: int | None = None,
        fragment_readahead: int | None = None,
        scan_in_order: bool | None = None,
        fragments: Iterable[LanceFragment] | None = None,
        full_text_query: Any = None,
        *,
        order_by: list[ColumnOrdering | str] | None = None,
        **options: Any,
    ) -> LanceScanner:
        """Return a scan; `options` are methods of `ScannerBuilder` and their values."""
        for name in options.keys() - SCAN_OPTIONS:
            msg = f"LanceDataset.scanner() got an unexpected keyword argument {name!r}"
            raise TypeError(msg)
        builder = ScannerBuilder(self).apply_defaults(self._default_scan_options or {})
        asked = {
            "columns": columns,
            "filter": filter,
            "limit": limit,
            "offset": offset,
            "batch_size": batch_size,
            "batch_readahead": batch_readahead,
            "fragment_readahead": fragment_readahead,
            "scan_in_order": scan_in_order,
            "with_fragments": fragments,
            "order_by": order_by,
            "nearest": nearest,
            "full_text_search": full_text_query,
            **options,
        }
        given = {name: value for name, value in asked.items() if value is not None}
        return builder.apply_defaults(given).to_scanner()

    def to_table(
        self, columns: Columns = None, filter: Filter = None, *args: Any, **kwargs: Any
    ) -> pa.Table:
        """Read into memory; takes the arguments of `scanner`."""
        return self.scanner(columns, filter, *args, **kwargs).to_table()

    def to_pandas(self, *args: Any, **kwargs: Any) -> Any:
        """Read into a pandas data frame; takes the arguments of `scanner`."""
        return self.scanner(*args, **kwargs).to_pandas()

    def to_batches(self, *args: Any, **kwargs: Any) -> Iterator[pa.RecordBatch]:
        """Read batch by batch; takes the arguments of `scanner`."""
        return self.scanner(*args, **kwargs).to_batches()

    def head(self, num_rows: int, **kwargs: Any) -> pa.Table:
        """Return the first rows."""
        return self.scanner(limit=num_rows, **kwargs).to_table()

    def sample(
        self,
        num_rows: int,
        columns: Columns = None,
        randomize_order: bool = True,
        **kwargs: Any,
    ) -> pa.Table:
        """Return a random sample of rows."""
        total = self.count_rows()
        if num_rows > total or num_rows < 0:
            raise InvalidRequestError(
                "Sample larger than population or is negative", table=self.uri
            )
        chosen = _IDS.sample(total, num_rows)
        return self.take(chosen if randomize_order else sorted(chosen), columns, **kwargs)

    @os_errors()
    def count_rows(self, filter: Filter = None, **kwargs: Any) -> int:
        """Count the rows, or those that match a filter."""
        if filter is None and not kwargs:
            return count_rows(self._snapshot)
        return self.scanner(filter=filter, columns=[], **kwargs).count_rows()

    def validate(self) -> None:
        """Raise an error if files are missing, or rows, ids or indices are inconsistent."""
        ensure_in_order(self._snapshot)

    def _fragments(self) -> Mapping[FragmentId, Fragment]:
        return FragmentList.of(self._snapshot.manifest.fragments).by_id()


def _version(facts: VersionFacts) -> Version:
    # pylance returns local times without a time zone.
    written = utc_from_ns(facts.timestamp_ns or 0).astimezone().replace(tzinfo=None)
    metadata = dict(_totals(facts.summary))
    return Version(version=facts.version, timestamp=written, metadata=metadata)


@lru_cache(maxsize=4096)
def _totals(summary: VersionSummary) -> tuple[tuple[str, str], ...]:
    return tuple((name, str(getattr(summary, name))) for name in _TOTALS)


def _reopen(
    location: Location,
    version: int,
    default_scan_options: dict[str, Any] | None,
    uri: str,
    is_guarded: bool,
) -> LanceDataset:
    snapshot = open_snapshot(location, AtVersion(version))
    lock = missing_lock if is_guarded else None
    return LanceDataset._of(snapshot, default_scan_options, uri, lock=lock)
