package lancelake;

import java.lang.reflect.Field;
import java.lang.reflect.Proxy;
import java.util.Collections;
import java.util.Map;
import java.util.Set;
import java.util.WeakHashMap;
import org.apache.spark.sql.ExperimentalMethods;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SessionState;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction1;
import scala.runtime.AbstractFunction2;
import scala.runtime.BoxedUnit;

/**
 * Statements, rules and commands of ours, for `spark.sql.extensions`. A session that was started
 * without the setting gets them with its first Lance table, and so do those derived from it.
 */
public class LanceExtensions extends AbstractFunction1 {
  private static final Set EXTENDED = Collections.newSetFromMap(new WeakHashMap());

  public Object apply(Object given) {
    synchronized (EXTENDED) {
      if (!EXTENDED.add(given)) {
        return BoxedUnit.UNIT;
      }
    }
    SparkSessionExtensions extensions = (SparkSessionExtensions) given;
    extensions.injectParser(new Parsers());
    extensions.injectHintResolutionRule(new TableRules.WriteBuilder());
    extensions.injectResolutionRule(new TableRules.StreamBuilder());
    extensions.injectOptimizerRule(new SafePredicates.Builder());
    extensions.injectPlannerStrategy(new RowCommands.Builder());
    return BoxedUnit.UNIT;
  }

  /** Gives a session what it does not have yet. */
  public static void attach(Object given) throws Exception {
    SparkSession session = (SparkSession) given;
    ExperimentalMethods methods = session.experimental();
    synchronized (methods) {
      // Spark has no extension point behind its pushdown.
      if (!hasAny(methods.extraOptimizations(), SelectiveScans.class)) {
        methods.extraOptimizations_$eq(with(methods.extraOptimizations(), new SelectiveScans()));
      }
      SessionState state = session.sessionState();
      Object analyzer = state.analyzer();
      // Spark 4.2 leaves the injected ones out of sessions with Hive.
      Seq hints = (Seq) field(analyzer, "hintResolutionRules").get(analyzer);
      if (!hasAny(hints, TableRules.Write.class)) {
        add(analyzer, "hintResolutionRules", new TableRules.Write(session));
      }
      if (isOurs(state.sqlParser())) {
        return;
      }
      new LanceExtensions().apply(session.extensions());
      replace(state, "sqlParser", new Parsers().apply(session, state.sqlParser()));
      add(analyzer, "extendedResolutionRules", new TableRules.Stream());
      methods.extraStrategies_$eq(with(methods.extraStrategies(), new RowCommands()));
    }
  }

  /** Lets a session load a catalog again, with its settings of then. */
  public static void forget(Object given, String name) throws Exception {
    Object manager = ((SparkSession) given).sessionState().catalogManager();
    Map catalogs = CollectionConverters.asJava((scala.collection.mutable.Map) field(manager, "catalogs").get(manager));
    catalogs.remove(name);
    catalogs.remove("spark_catalog");
  }

  private static boolean isOurs(Object parser) {
    return Proxy.isProxyClass(parser.getClass())
        && Proxy.getInvocationHandler(parser) instanceof Statements;
  }

  private static boolean hasAny(Seq objects, Class kind) {
    for (int i = 0; i < objects.size(); i++) {
      if (objects.apply(i).getClass() == kind) {
        return true;
      }
    }
    return false;
  }

  private static Seq with(Seq objects, Object another) {
    return (Seq) objects.appended(another);
  }

  private static void add(Object owner, String name, Object rule) throws Exception {
    Field field = field(owner, name);
    field.set(owner, with((Seq) field.get(owner), rule));
  }

  private static void replace(Object owner, String name, Object value) throws Exception {
    field(owner, name).set(owner, value);
  }

  private static Field field(Object owner, String name) throws Exception {
    Class owned = owner.getClass();
    while (!declares(owned, name)) {
      owned = owned.getSuperclass();
    }
    Field field = owned.getDeclaredField(name);
    field.setAccessible(true);
    return field;
  }

  private static boolean declares(Class owner, String name) {
    Field[] fields = owner.getDeclaredFields();
    for (int i = 0; i < fields.length; i++) {
      if (fields[i].getName().equals(name)) {
        return true;
      }
    }
    return false;
  }

  /** Makes the parser of a session from the one that it has. */
  public static class Parsers extends AbstractFunction2 {
    public Object apply(Object session, Object parser) {
      return (ParserInterface) new Statements(parser, session).asParser();
    }
  }
}
