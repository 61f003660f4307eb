package lancelake;

import java.io.Serializable;
import java.util.LinkedHashSet;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.util.TransferPair;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.execution.datasources.v2.python.PythonCustomMetric;
import org.apache.spark.sql.execution.datasources.v2.python.PythonCustomTaskMetric;
import org.apache.spark.sql.execution.datasources.v2.python.PythonInputPartition;
import org.apache.spark.sql.execution.datasources.v2.python.UserDefinedPythonDataSource;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.ArrowUtils;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.util.AccumulatorV2;
import org.apache.spark.util.TaskCompletionListener;

/**
 * Hands the Arrow batches of a Python worker to Spark as columns. Spark's own reader of Python
 * sources turns every row into Spark's row format, and the plan above it does so once more.
 */
public class ColumnarReaderFactory implements PartitionReaderFactory, Serializable {
  private final UserDefinedPythonDataSource source;
  private final byte[] command;
  private final StructType schema;

  public ColumnarReaderFactory(
      UserDefinedPythonDataSource source, byte[] command, StructType schema) {
    this.source = source;
    this.command = command;
    this.schema = schema;
  }

  public boolean supportColumnarReads(InputPartition partition) {
    return true;
  }

  public PartitionReader createReader(InputPartition partition) {
    throw new UnsupportedOperationException("rows are read as columns");
  }

  public PartitionReader createColumnarReader(InputPartition partition) {
    return new Reader(source, command, schema, (PythonInputPartition) partition);
  }

  /**
   * Batches that were handed out and not closed yet. Python functions keep a batch while the next
   * ones are read, so each owns its memory, and the worker's allocator is closed before they are.
   */
  public static class Open implements TaskCompletionListener {
    private final LinkedHashSet batches = new LinkedHashSet();
    private final BufferAllocator allocator =
        ArrowUtils.rootAllocator().newChildAllocator("lancelake", 0, Long.MAX_VALUE);

    /** Moves values to a column of their own, without a copy. */
    ColumnVector owned(ArrowColumnVector column) {
      TransferPair pair = column.getValueVector().getTransferPair(allocator);
      pair.transfer();
      return new ArrowColumnVector(pair.getTo());
    }

    synchronized void add(Batch batch) {
      batches.add(batch);
    }

    synchronized boolean remove(Batch batch) {
      return batches.remove(batch);
    }

    public void onTaskCompletion(TaskContext context) {
      Object[] left = batches.toArray();
      for (int i = 0; i < left.length; i++) {
        ((Batch) left[i]).close();
      }
      allocator.close();
    }
  }

  /** Columns that are closed once, by the first caller. */
  public static class Batch extends ColumnarBatch {
    private final Open open;

    Batch(ColumnVector[] columns, Open open) {
      super(columns);
      this.open = open;
      open.add(this);
    }

    public void close() {
      if (open.remove(this)) {
        super.close();
      }
    }

    public void closeIfFreeable() {
      close();
    }
  }

  /** Reads one partition. */
  public static class Reader implements PartitionReader {
    private final scala.collection.immutable.Map metrics;
    private final scala.collection.Iterator batches;
    private final int columns;
    private final Open open;

    Reader(
        UserDefinedPythonDataSource source,
        byte[] command,
        StructType schema,
        PythonInputPartition partition) {
      this.metrics = PythonCustomMetric.pythonMetrics();
      this.columns = schema.length();
      InternalRow bytes = new GenericInternalRow(new Object[] {partition.pickedPartition()});
      InternalRow wrapped = new GenericInternalRow(new Object[] {bytes});
      Object rows = scala.collection.Iterator$.MODULE$.single(wrapped);
      scala.collection.Iterator input = scala.collection.Iterator$.MODULE$.single(rows);
      StructType sent = UserDefinedPythonDataSource.readInputSchema();
      this.batches = PythonWork.run(source, command, sent, schema, metrics, input);
      this.open = new Open();
      TaskContext.get().addTaskCompletionListener(open);
    }

    public boolean next() {
      return batches.hasNext();
    }

    public Object get() {
      ColumnarBatch batch = (ColumnarBatch) batches.next();
      ArrowColumnVector struct = (ArrowColumnVector) batch.column(0);
      ColumnVector[] members = new ColumnVector[columns];
      for (int i = 0; i < columns; i++) {
        members[i] = open.owned((ArrowColumnVector) struct.getChild(i));
      }
      ColumnarBatch result = new Batch(members, open);
      result.setNumRows(batch.numRows());
      return result;
    }

    public CustomTaskMetric[] currentMetricsValues() {
      CustomTaskMetric[] values = new CustomTaskMetric[metrics.size()];
      scala.collection.Iterator pairs = metrics.iterator();
      for (int i = 0; i < values.length; i++) {
        scala.Tuple2 pair = (scala.Tuple2) pairs.next();
        Object value = ((AccumulatorV2) pair._2()).value();
        values[i] =
            new PythonCustomTaskMetric((String) pair._1(), ((Long) value).longValue());
      }
      return values;
    }

    public void close() {}
  }
}
