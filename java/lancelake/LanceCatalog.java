package lancelake;

import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.analysis.NamespaceAlreadyExistsException;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.NonEmptyNamespaceException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Changelog;
import org.apache.spark.sql.connector.catalog.ChangelogContext;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.NamespaceChange;
import org.apache.spark.sql.connector.catalog.ProcedureCatalog;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.StagingTableCatalog;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalogCapability;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.TableContext;
import org.apache.spark.sql.connector.catalog.TableInfo;
import org.apache.spark.sql.connector.catalog.TableSummary;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** Lance tables for `spark.sql.catalog.NAME`; every question is answered in Python. */
public class LanceCatalog implements StagingTableCatalog, SupportsNamespaces, ProcedureCatalog {
  static final Set CAPABILITIES =
      new HashSet(
          Arrays.asList(
              new TableCatalogCapability[] {
                TableCatalogCapability.SUPPORT_COLUMN_DEFAULT_VALUE,
                TableCatalogCapability.SUPPORT_TABLE_CONSTRAINT
              }));

  private String name;
  private PythonCatalog python;

  public void initialize(String name, CaseInsensitiveStringMap options) {
    this.name = name;
    this.python = new PythonCatalog(SparkSession.active(), name);
    python.get();
  }

  private StagingTableCatalog tables() {
    return (StagingTableCatalog) python.get();
  }

  private SupportsNamespaces namespaces() {
    return (SupportsNamespaces) python.get();
  }

  public String name() {
    return name;
  }

  public String[] defaultNamespace() {
    return new String[0];
  }

  public Set capabilities() {
    return CAPABILITIES;
  }

  public Set tableStateOptionKeys() {
    return Collections.EMPTY_SET;
  }

  public Set changelogStateOptionKeys() {
    return Collections.EMPTY_SET;
  }

  public boolean useNullableQuerySchema() {
    return tables().useNullableQuerySchema();
  }

  public CustomMetric[] supportedCustomMetrics() {
    return tables().supportedCustomMetrics();
  }

  public Identifier[] listTables(String[] namespace) throws NoSuchNamespaceException {
    return tables().listTables(namespace);
  }

  public TableSummary[] listTableSummaries(String[] namespace)
      throws NoSuchNamespaceException, NoSuchTableException {
    return tables().listTableSummaries(namespace);
  }

  public Table loadTable(Identifier ident) throws NoSuchTableException {
    return tables().loadTable(ident);
  }

  public Table loadTable(Identifier ident, Set privileges) throws NoSuchTableException {
    return tables().loadTable(ident, privileges);
  }

  public Table loadTable(Identifier ident, String version) throws NoSuchTableException {
    return tables().loadTable(ident, version);
  }

  public Table loadTable(Identifier ident, long timestamp) throws NoSuchTableException {
    return tables().loadTable(ident, timestamp);
  }

  public Table loadTable(Identifier ident, TableContext context, CaseInsensitiveStringMap options)
      throws NoSuchTableException {
    return tables().loadTable(ident, context, options);
  }

  public Changelog loadChangelog(
      Identifier ident, ChangelogContext context, CaseInsensitiveStringMap options)
      throws NoSuchTableException {
    return tables().loadChangelog(ident, context, options);
  }

  public void invalidateTable(Identifier ident) {
    tables().invalidateTable(ident);
  }

  public boolean tableExists(Identifier ident) {
    return tables().tableExists(ident);
  }

  public Table createTable(Identifier ident, TableInfo info)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    return tables().createTable(ident, info);
  }

  public Table createTable(Identifier ident, Column[] columns, Transform[] parts, Map properties)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    return tables().createTable(ident, columns, parts, properties);
  }

  public Table createTable(Identifier ident, StructType schema, Transform[] parts, Map properties)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    return tables().createTable(ident, schema, parts, properties);
  }

  public Table createTableLike(Identifier ident, TableInfo info, Table source)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    return tables().createTableLike(ident, info, source);
  }

  public StagedTable stageCreate(Identifier ident, TableInfo info)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    return tables().stageCreate(ident, info);
  }

  public StagedTable stageCreate(
      Identifier ident, Column[] columns, Transform[] parts, Map properties)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    return tables().stageCreate(ident, columns, parts, properties);
  }

  public StagedTable stageReplace(Identifier ident, TableInfo info)
      throws NoSuchNamespaceException, NoSuchTableException {
    return tables().stageReplace(ident, info);
  }

  public StagedTable stageReplace(
      Identifier ident, Column[] columns, Transform[] parts, Map properties)
      throws NoSuchNamespaceException, NoSuchTableException {
    return tables().stageReplace(ident, columns, parts, properties);
  }

  public StagedTable stageCreateOrReplace(Identifier ident, TableInfo info)
      throws NoSuchNamespaceException {
    return tables().stageCreateOrReplace(ident, info);
  }

  public StagedTable stageCreateOrReplace(
      Identifier ident, Column[] columns, Transform[] parts, Map properties)
      throws NoSuchNamespaceException {
    return tables().stageCreateOrReplace(ident, columns, parts, properties);
  }

  public Table alterTable(Identifier ident, TableChange[] changes) throws NoSuchTableException {
    return tables().alterTable(ident, changes);
  }

  public boolean dropTable(Identifier ident) {
    return tables().dropTable(ident);
  }

  public boolean purgeTable(Identifier ident) {
    return tables().purgeTable(ident);
  }

  public void renameTable(Identifier before, Identifier after)
      throws NoSuchTableException, TableAlreadyExistsException {
    tables().renameTable(before, after);
  }

  public String[][] listNamespaces() throws NoSuchNamespaceException {
    return namespaces().listNamespaces();
  }

  public String[][] listNamespaces(String[] parent) throws NoSuchNamespaceException {
    return namespaces().listNamespaces(parent);
  }

  public boolean namespaceExists(String[] namespace) {
    return namespaces().namespaceExists(namespace);
  }

  public Map loadNamespaceMetadata(String[] namespace) throws NoSuchNamespaceException {
    return namespaces().loadNamespaceMetadata(namespace);
  }

  public void createNamespace(String[] namespace, Map properties)
      throws NamespaceAlreadyExistsException {
    namespaces().createNamespace(namespace, properties);
  }

  public void alterNamespace(String[] namespace, NamespaceChange[] changes)
      throws NoSuchNamespaceException {
    namespaces().alterNamespace(namespace, changes);
  }

  public boolean dropNamespace(String[] namespace, boolean cascade)
      throws NoSuchNamespaceException, NonEmptyNamespaceException {
    return namespaces().dropNamespace(namespace, cascade);
  }

  public Identifier[] listProcedures(String[] namespace) {
    return ((ProcedureCatalog) python.get()).listProcedures(namespace);
  }

  public UnboundProcedure loadProcedure(Identifier ident) {
    return ((ProcedureCatalog) python.get()).loadProcedure(ident);
  }
}
