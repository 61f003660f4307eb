package lancelake;

import java.util.Map;
import org.apache.spark.sql.connector.catalog.Table;

/** A table whose columns differ in a stream. */
public interface Streamed {
  /** The table as a stream with these options reads it. */
  Table asStream(Map options);
}
