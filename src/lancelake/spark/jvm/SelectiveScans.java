package lancelake;

import java.lang.reflect.Proxy;
import java.util.function.BooleanSupplier;
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
          return isMark(node);
        }

        public Object applyOrElse(Object node, scala.Function1 other) {
          return isMark(node) ? ((Filter) node).child() : other.apply(node);
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

  private static boolean isMark(Object node) {
    if (!(node instanceof Filter) || !(((Filter) node).condition() instanceof EqualNullSafe)) {
      return false;
    }
    EqualNullSafe condition = (EqualNullSafe) ((Filter) node).condition();
    return ((Filter) node).child() instanceof DataSourceV2ScanRelation
        && condition.left().semanticEquals(condition.right());
  }
}
