package lancelake;

import java.lang.reflect.Field;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.Scan;
import py4j.Py4JException;

/**
 * Keeps what an object of Python answered. Spark asks for the name of a table or the description of
 * a scan a dozen times per operator of a plan, and each question to Python is a message. Tables
 * and catalogs answer the same for ever, other objects until Spark hands something over to them.
 * Objects of Python that are answers are wrapped likewise.
 */
public class Remembered implements InvocationHandler {
  private static final Set CONSTANT =
      new HashSet(
          Arrays.asList(
              new String[] {
                "canRenameConflictingMetadataColumns", "capabilities", "columnStats",
                "columnarSupportMode", "columns", "constraints", "description",
                "estimateSizeInBytes", "estimateStatistics", "filterAttributes", "getAsBoolean",
                "hashCode", "id", "metadataColumns", "name", "numRows", "partitioning", "properties",
                "pushedPredicates", "readSchema", "reflectsFullyPushedDownFilters", "schema",
                "sizeInBytes", "supportedCustomMetrics", "supportsIterativePushdown", "toString",
                "version"
              }));
  /** The parts of what is planned together. */
  private static final List PLANNED =
      Arrays.asList(
          new String[] {"planInputPartitions", "createReaderFactory", "reportDriverMetrics"});

  private static final int METRICS = 2;

  /** How Py4J begins the message of an exception that Python has raised. */
  private static final String RAISED = "An exception was raised by the Python Proxy";

  private final String id;

  private final InvocationHandler python;
  private volatile ConcurrentHashMap answers = new ConcurrentHashMap();

  /** Makes others; Py4J cannot call static methods of a class that was compiled at run time. */
  public Remembered() {
    this.id = null;
    this.python = null;
  }

  private Remembered(String id, InvocationHandler python) {
    this.id = id;
    this.python = python;
  }

  /** Returns an object of Python that knows the answers which Python says at once. */
  public Object of(Object object, byte[] facts) throws Exception {
    Object knowing = of(object);
    ((Remembered) Proxy.getInvocationHandler(knowing)).answers = Facts.decode(facts);
    return knowing;
  }

  /** The metrics of all scans. */
  public void shareMetrics(CustomMetric[] metrics) {
    Facts.scanMetrics = metrics;
  }

  /** Returns an object of Python with a memory; others, and one that has a memory, as they are. */
  public Object of(Object object) throws Exception {
    if (object == null || !Proxy.isProxyClass(object.getClass())) {
      return object;
    }
    InvocationHandler handler = Proxy.getInvocationHandler(object);
    if (!handler.getClass().getName().equals("py4j.reflection.PythonProxyHandler")) {
      return object;
    }
    Field id = handler.getClass().getDeclaredField("id");
    id.setAccessible(true);
    Class[] interfaces = object.getClass().getInterfaces();
    Remembered made = new Remembered((String) id.get(handler), handler);
    return Proxy.newProxyInstance(object.getClass().getClassLoader(), interfaces, made);
  }

  /** The name of the object in Python, which answers: a new process uses the names again. */
  public String id() throws Throwable {
    try {
      python.invoke(this, Object.class.getMethod("toString", new Class[0]), null);
    } catch (Py4JException error) {
      throw Planner.lost(error);
    }
    return id;
  }

  public Object invoke(Object self, Method method, Object[] arguments) throws Throwable {
    if (arguments == null || arguments.length == 0) {
      int part = self instanceof Planned ? PLANNED.indexOf(method.getName()) : -1;
      if (part >= 0) {
        return planned(self, part);
      }
      return isConstant(method) ? remembered(self, method) : asked(self, method, arguments);
    }
    if (method.getName().equals("equals")) {
      return Boolean.valueOf(isEqual(self, arguments[0]));
    }
    boolean changes = !(self instanceof Table) && !(self instanceof CatalogPlugin);
    try {
      Object answer = asked(self, method, arguments);
      if (changes) {
        forget();
      }
      if (method.getName().equals("pushPredicates")) {
        answers.put("pushedPredicates", others((Predicate[]) arguments[0], (Predicate[]) answer));
      }
      return answer;
    } catch (Throwable error) {
      if (changes) {
        forget();
      }
      throw error;
    }
  }

  private void forget() {
    // Another thread may still put an answer from before into the map that is left behind.
    answers = new ConcurrentHashMap();
  }

  /** The predicates that were pushed: those that Spark need not evaluate. */
  private static Predicate[] others(Predicate[] every, Predicate[] left) {
    List pushed = new ArrayList(Arrays.asList(every));
    pushed.removeAll(Arrays.asList(left));
    return (Predicate[]) pushed.toArray(new Predicate[pushed.size()]);
  }

  private synchronized Object planned(Object self, int part) throws Throwable {
    Object[] parts = (Object[]) answers.get("planned");
    if (parts == null && part == METRICS) {
      return new CustomTaskMetric[0];
    }
    if (parts == null) {
      parts = (Object[]) asked(self, Planned.class.getMethod("planned", new Class[0]), null);
      answers.put("planned", parts);
    }
    return parts[part];
  }

  private static boolean isConstant(Method method) {
    // A scan is read as often as Spark likes, but each batch of a write is one of its own.
    return CONSTANT.contains(method.getName())
        || method.getName().equals("toBatch") && method.getDeclaringClass() == Scan.class;
  }

  private Object remembered(Object self, Method method) throws Throwable {
    if (method.getName().equals("toBatch") && self instanceof Planned) {
      return self;
    }
    ConcurrentHashMap known = answers;
    Object found = known.get(method.getName());
    if (found == null) {
      found = asked(self, method, null);
      known.put(method.getName(), found == null ? Facts.NULL : found);
    }
    return found == Facts.NULL ? null : found;
  }

  private Object asked(Object self, Method method, Object[] arguments) throws Throwable {
    try {
      return of(python.invoke(self, method, arguments));
    } catch (Py4JException error) {
      if (error.getMessage().startsWith(RAISED)) {
        throw error;
      }
      return withoutPython(self, method, Planner.lost(error));
    }
  }

  /** What is known without the process that has died; else its error. */
  private static Object withoutPython(Object self, Method method, RuntimeException error) {
    // Spark compares the plans that it keeps with those of other queries.
    if (method.getName().equals("toString")) {
      return "lost " + System.identityHashCode(Proxy.getInvocationHandler(self));
    }
    if (method.getName().equals("hashCode")) {
      return Integer.valueOf(System.identityHashCode(Proxy.getInvocationHandler(self)));
    }
    // Otherwise Spark would show an error of its own, that a failed write could not be undone.
    if (method.getName().startsWith("abort")) {
      return null;
    }
    throw error;
  }

  /** Objects of Python are compared by their texts. */
  private static boolean isEqual(Object self, Object other) {
    if (self == other) {
      return true;
    }
    return other != null
        && Proxy.isProxyClass(other.getClass())
        && self.toString().equals(other.toString());
  }
}
