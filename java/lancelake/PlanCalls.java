package lancelake;

import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import net.razorvine.pickle.Pickler;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.execution.datasources.v2.python.PythonCustomTaskMetric;
import org.apache.spark.sql.execution.datasources.v2.python.PythonInputPartition;

/** Does for Python, in one call, what would take one for each item. */
public class PlanCalls {
  private static final Object[] UNKNOWN = new Object[] {"unknown"};

  public long partitionBytes(Object session) {
    return ((SparkSession) session).sessionState().conf().filesMaxPartitionBytes();
  }

  /** Pickles the settings of catalogs: those of a session, and of its application. */
  public byte[] catalogSettings(Object given) throws Exception {
    SparkSession session = (SparkSession) given;
    Map settings = new HashMap();
    scala.Tuple2[] ofApplication = session.sparkContext().conf().getAll();
    for (int i = 0; i < ofApplication.length; i++) {
      put(settings, ofApplication[i]);
    }
    scala.collection.Iterator own = session.sessionState().conf().getAllConfs().iterator();
    while (own.hasNext()) {
      put(settings, (scala.Tuple2) own.next());
    }
    return new Pickler().dumps(settings);
  }

  private static void put(Map settings, scala.Tuple2 setting) {
    if (((String) setting._1()).startsWith("spark.sql.catalog.")) {
      settings.put(setting._1(), setting._2());
    }
  }

  /** Cuts bytes into partitions of the given lengths. */
  public InputPartition[] partitions(byte[] data, String lengths) {
    String[] each = lengths.isEmpty() ? new String[0] : lengths.split(",");
    InputPartition[] made = new InputPartition[each.length];
    int start = 0;
    for (int i = 0; i < each.length; i++) {
      int end = start + Integer.parseInt(each[i]);
      made[i] = new PythonInputPartition(i, Arrays.copyOfRange(data, start, end));
      start = end;
    }
    return made;
  }

  /** Returns what `Planned` answers. */
  public Object[] planned(byte[] data, String lengths, Object factory, String metrics) {
    return new Object[] {partitions(data, lengths), factory, metrics(metrics)};
  }

  /** Takes pairs of a name and a value. */
  public CustomTaskMetric[] metrics(String pairs) {
    String[] each = pairs.isEmpty() ? new String[0] : pairs.split(",");
    CustomTaskMetric[] made = new CustomTaskMetric[each.length];
    for (int i = 0; i < each.length; i++) {
      String[] pair = each[i].split("=");
      made[i] = new PythonCustomTaskMetric(pair[0], Long.parseLong(pair[1]));
    }
    return made;
  }

  /** Returns the predicates at some positions. */
  public Predicate[] chosen(Predicate[] predicates, String positions) {
    String[] each = positions.isEmpty() ? new String[0] : positions.split(",");
    Predicate[] made = new Predicate[each.length];
    for (int i = 0; i < each.length; i++) {
      made[i] = predicates[Integer.parseInt(each[i])];
    }
    return made;
  }

  /** Pickles predicates; one with more children than this many, or nested deeper, is unknown. */
  public byte[] described(Predicate[] predicates, int most, int depth) throws Exception {
    List found = new ArrayList();
    for (int i = 0; i < predicates.length; i++) {
      boolean isLong = predicates[i].children().length > most;
      found.add(isLong ? UNKNOWN : described(predicates[i], depth));
    }
    return new Pickler().dumps(found);
  }

  /** Pickles a predicate; what is nested deeper than this is unknown. */
  public byte[] describedAlone(Object predicate, int depth) throws Exception {
    return new Pickler().dumps(described((Expression) predicate, depth));
  }

  private static Object described(Expression expression, int depth) {
    String kind = expression.getClass().getSimpleName();
    if (kind.equals("FieldReference")) {
      return new Object[] {"column", ((NamedReference) expression).fieldNames()};
    }
    if (kind.equals("LiteralValue")) {
      return described((Literal) expression);
    }
    if (!(expression instanceof Predicate) || depth == 0) {
      return UNKNOWN;
    }
    List operands = operands((Predicate) expression);
    Object[] each = new Object[operands.size()];
    for (int i = 0; i < each.length; i++) {
      each[i] = described((Expression) operands.get(i), depth - 1);
    }
    return new Object[] {"condition", ((Predicate) expression).name(), each};
  }

  /** Returns the operands of a predicate; a chain of AND or OR, which Spark nests, is flat. */
  private static List operands(Predicate whole) {
    if (!whole.name().equals("AND") && !whole.name().equals("OR")) {
      return Arrays.asList(whole.children());
    }
    List found = new ArrayList();
    ArrayDeque open = new ArrayDeque();
    open.push(whole);
    while (!open.isEmpty()) {
      Object each = open.pop();
      if (each instanceof Predicate && ((Predicate) each).name().equals(whole.name())) {
        Expression[] children = ((Predicate) each).children();
        for (int i = children.length - 1; i >= 0; i--) {
          open.push(children[i]);
        }
      } else {
        found.add(each);
      }
    }
    return found;
  }

  /** Numbers with a point are sent as text: a float is not the double of the same digits. */
  private static Object described(Literal literal) {
    Object value = literal.value();
    if (value instanceof Float || value instanceof Double) {
      return new Object[] {"float", value.toString()};
    }
    if (value instanceof Number && !(value instanceof java.math.BigDecimal)) {
      return Long.valueOf(((Number) value).longValue());
    }
    if (value == null || value instanceof Boolean || value instanceof byte[]) {
      return value;
    }
    String type = literal.dataType().typeName();
    if (type.startsWith("decimal")) {
      return new Object[] {"decimal", value.toString()};
    }
    return type.equals("string") ? (Object) value.toString() : UNKNOWN;
  }
}
