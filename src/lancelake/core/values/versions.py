"""Values of versions: references, refs, differences, changes of rows."""

from typing import TYPE_CHECKING

from lancelake.core.values import load_on_use

if TYPE_CHECKING:
    from lancelake.commit.snapshot import (
        AsOf,
        AtTag,
        AtVersion,
        CommitMetrics,
        Latest,
        OnBranch,
        Reference,
        branch_location,
        time_reference,
    )
    from lancelake.feed.changed_rows import run
    from lancelake.feed.request import (
        CHANGE_TYPE,
        COMMIT_TIMESTAMP,
        COMMIT_VERSION,
        FEED_NAMES,
        ROW_ID,
        ChangeFeedPlan,
        ChangeKind,
        ChangeRequest,
        Point,
        VersionRange,
        parse_kinds,
    )
    from lancelake.format.refs import Branch, Tag, tag_time
    from lancelake.table.config import lacks_facts
    from lancelake.table.history import (
        ColumnFacts,
        Diff,
        FragmentFacts,
        IndexFacts,
        Pair,
        RefsBetween,
        VersionFacts,
        VersionSummary,
        version_rows,
    )
    from lancelake.table.operation_record import metrics_text, record_of
else:
    __getattr__ = load_on_use(__name__)
