package lancelake;

import java.lang.reflect.Field;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Table;
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
                "hashCode", "metadataColumns", "name", "numRows", "partitioning", "properties",
                "pushedPredicates", "readSchema", "reflectsFullyPushedDownFilters", "schema",
                "sizeInBytes", "supportedCustomMetrics", "supportsIterativePushdown", "toString",
                "version"
              }));
  private static final Object NULL = new Object();

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
      return isConstant(method) ? remembered(self, method) : asked(self, method, arguments);
    }
    if (method.getName().equals("equals")) {
      return Boolean.valueOf(isEqual(self, arguments[0]));
    }
    boolean changes = !(self instanceof Table) && !(self instanceof CatalogPlugin);
    try {
      return asked(self, method, arguments);
    } finally {
      if (changes) {
        // Another thread may still put an answer from before into the map that is left behind.
        answers = new ConcurrentHashMap();
      }
    }
  }

  private static boolean isConstant(Method method) {
    // A scan is read as often as Spark likes, but each batch of a write is one of its own.
    return CONSTANT.contains(method.getName())
        || method.getName().equals("toBatch") && method.getDeclaringClass() == Scan.class;
  }

  private Object remembered(Object self, Method method) throws Throwable {
    ConcurrentHashMap known = answers;
    Object found = known.get(method.getName());
    if (found == null) {
      found = asked(self, method, null);
      known.put(method.getName(), found == null ? NULL : found);
    }
    return found == NULL ? null : found;
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
