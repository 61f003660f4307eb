"""Values of conditions: comparisons, literals, their text."""

from typing import TYPE_CHECKING

from lancelake.core.values import load_on_use

if TYPE_CHECKING:
    from lancelake.expr.condition import (
        Column,
        ColumnComparison,
        Comparison,
        Condition,
        Constant,
        IsNan,
        IsNull,
        Membership,
        Not,
        Operator,
        TextMatch,
        TextTest,
        all_of,
        any_of,
        negated,
        paths_of,
    )
    from lancelake.expr.literals import fits, is_binary, is_float, is_text
    from lancelake.expr.predicate import Predicate, condition_sql, joined
    from lancelake.expr.structure import MAX_DEPTH
    from lancelake.scan.planner import fragment_test
else:
    __getattr__ = load_on_use(__name__)
