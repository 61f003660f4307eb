package lancelake;

import org.apache.spark.sql.connector.read.streaming.Offset;

/** A position in a stream, as Python writes it. */
public class StreamOffset extends Offset {
  private final String json;

  public StreamOffset(Object json) {
    this.json = (String) json;
  }

  public String json() {
    return json;
  }
}
