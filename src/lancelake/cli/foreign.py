"""Recognition of folders and files that are not Lance tables, and the command that reads them."""

from __future__ import annotations

import re

from lancelake.cli.sources.places import DELTA_LOG
from lancelake.cli.sources.readers import SUFFIXES
from lancelake.errors import LanceTableError
from lancelake.storage.location import Location
from lancelake.storage.open import open_store
from lancelake.table.describe.found_tables import find_tables

_ICEBERG = "metadata"
_MOST_NAMED = 3
# A folder of a partitioned table, such as `day=1`.
_PARTITION = re.compile(r"[^/=]+=[^/]*/?")


def advice_for(location: Location) -> str | None:
    """Return advice about a place without a table; None if nothing is recognised there."""
    uri = location.uri
    if uri.lower().endswith(tuple(SUFFIXES)):
        return f"It is a file; `lancelake write {uri} TABLE` creates a table from it."
    try:
        store = open_store(location)
        folders, names = store.list_dirs(""), store.list_names("")
    except LanceTableError:
        return None
    if DELTA_LOG in folders:
        return f"It is a Delta table; `lancelake convert {uri} TABLE` copies it."
    if _ICEBERG in folders and "data" in folders:
        return "It may be an Iceberg table, which is not supported."
    has_files = any(name.lower().endswith(tuple(SUFFIXES)) for name in names)
    if has_files or any(_PARTITION.fullmatch(folder) for folder in folders):
        return f"It has data files; `lancelake convert {uri} TABLE` creates a table from them."
    found = find_tables(location, _MOST_NAMED).tables if folders else ()
    if found:
        names = [table.uri.removeprefix(uri).lstrip("/") for table in found]
        return f"Tables below it: {', '.join(names)}; `lancelake ls {uri}` lists them."
    return None
