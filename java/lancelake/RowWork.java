package lancelake;

import java.io.Serializable;
import java.util.ArrayList;
import org.apache.spark.TaskContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.connector.write.streaming.StreamingDataWriterFactory;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SQLExecution$;
import org.apache.spark.sql.execution.datasources.v2.python.PythonCustomMetric;
import org.apache.spark.sql.execution.datasources.v2.python.PythonWriterCommitMessage;
import org.apache.spark.sql.execution.datasources.v2.python.UserDefinedPythonDataSource;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;
import scala.reflect.ClassTag$;
import scala.runtime.AbstractFunction0;
import scala.runtime.AbstractFunction1;

/**
 * Sends the rows of partitions to a function in Python workers, and collects its messages. Spark
 * bounds the bytes of a batch by measuring its Arrow columns after every row, which takes longer
 * than filling them. Here batches end by the bytes of Spark's rows, which are known.
 */
public class RowWork extends AbstractFunction1 implements Serializable {
  private static final String BOUND = "spark.sql.execution.arrow.maxBytesPerBatch";
  private static final String NO_BOUND = String.valueOf(Integer.MAX_VALUE);

  /** What a row of another form than Spark's own is taken for. */
  private static final int UNKNOWN_BYTES = 1 << 16;

  private final UserDefinedPythonDataSource source;
  private final byte[] command;
  private final StructType schema;
  private final StructType answer;
  private final long batchBytes;

  public RowWork(
      UserDefinedPythonDataSource source,
      byte[] command,
      StructType schema,
      StructType answer,
      Number batchBytes) {
    this.source = source;
    this.command = command;
    this.schema = schema;
    this.answer = answer;
    this.batchBytes = batchBytes.longValue();
  }

  /** Returns the messages for all rows of a query, shown like any other query. */
  public Object[] collect(final QueryExecution query) {
    final RowWork work = this;
    Object messages =
        SQLExecution$.MODULE$.withNewExecutionId(
            query,
            scala.Option.apply("save"),
            new AbstractFunction0() {
              public Object apply() {
                RDD rows = query.toRdd();
                return rows.mapPartitions(work, false, ClassTag$.MODULE$.Object()).collect();
              }
            });
    return (Object[]) messages;
  }

  /** Returns what makes the writer of a task, of a batch of a stream too. */
  public Writers writers() {
    return new Writers(this);
  }

  /** Turns the rows of a partition into messages. */
  public Object apply(Object rows) {
    ArrayList messages = messages((Iterator) rows);
    return scala.jdk.javaapi.CollectionConverters.asScala(messages.iterator());
  }

  ArrayList messages(final Iterator rows) {
    SQLConf conf = new SQLConf();
    conf.settings().putAll(SQLConf.get().settings());
    conf.settings().put(BOUND, NO_BOUND);
    final Batches input = new Batches(rows, batchBytes);
    Object answers =
        SQLConf.withExistingConf(
            conf,
            new AbstractFunction0() {
              public Object apply() {
                return PythonWork.run(
                    source, command, schema, answer, PythonCustomMetric.pythonMetrics(), input);
              }
            });
    Iterator batches = (Iterator) answers;
    ArrayList found = new ArrayList();
    while (batches.hasNext()) {
      ColumnarBatch batch = (ColumnarBatch) batches.next();
      ArrowColumnVector message = (ArrowColumnVector) batch.column(0).getChild(0);
      for (int i = 0; i < batch.numRows(); i++) {
        found.add(message.getBinary(i));
      }
    }
    return found;
  }

  /** The batches of a partition, one after the other. */
  public static class Batches extends AbstractIterator {
    private final Iterator rows;
    private final long batchBytes;
    private final TaskContext context = TaskContext.get();

    Batches(Iterator rows, long batchBytes) {
      this.rows = rows;
      this.batchBytes = batchBytes;
    }

    public boolean hasNext() {
      return !context.isCompleted() && !context.isInterrupted() && rows.hasNext();
    }

    public Object next() {
      return new Batch(this, batchBytes);
    }
  }

  /** Rows until there are enough bytes, each as the only value of a row that is used again. */
  public static class Batch extends AbstractIterator {
    private final Batches batches;
    private final Object[] values = new Object[1];
    private final InternalRow wrapped = new GenericInternalRow(values);
    private long left;

    Batch(Batches batches, long bytes) {
      this.batches = batches;
      this.left = bytes;
    }

    public boolean hasNext() {
      return left > 0 && batches.hasNext();
    }

    public Object next() {
      Object row = batches.rows.next();
      left -= row instanceof UnsafeRow ? ((UnsafeRow) row).getSizeInBytes() : UNKNOWN_BYTES;
      values[0] = row;
      return wrapped;
    }
  }

  /** Makes the writers of a write that Spark plans. */
  public static class Writers implements DataWriterFactory, StreamingDataWriterFactory {
    private final RowWork work;

    Writers(RowWork work) {
      this.work = work;
    }

    public DataWriter createWriter(int partition, long task) {
      return new Writer(work);
    }

    public DataWriter createWriter(int partition, long task, long batch) {
      return new Writer(work);
    }
  }

  /** Writes the rows of a task all at once. */
  public static class Writer implements DataWriter {
    private final RowWork work;
    private byte[] message;

    Writer(RowWork work) {
      this.work = work;
    }

    public void write(Object row) {
      throw new UnsupportedOperationException("rows are written all at once");
    }

    public void writeAll(java.util.Iterator rows) {
      ArrayList found = work.messages(scala.jdk.javaapi.CollectionConverters.asScala(rows));
      message = (byte[]) found.get(0);
    }

    public WriterCommitMessage commit() {
      return new PythonWriterCommitMessage(message);
    }

    public void abort() {}

    public void close() {}
  }
}
