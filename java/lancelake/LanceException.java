package lancelake;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.QueryContext;
import org.apache.spark.SparkThrowable;

/** An error of ours, which Spark passes on as it is. */
public class LanceException extends IllegalArgumentException implements SparkThrowable {
  public LanceException(String message, Throwable cause) {
    super(message, cause);
  }

  public String getCondition() {
    return null;
  }

  public String getErrorClass() {
    return null;
  }

  public String getSqlState() {
    return null;
  }

  public Map getMessageParameters() {
    return new HashMap();
  }

  public String getDefaultMessageTemplate() {
    return getMessage();
  }

  public QueryContext[] getQueryContext() {
    return new QueryContext[0];
  }
}
