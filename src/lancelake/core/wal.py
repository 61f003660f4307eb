"""The MemWAL of a table: regions, their writers, views and merges."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lancelake.core.operation import Facet, LazyModule, operation

if TYPE_CHECKING:
    from lancelake.memwal import collect, region, setup
    from lancelake.memwal import merge as merging
    from lancelake.memwal import status as statuses
    from lancelake.memwal import table_writer as writers
    from lancelake.memwal import view as views
else:
    region = LazyModule("memwal.region")
    collect = LazyModule("memwal.collect")
    merging = LazyModule("memwal.merge")
    setup = LazyModule("memwal.setup")
    statuses = LazyModule("memwal.status")
    writers = LazyModule("memwal.table_writer")
    views = LazyModule("memwal.view")


class Wal(Facet):
    """Operations on the MemWAL of a table."""

    set_up = operation(lambda: setup.set_up)
    initialize = operation(lambda: setup.initialize)
    details = operation(lambda: region.details_of)
    drop = operation(lambda: setup.drop_mem_wal)
    status = operation(lambda: statuses.wal_status)
    read_entries = operation(lambda: statuses.read_entries)

    writer = operation(lambda: writers.TableWriter)
    write_once = operation(lambda: writers.write_once)
    flush_tails = operation(lambda: setup.flush_tails)
    seal = operation(lambda: setup.seal_regions)
    merge = operation(lambda: merging.merge_generations)
    merge_in_background = operation(lambda: merging.BackgroundMerger)
    collect_garbage = operation(lambda: collect.collect_garbage)

    view = operation(lambda: views.open_view)
    pin = operation(lambda: views.pin)
