package lancelake;

import java.lang.reflect.Proxy;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.KnownNullable;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Not;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import scala.runtime.AbstractFunction1;
import scala.runtime.AbstractPartialFunction;

/**
 * Keeps conditions from Spark's translation of pushed expressions that it asserts not to exist: AND,
 * OR and NOT of a null or of a cast, below another expression. They are wrapped in a node that
 * changes no value and has no translation.
 */
public class SafePredicates extends Rule {
  private final AbstractFunction1 safe =
      new AbstractFunction1() {
        public Object apply(Object expression) {
          return safe((Expression) expression);
        }
      };

  private final AbstractPartialFunction nodes =
      new AbstractPartialFunction() {
        public boolean isDefinedAt(Object node) {
          return true;
        }

        public Object applyOrElse(Object node, scala.Function1 other) {
          if (node instanceof Filter) {
            Filter filter = (Filter) node;
            Expression condition = safeBelow(filter.condition());
            return condition == filter.condition() ? node : new Filter(condition, filter.child());
          }
          return ((LogicalPlan) node).mapExpressions(safe);
        }
      };

  public TreeNode apply(TreeNode plan) {
    return reads((LogicalPlan) plan) ? (TreeNode) ((LogicalPlan) plan).transform(nodes) : plan;
  }

  /** Rewrites the operands of a condition, whose own AND, OR and NOT are translated safely. */
  private Expression safeBelow(Expression expression) {
    if (!isConnective(expression)) {
      return safe(expression);
    }
    return (Expression)
        expression.mapChildren(
            new AbstractFunction1() {
              public Object apply(Object child) {
                return safeBelow((Expression) child);
              }
            });
  }

  private Expression safe(Expression expression) {
    if (expression instanceof KnownNullable) {
      return expression;
    }
    if (isConnective(expression) && hasOtherOperand(expression)) {
      return new KnownNullable(expression);
    }
    return (Expression) expression.mapChildren(safe);
  }

  private static boolean isConnective(Expression expression) {
    return expression instanceof And || expression instanceof Or || expression instanceof Not;
  }

  private static boolean hasOtherOperand(Expression expression) {
    scala.collection.immutable.Seq children = expression.children();
    for (int i = 0; i < children.size(); i++) {
      Object child = children.apply(i);
      boolean isNull = child instanceof Literal && ((Literal) child).value() == null;
      if (isNull || child instanceof Cast) {
        return true;
      }
    }
    return false;
  }

  /** Whether a plan reads a table of Python. */
  private static boolean reads(LogicalPlan plan) {
    scala.collection.immutable.Seq leaves = plan.collectLeaves();
    for (int i = 0; i < leaves.size(); i++) {
      Object leaf = leaves.apply(i);
      if (leaf instanceof DataSourceV2Relation) {
        Table table = ((DataSourceV2Relation) leaf).table();
        if (Proxy.isProxyClass(table.getClass())) {
          return true;
        }
      }
    }
    return false;
  }

  /** Makes the rule of a session. */
  public static class Builder extends AbstractFunction1 {
    public Object apply(Object session) {
      return new SafePredicates();
    }
  }
}
