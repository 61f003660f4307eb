"""Values of the MemWAL: regions, views and what they are asked for."""

from typing import TYPE_CHECKING

from lancelake.core.values import load_on_use

if TYPE_CHECKING:
    from lancelake.format.index_meta import MergedGeneration
    from lancelake.format.memwal import wal_keys
    from lancelake.format.memwal.details import (
        Bucketed,
        ByValue,
        RegionSpec,
        Unsharded,
        decode_spec,
    )
    from lancelake.format.memwal.region_manifest import Generation
    from lancelake.memwal.collect import DAY, Collected
    from lancelake.memwal.merge import BackgroundMerger, MergedRegions
    from lancelake.memwal.region import list_regions
    from lancelake.memwal.search import ViewSearch, ensure_searchable, find_rows, pinned_search
    from lancelake.memwal.setup import bucketed, by_value, recorded, writer_options
    from lancelake.memwal.shape import TOMBSTONE, RowShape, live
    from lancelake.memwal.status import RegionStatus, TailEntry, WalStatus
    from lancelake.memwal.table_writer import TableWriter, Unit, region_of
    from lancelake.memwal.view import (
        Freshness,
        MemWalView,
        PinnedView,
        RegionRows,
        SeenKeys,
        ViewRequest,
    )
    from lancelake.memwal.writer import RegionWriter
else:
    __getattr__ = load_on_use(__name__)
