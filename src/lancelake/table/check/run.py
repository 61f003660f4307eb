"""Which checks does a table go through, in which order?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

from lancelake.errors import (
    LanceTableError,
    StorageUnavailableError,
    TableNotFoundError,
    UnsupportedError,
    VersionNotFoundError,
)
from lancelake.format import layout
from lancelake.format.ids import is_detached
from lancelake.format.names import ManifestName
from lancelake.format.operations import Clone
from lancelake.storage.location import Location
from lancelake.table.check.data_files import check_data_files, check_footers
from lancelake.table.check.deletions import Deletions, check_deletions
from lancelake.table.check.features import check_bases, check_features
from lancelake.table.check.file_sizes import FileSizes
from lancelake.table.check.finding import Finding, Severity
from lancelake.table.check.fragments import check_fragments
from lancelake.table.check.indices import check_indices
from lancelake.table.check.line import Line, check_names, check_numbers
from lancelake.table.check.progress import OnProgress, Progress
from lancelake.table.check.refs import Refs, check_refs, check_zombies
from lancelake.table.check.row_ids import check_row_ids
from lancelake.table.check.schema import check_schema
from lancelake.table.check.strays import References, check_strays
from lancelake.table.check.subject import Subject
from lancelake.table.check.transactions import check_transaction
from lancelake.table.refs import branch_location
from lancelake.table.snapshot import Snapshot

Versions = Literal["all", "latest"]


def check(
    location: Location,
    *,
    data: bool = False,
    versions: Versions = "latest",
    on_progress: OnProgress | None = None,
) -> Iterator[Finding]:
    """Yield what is wrong with a table and its branches, as it is found; damage is never raised.

    `data` reads every value as well. Files that no version refers to are told only when all
    versions are looked at. Raises when there is no table, or the store cannot be reached.
    """
    line = Line.load(location, branch=None)
    if not line.names:
        raise TableNotFoundError("no Lance table was found here", table=location.uri)
    run = _Run(data=data, versions=versions, on_progress=on_progress or (lambda _: None))
    return run.table(line)
