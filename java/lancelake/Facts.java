package lancelake;

import java.lang.reflect.Method;
import java.util.Collections;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import net.razorvine.pickle.Unpickler;
import org.apache.spark.sql.connector.catalog.CatalogV2Util;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.constraints.Constraint;
import org.apache.spark.sql.connector.expressions.FieldReference;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.read.Scan.ColumnarSupportMode;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/** What Python says of an object when it makes it, as the answers that Spark asks for one by one. */
final class Facts {
  static final Object NULL = new Object();

  /** Schemas by their text: most tables are loaded many times. */
  private static final Map SCHEMAS = new ConcurrentHashMap();

  private static final int MOST_SCHEMAS = 256;

  static CustomMetric[] scanMetrics = new CustomMetric[0];

  private Facts() {}

  static ConcurrentHashMap decode(byte[] pickled) throws Exception {
    ConcurrentHashMap answers = new ConcurrentHashMap();
    Iterator facts = ((Map) new Unpickler().loads(pickled)).entrySet().iterator();
    while (facts.hasNext()) {
      Map.Entry fact = (Map.Entry) facts.next();
      Object answer = answer((String) fact.getKey(), fact.getValue());
      answers.put(fact.getKey(), answer == null ? NULL : answer);
      if (fact.getKey().equals("schema")) {
        answers.put("columns", columns((StructType) answer));
      }
    }
    return answers;
  }

  private static Object answer(String method, Object fact) {
    if (method.equals("schema") || method.equals("readSchema")) {
      return schema((String) fact);
    }
    if (method.equals("capabilities")) {
      return capabilities((List) fact);
    }
    if (method.equals("columnarSupportMode")) {
      return ColumnarSupportMode.valueOf((String) fact);
    }
    if (method.equals("filterAttributes")) {
      return references((List) fact);
    }
    if (method.equals("metadataColumns")) {
      return metadataColumns((List) fact);
    }
    if (method.equals("estimateStatistics")) {
      return new Estimate(number(((List) fact).get(0)), number(((List) fact).get(1)));
    }
    if (method.equals("partitioning")) {
      return new Transform[0];
    }
    if (method.equals("constraints")) {
      return new Constraint[0];
    }
    return method.equals("supportedCustomMetrics") ? scanMetrics : fact;
  }

  private static OptionalLong number(Object fact) {
    return fact == null ? OptionalLong.empty() : OptionalLong.of(((Number) fact).longValue());
  }

  private static StructType schema(String json) {
    Object schema = SCHEMAS.get(json);
    if (schema == null) {
      if (SCHEMAS.size() >= MOST_SCHEMAS) {
        SCHEMAS.clear();
      }
      schema = DataType.fromJson(json);
      SCHEMAS.put(json, schema);
    }
    return (StructType) schema;
  }

  /** Since Spark 4.2 there is a second parameter, whose default is true. */
  private static Object columns(StructType schema) throws Exception {
    Method[] methods = CatalogV2Util.class.getMethods();
    for (int i = 0; i < methods.length; i++) {
      if (methods[i].getName().equals("structTypeToV2Columns")) {
        Object[] given =
            methods[i].getParameterCount() == 1
                ? new Object[] {schema}
                : new Object[] {schema, Boolean.TRUE};
        return methods[i].invoke(null, given);
      }
    }
    throw new NoSuchMethodException("structTypeToV2Columns");
  }

  /** An older Spark lacks some. */
  private static Set capabilities(List names) {
    Set capabilities = new HashSet();
    TableCapability[] every = TableCapability.values();
    for (int i = 0; i < every.length; i++) {
      if (names.contains(every[i].name())) {
        capabilities.add(every[i]);
      }
    }
    return capabilities;
  }

  private static NamedReference[] references(List names) {
    NamedReference[] references = new NamedReference[names.size()];
    for (int i = 0; i < references.length; i++) {
      references[i] = FieldReference.column((String) names.get(i));
    }
    return references;
  }

  private static MetadataColumn[] metadataColumns(List pairs) {
    MetadataColumn[] columns = new MetadataColumn[pairs.size()];
    for (int i = 0; i < columns.length; i++) {
      List pair = (List) pairs.get(i);
      columns[i] = new NumberColumn((String) pair.get(0), (String) pair.get(1));
    }
    return columns;
  }

  /** A metadata column of numbers. */
  public static final class NumberColumn implements MetadataColumn {
    private final String name;
    private final String comment;

    NumberColumn(String name, String comment) {
      this.name = name;
      this.comment = comment;
    }

    public String name() {
      return name;
    }

    public DataType dataType() {
      return DataTypes.LongType;
    }

    public boolean isNullable() {
      return false;
    }

    public String comment() {
      return comment;
    }
  }

  /** The size of a scan. */
  public static final class Estimate implements Statistics {
    private final OptionalLong bytes;
    private final OptionalLong rows;

    Estimate(OptionalLong bytes, OptionalLong rows) {
      this.bytes = bytes;
      this.rows = rows;
    }

    public OptionalLong sizeInBytes() {
      return bytes;
    }

    public OptionalLong numRows() {
      return rows;
    }

    public Map columnStats() {
      return Collections.EMPTY_MAP;
    }
  }
}
