package lancelake;

import java.lang.reflect.Proxy;
import java.lang.reflect.UndeclaredThrowableException;
import java.util.Map;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.execution.SQLExecution;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.execution.datasources.v2.V2CommandExec;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.execution.metric.SQLMetrics;
import org.apache.spark.unsafe.Platform;
import scala.runtime.AbstractFunction1;

/**
 * Hands DELETE, UPDATE and MERGE of Lance tables to Python. Spark's own plans for them read every
 * column of the rows concerned and write row by row.
 */
public class RowCommands extends SparkStrategy {
  /** Makes the strategy of a session. */
  public static class Builder extends AbstractFunction1 {
    public Object apply(Object session) {
      return new RowCommands();
    }
  }

  public scala.collection.immutable.Seq apply(LogicalPlan plan) {
    LogicalPlan target = target(plan);
    if (target == null || !isOurs(target)) {
      return scala.collection.immutable.Nil$.MODULE$;
    }
    return scala.collection.immutable.Nil$.MODULE$.$colon$colon(new Exec(plan));
  }

  private static LogicalPlan target(LogicalPlan plan) {
    if (plan instanceof DeleteFromTable) {
      return ((DeleteFromTable) plan).table();
    }
    if (plan instanceof UpdateTable) {
      return ((UpdateTable) plan).table();
    }
    if (plan instanceof MergeIntoTable) {
      return ((MergeIntoTable) plan).targetTable();
    }
    return null;
  }

  /** Whether a target reads a Lance table; only the table itself can be changed. */
  private static boolean isOurs(Object node) {
    if (node instanceof InMemoryRelation) {
      node = ((InMemoryRelation) node).cacheBuilder().logicalPlan();
    }
    if (node instanceof DataSourceV2ScanRelation) {
      node = ((DataSourceV2ScanRelation) node).relation();
    }
    if (node instanceof DataSourceV2Relation) {
      Table table = ((DataSourceV2Relation) node).table();
      return Proxy.isProxyClass(table.getClass())
          && "lance".equals(((Map) TableMethods.call(table, "properties")).get("provider"));
    }
    scala.collection.immutable.Seq children = ((TreeNode) node).children();
    for (int i = 0; i < children.size(); i++) {
      if (isOurs(children.apply(i))) {
        return true;
      }
    }
    return false;
  }

  /** Runs the command in Python, on the driver. */
  public static class Exec extends V2CommandExec {
    private static final String[] COUNTS = new String[] {"inserted", "updated", "deleted"};

    private final LogicalPlan plan;
    private final scala.collection.immutable.Map metrics;

    Exec(LogicalPlan plan) {
      this.plan = plan;
      scala.collection.immutable.Map every =
          (scala.collection.immutable.Map) scala.collection.immutable.Map$.MODULE$.empty();
      for (int i = 0; i < COUNTS.length; i++) {
        Object metric = SQLMetrics.createMetric(sparkContext(), "number of " + COUNTS[i] + " rows");
        every = (scala.collection.immutable.Map) every.updated(COUNTS[i], metric);
      }
      this.metrics = every;
    }

    /** Numbers of rows, which Spark's UI shows for the command. */
    public scala.collection.immutable.Map metrics() {
      return metrics;
    }

    public scala.collection.immutable.Seq run() {
      try {
        report(Planner.sessions().change(session(), plan));
      } catch (UndeclaredThrowableException error) {
        // The exceptions of Spark are checked, and this interface declares none.
        Platform.throwException(error.getUndeclaredThrowable());
      }
      return scala.collection.immutable.Nil$.MODULE$;
    }

    private void report(Map counts) {
      for (int i = 0; i < COUNTS.length; i++) {
        SQLMetric metric = (SQLMetric) metrics.apply(COUNTS[i]);
        metric.set(((Number) counts.get(COUNTS[i])).longValue());
      }
      String execution = sparkContext().getLocalProperty(SQLExecution.EXECUTION_ID_KEY());
      scala.collection.immutable.Seq values =
          (scala.collection.immutable.Seq) metrics.values().toSeq();
      SQLMetrics.postDriverMetricUpdates(sparkContext(), execution, values);
    }

    public scala.collection.immutable.Seq output() {
      return scala.collection.immutable.Nil$.MODULE$;
    }

    public scala.collection.immutable.Seq children() {
      return scala.collection.immutable.Nil$.MODULE$;
    }

    public TreeNode withNewChildrenInternal(scala.collection.immutable.IndexedSeq children) {
      return this;
    }

    public String nodeName() {
      return "Lance" + plan.getClass().getSimpleName();
    }

    public int productArity() {
      return 0;
    }

    public Object productElement(int position) {
      throw new IndexOutOfBoundsException(String.valueOf(position));
    }

    public boolean canEqual(Object other) {
      return other instanceof Exec;
    }

    public boolean equals(Object other) {
      return other == this;
    }

    public int hashCode() {
      return System.identityHashCode(this);
    }
  }
}
