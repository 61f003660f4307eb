package lancelake;

import java.util.function.Function;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import scala.runtime.AbstractFunction1;
import scala.runtime.AbstractFunction2;
import scala.runtime.BoxedUnit;

/** Statements of ours for `spark.sql.extensions`: OPTIMIZE, VACUUM, RESTORE and others. */
public class LanceExtensions extends AbstractFunction1 {
  public Object apply(Object extensions) {
    ((SparkSessionExtensions) extensions)
        .injectParser(
            new AbstractFunction2() {
              public Object apply(Object session, Object parser) {
                return (ParserInterface) new Statements(parser, new Translation(session)).asParser();
              }
            });
    return BoxedUnit.UNIT;
  }

  /** Asks Python, which is only started when a statement may be ours. */
  private static final class Translation implements Function {
    private final Object session;

    Translation(Object session) {
      this.session = session;
    }

    public Object apply(Object statement) {
      return Planner.sessions().translate(session, (String) statement);
    }
  }
}
