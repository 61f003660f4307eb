package lancelake;

import org.apache.spark.sql.connector.catalog.Table;

/** Calls of methods that the compiler takes from Relation, a type that Spark 4.1 lacks. */
final class TableMethods {
  private TableMethods() {}

  static Object call(Table table, String method) {
    try {
      return Table.class.getMethod(method, new Class[0]).invoke(table, new Object[0]);
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException(method + " of a table failed", error);
    }
  }
}
