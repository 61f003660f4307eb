"""Records that a generation of a MemWAL region is in a table: no release offers it in Python."""

from __future__ import annotations

import sys
import uuid

from lancelake.commit.snapshot import Latest, open_snapshot
from lancelake.format.index_meta import MergedGeneration
from lancelake.format.operations import UpdateMemWalState
from lancelake.storage.location import Location
from lancelake.table.publish import new_transaction, publish


def main(uri: str, region: str, generation: str) -> None:
    """Commit the progress of a region."""
    base = open_snapshot(Location.parse(uri), Latest())
    mark = MergedGeneration(region_id=uuid.UUID(region), generation=int(generation))
    operation = UpdateMemWalState(merged_generations=(mark,))
    publish(base, new_transaction(operation, base.version))


if __name__ == "__main__":
    main(*sys.argv[1:])
