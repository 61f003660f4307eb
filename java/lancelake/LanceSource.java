package lancelake;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.execution.streaming.Sink;
import org.apache.spark.sql.execution.streaming.sources.ForeachBatchSink;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.CreatableRelationProvider;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.sources.StreamSinkProvider;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction2;
import scala.runtime.BoxedUnit;

/**
 * Lance tables by their paths, for `format("lance")`. Rows are handed to Python as a whole, with the
 * mode of the write: a table that does not exist yet has no columns that Spark could check.
 */
public class LanceSource
    implements TableProvider, CreatableRelationProvider, StreamSinkProvider, DataSourceRegister {
  private Table table;

  public String shortName() {
    return "lance";
  }

  public boolean supportsExternalMetadata() {
    return true;
  }

  public StructType inferSchema(CaseInsensitiveStringMap options) {
    table = load(options.asCaseSensitiveMap(), null);
    return table.schema();
  }

  public Table getTable(StructType schema, Transform[] parts, Map properties) {
    return table == null ? load(properties, schema) : table;
  }

  private static Table load(Map options, StructType schema) {
    return (Table) Planner.sessions().table(SparkSession.active(), new HashMap(options), schema);
  }

  public boolean supportsDataType(DataType type) {
    return true;
  }

  public BaseRelation createRelation(
      SQLContext context, SaveMode mode, scala.collection.immutable.Map options, Dataset rows) {
    Planner.sessions().save(rows.sparkSession(), rows, mode.name(), javaMap(options));
    return new Written(context, rows.schema());
  }

  public Sink createSink(
      SQLContext context,
      scala.collection.immutable.Map options,
      scala.collection.immutable.Seq parts,
      OutputMode mode) {
    return new Batches(javaMap(options));
  }

  private static Map javaMap(scala.collection.immutable.Map options) {
    return new HashMap(CollectionConverters.asJava(options));
  }

  /** Hands each batch of a stream to Python as rows. */
  public static class Batches implements Sink {
    private final Map options;

    Batches(Map options) {
      this.options = options;
    }

    public void addBatch(long number, Dataset rows) {
      final Map given = options;
      AbstractFunction2 write =
          new AbstractFunction2() {
            public Object apply(Object batch, Object id) {
              Object session = ((Dataset) batch).sparkSession();
              Planner.sessions().addBatch(session, batch, ((Long) id).longValue(), given);
              return BoxedUnit.UNIT;
            }
          };
      Object encoder = ((org.apache.spark.sql.classic.Dataset) rows).exprEnc();
      new ForeachBatchSink(
              write, (org.apache.spark.sql.catalyst.encoders.ExpressionEncoder) encoder)
          .addBatch(number, rows);
    }

    public String toString() {
      return "lance";
    }
  }

  /** The rows that were written, for Spark to forget what it cached of them. */
  public static class Written extends BaseRelation {
    private final SQLContext context;
    private final StructType schema;

    Written(SQLContext context, StructType schema) {
      this.context = context;
      this.schema = schema;
    }

    public SQLContext sqlContext() {
      return context;
    }

    public StructType schema() {
      return schema;
    }
  }
}
