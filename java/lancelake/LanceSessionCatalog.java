package lancelake;

import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.DelegatingCatalogExtension;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.StagingTableCatalog;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.TableInfo;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;

/**
 * The session catalog with Lance tables, for `spark.sql.catalog.spark_catalog`. They are handled in
 * Python. Tables of other formats are left to the catalog that Spark has.
 */
public class LanceSessionCatalog extends DelegatingCatalogExtension implements StagingTableCatalog {
  private static final String PROVIDER = "provider";

  private final SparkSession session = SparkSession.active();
  private final PythonCatalog python = new PythonCatalog(session, "spark_catalog");

  private StagingTableCatalog ours() {
    return (StagingTableCatalog) python.get();
  }

  private SessionCatalog registry() {
    return session.sessionState().catalog();
  }

  /** The location of a Lance table; null for other tables and for names that do not exist. */
  public static String location(Object registry, String database, String name) {
    CatalogTable found = registered(registry, database, name);
    // Views have no provider.
    if (found == null || found.provider().isEmpty() || !isLance(found.provider().get())) {
      return null;
    }
    return found.location().toString();
  }

  /** The table or view that is registered under a name, or null. */
  public static CatalogTable registered(Object registry, String database, String name) {
    TableIdentifier ident = new TableIdentifier(name, scala.Option.apply(database));
    SessionCatalog known = (SessionCatalog) registry;
    try {
      return known.tableExists(ident) ? known.getTableMetadata(ident) : null;
    } catch (Exception error) {
      Platform.throwException(error);
      return null;
    }
  }

  private static boolean isLance(Object provider) {
    return provider != null && "lance".equalsIgnoreCase(provider.toString());
  }

  /** Whether a name is that of a Lance table, or of one of its metadata tables. */
  private boolean isOurs(Identifier ident) {
    String[] space = ident.namespace();
    if (space.length == 1) {
      return location(registry(), space[0], ident.name()) != null;
    }
    return space.length == 2 && location(registry(), space[0], space[1]) != null;
  }

  public Set capabilities() {
    Set every = new java.util.HashSet(super.capabilities());
    every.addAll(LanceCatalog.CAPABILITIES);
    return every;
  }

  public Table loadTable(Identifier ident)
      throws NoSuchTableException {
    return isOurs(ident) ? ours().loadTable(ident) : super.loadTable(ident);
  }

  public Table loadTable(Identifier ident, String version)
      throws NoSuchTableException {
    return isOurs(ident) ? ours().loadTable(ident, version) : super.loadTable(ident, version);
  }

  public Table loadTable(Identifier ident, long timestamp)
      throws NoSuchTableException {
    return isOurs(ident) ? ours().loadTable(ident, timestamp) : super.loadTable(ident, timestamp);
  }

  public Table loadTable(Identifier ident, Set privileges)
      throws NoSuchTableException {
    return loadTable(ident);
  }

  public Table createTable(Identifier ident, TableInfo info)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    if (isLance(info.properties().get(PROVIDER))) {
      return ours().createTable(ident, info);
    }
    return created(ident, info);
  }

  public Table createTable(Identifier ident, Column[] columns, Transform[] parts, Map properties)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    return isLance(properties.get(PROVIDER))
        ? ours().createTable(ident, columns, parts, properties)
        : super.createTable(ident, columns, parts, properties);
  }

  private Table created(Identifier ident, TableInfo info) {
    if (info.constraints().length > 0) {
      throw new UnsupportedOperationException(
          "only Lance tables of the session catalog can have constraints: " + ident);
    }
    try {
      return super.createTable(ident, info.columns(), info.partitions(), info.properties());
    } catch (Exception error) {
      Platform.throwException(error);
      return null;
    }
  }

  public StagedTable stageCreate(Identifier ident, TableInfo info)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    return isLance(info.properties().get(PROVIDER))
        ? ours().stageCreate(ident, info)
        : new Created(this, ident, created(ident, info));
  }

  public StagedTable stageReplace(Identifier ident, TableInfo info)
      throws NoSuchNamespaceException, NoSuchTableException {
    if (isLance(info.properties().get(PROVIDER))) {
      return ours().stageReplace(ident, info);
    }
    if (!dropTable(ident)) {
      throw new NoSuchTableException(ident);
    }
    return new Created(this, ident, created(ident, info));
  }

  public StagedTable stageCreateOrReplace(Identifier ident, TableInfo info)
      throws NoSuchNamespaceException {
    if (isLance(info.properties().get(PROVIDER))) {
      return ours().stageCreateOrReplace(ident, info);
    }
    dropTable(ident);
    return new Created(this, ident, created(ident, info));
  }

  public CustomMetric[] supportedCustomMetrics() {
    return new CustomMetric[0];
  }

  public Table alterTable(Identifier ident, TableChange[] changes)
      throws NoSuchTableException {
    return isOurs(ident) ? ours().alterTable(ident, changes) : super.alterTable(ident, changes);
  }

  public boolean dropTable(Identifier ident) {
    return isOurs(ident) ? ours().dropTable(ident) : super.dropTable(ident);
  }

  public boolean purgeTable(Identifier ident) {
    return isOurs(ident) ? ours().dropTable(ident) : super.purgeTable(ident);
  }

  public void renameTable(Identifier before, Identifier after)
      throws NoSuchTableException, TableAlreadyExistsException {
    if (isOurs(before)) {
      ours().renameTable(before, after);
    } else {
      super.renameTable(before, after);
    }
  }

  /** A table of another format, which exists before its rows are written. */
  public static class Created implements StagedTable, SupportsWrite {
    private final LanceSessionCatalog catalog;
    private final Identifier ident;
    private final Table table;

    Created(LanceSessionCatalog catalog, Identifier ident, Table table) {
      this.catalog = catalog;
      this.ident = ident;
      this.table = table;
    }

    public void commitStagedChanges() {}

    public void abortStagedChanges() {
      catalog.dropTable(ident);
    }

    public CustomTaskMetric[] reportDriverMetrics() {
      return new CustomTaskMetric[0];
    }

    public String name() {
      return table.name();
    }

    public StructType schema() {
      return table.schema();
    }

    public Column[] columns() {
      return (Column[]) TableMethods.call(table, "columns");
    }

    public Transform[] partitioning() {
      return table.partitioning();
    }

    public Map properties() {
      return (Map) TableMethods.call(table, "properties");
    }

    public Set capabilities() {
      return table.capabilities();
    }

    public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
      return ((SupportsWrite) table).newWriteBuilder(info);
    }
  }
}
