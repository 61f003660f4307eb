package lancelake;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.parser.ParserInterface;

/**
 * Parser of a session that lets Python translate OPTIMIZE, VACUUM, RESTORE, DESCRIBE HISTORY and
 * table-valued functions of a catalog, which Spark does not have, into statements that it has.
 */
public class Statements implements InvocationHandler {
  private static final Pattern OURS =
      Pattern.compile(
          "\\s*(optimize|vacuum|restore|desc(ribe)?\\s+history)\\s.*"
              + "|.*\\b(from|join)\\s+(`[^`]+`|\\w+)\\s*\\.\\s*system\\s*\\.\\s*\\w+\\s*\\(.*",
          Pattern.CASE_INSENSITIVE | Pattern.DOTALL);

  private final Object parser;
  private final Object session;

  public Statements(Object parser, Object session) {
    this.parser = parser;
    this.session = session;
  }

  public Object asParser() {
    Class[] interfaces = new Class[] {ParserInterface.class};
    return Proxy.newProxyInstance(ParserInterface.class.getClassLoader(), interfaces, this);
  }

  public Object invoke(Object self, Method method, Object[] arguments) throws Throwable {
    if (method.getName().startsWith("parsePlan") && OURS.matcher(text(arguments)).matches()) {
      Object translated = Planner.sessions().translate(session, text(arguments));
      if (translated != null) {
        arguments[0] = translated;
      }
    }
    try {
      return method.invoke(parser, arguments);
    } catch (InvocationTargetException error) {
      throw error.getCause();
    }
  }

  private static String text(Object[] arguments) {
    return arguments[0] instanceof String ? (String) arguments[0] : "";
  }
}
