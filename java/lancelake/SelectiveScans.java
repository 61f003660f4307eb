package lancelake;

import java.lang.reflect.Proxy;
import java.math.BigInteger;
import java.util.function.BooleanSupplier;
import org.apache.spark.sql.catalyst.expressions.DynamicPruningSubquery;
import org.apache.spark.sql.catalyst.expressions.EqualNullSafe;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.optimizer.PushDownPredicates$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.trees.TreePattern;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.execution.dynamicpruning.CleanupDynamicPruningFilters$;
import org.apache.spark.sql.execution.dynamicpruning.PartitionPruning$;
import scala.runtime.AbstractPartialFunction;

/**
 * Plans the pruning of joins at run time. Spark prunes one side of a join by the values of the other
 * only if it finds a filter in the plan of the other, and a scan takes its filters out of the plan.
 * This rule runs Spark's own rule again with a filter that is always true above each such scan.
 */
public class SelectiveScans extends Rule {
  private static final BigInteger FEW_BYTES = BigInteger.valueOf(1 << 20);
  private static final BigInteger TIMES_SMALLER = BigInteger.valueOf(8);

  private static final AbstractPartialFunction MARK =
      new AbstractPartialFunction() {
        public boolean isDefinedAt(Object node) {
          return isSelective(node);
        }

        public Object applyOrElse(Object node, scala.Function1 other) {
          if (!isSelective(node)) {
            return other.apply(node);
          }
          DataSourceV2ScanRelation relation = (DataSourceV2ScanRelation) node;
          Expression column = (Expression) relation.output().apply(0);
          return new Filter(new EqualNullSafe(column, column), relation);
        }
      };

  private static final AbstractPartialFunction UNMARK =
      new AbstractPartialFunction() {
        public boolean isDefinedAt(Object node) {
          return isMark(node) || isCostly(node);
        }

        public Object applyOrElse(Object node, scala.Function1 other) {
          if (!isDefinedAt(node)) {
            return other.apply(node);
          }
          // The result itself is not looked at again, and filters are stacked.
          Object below = ((Filter) node).child();
          while (isDefinedAt(below)) {
            below = ((Filter) below).child();
          }
          return below;
        }
      };

  public TreeNode apply(TreeNode plan) {
    LogicalPlan before = (LogicalPlan) plan;
    if (before.containsPattern(TreePattern.DYNAMIC_PRUNING_SUBQUERY())) {
      return plan;
    }
    LogicalPlan marked = (LogicalPlan) before.transformUp(MARK);
    if (marked == before) {
      return plan;
    }
    LogicalPlan pruned = PartitionPruning$.MODULE$.apply(marked);
    if (pruned == marked) {
      return plan;
    }
    LogicalPlan clean = (LogicalPlan) pruned.transformWithSubqueries(UNMARK);
    if (!clean.containsPattern(TreePattern.DYNAMIC_PRUNING_SUBQUERY())) {
      return plan;
    }
    LogicalPlan pushed = PushDownPredicates$.MODULE$.apply(clean);
    return CleanupDynamicPruningFilters$.MODULE$.apply(pushed);
  }

  private static boolean isSelective(Object node) {
    if (!(node instanceof DataSourceV2ScanRelation)) {
      return false;
    }
    DataSourceV2ScanRelation relation = (DataSourceV2ScanRelation) node;
    Scan scan = relation.scan();
    return Proxy.isProxyClass(scan.getClass())
        && scan instanceof BooleanSupplier
        && relation.output().size() > 0
        && ((BooleanSupplier) scan).getAsBoolean();
  }

  /**
   * Whether pruning would cost more than it saves. For the values of a join, Spark plans the join once
   * more, with all that prunes its own sides, and most such joins have no result that could be used
   * again. Values of a side that is not much smaller than the scan hardly leave rows out of it.
   */
  private static boolean isCostly(Object node) {
    if (!(node instanceof Filter)
        || !(((Filter) node).condition() instanceof DynamicPruningSubquery)) {
      return false;
    }
    DynamicPruningSubquery pruning = (DynamicPruningSubquery) ((Filter) node).condition();
    BigInteger values = pruning.buildQuery().stats().sizeInBytes().bigInteger();
    BigInteger scanned = ((Filter) node).child().stats().sizeInBytes().bigInteger();
    return pruning.buildQuery().containsPattern(TreePattern.JOIN())
        || values.compareTo(FEW_BYTES) > 0
            && values.multiply(TIMES_SMALLER).compareTo(scanned) > 0;
  }

  private static boolean isMark(Object node) {
    if (!(node instanceof Filter) || !(((Filter) node).condition() instanceof EqualNullSafe)) {
      return false;
    }
    EqualNullSafe condition = (EqualNullSafe) ((Filter) node).condition();
    return ((Filter) node).child() instanceof DataSourceV2ScanRelation
        && condition.left().semanticEquals(condition.right());
  }
}
