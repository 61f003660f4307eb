package lancelake;

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.UnresolvedIdentifier;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.plans.logical.CreateTable;
import org.apache.spark.sql.catalyst.plans.logical.CreateTableAsSelect;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OverwriteByExpression;
import org.apache.spark.sql.catalyst.plans.logical.ReplaceTableAsSelect;
import org.apache.spark.sql.catalyst.plans.logical.UnresolvedTableSpec;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.types.DataTypeUtils;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction1;
import scala.runtime.AbstractPartialFunction;

/** Rules for plans over Lance tables before Spark compares the columns. */
public final class TableRules {
  private TableRules() {}

  /** Makes a rule of a session. */
  public static class WriteBuilder extends AbstractFunction1 {
    public Object apply(Object session) {
      return new Write(session);
    }
  }

  /** The members of a node, whose number differs between versions of Spark. */
  private static Object[] members(TreeNode node) {
    Object[] members = new Object[((scala.Product) node).productArity()];
    for (int i = 0; i < members.length; i++) {
      members[i] = ((scala.Product) node).productElement(i);
    }
    return members;
  }

  /** Makes a rule of a session. */
  public static class StreamBuilder extends AbstractFunction1 {
    public Object apply(Object session) {
      return new Stream();
    }
  }

  /**
   * Adds the columns of the rows of a write with the option `mergeSchema` to its table, and takes the
   * default format of DataFrames, which no program asked for, from tables that they make in a catalog.
   */
  public static class Write extends Rule {
    private final SparkSession session;

    public Write(Object session) {
      this.session = (SparkSession) session;
    }

    public TreeNode apply(TreeNode plan) {
      if (plan instanceof CreateTable
          || plan instanceof CreateTableAsSelect
          || plan instanceof ReplaceTableAsSelect) {
        return withoutFormat((LogicalPlan) plan);
      }
      return plan instanceof V2WriteCommand ? widened((V2WriteCommand) plan) : plan;
    }

    /** A statement names its format itself, and has a text. */
    private TreeNode withoutFormat(LogicalPlan plan) {
      Object name = plan.children().apply(0);
      if (plan.origin().sqlText().isDefined()
          || !(name instanceof UnresolvedIdentifier)
          || !isOurs(((UnresolvedIdentifier) name).nameParts())) {
        return plan;
      }
      if (plan instanceof ReplaceTableAsSelect) {
        ReplaceTableAsSelect replace = (ReplaceTableAsSelect) plan;
        Map options = javaMap(replace.writeOptions());
        if (new CaseInsensitiveStringMap(options).containsKey("replaceWhere")) {
          return replacedRows(replace, ((UnresolvedIdentifier) name).nameParts(), options);
        }
      }
      Object[] members = members(plan);
      for (int i = 0; i < members.length; i++) {
        if (members[i] instanceof UnresolvedTableSpec) {
          Object[] spec = members((TreeNode) members[i]);
          if (isDefault(((UnresolvedTableSpec) members[i]).provider(), session)) {
            spec[1] = scala.Option.empty();
            members[i] = ((TreeNode) members[i]).makeCopy(spec);
          }
        }
      }
      return plan.makeCopy(members);
    }

    /** `saveAsTable` defines a table anew, but some of its rows are replaced in the one there is. */
    private static TreeNode replacedRows(
        ReplaceTableAsSelect plan, scala.collection.immutable.Seq name, Map options) {
      UnresolvedRelation table =
          new UnresolvedRelation(name, new CaseInsensitiveStringMap(options), false);
      Object[] known =
          new Object[] {table, plan.query(), Literal$.MODULE$.TrueLiteral(), plan.writeOptions()};
      Method[] methods = OverwriteByExpression.class.getMethods();
      for (int i = 0; i < methods.length; i++) {
        if (methods[i].getName().equals("byName")) {
          Object[] given = Arrays.copyOf(known, methods[i].getParameterCount());
          // Since 4.3, whether columns may be added.
          Arrays.fill(given, known.length, given.length, Boolean.FALSE);
          try {
            return (TreeNode) methods[i].invoke(null, given);
          } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
          }
        }
      }
      throw new IllegalStateException("this Spark does not overwrite rows by name");
    }

    private static boolean isDefault(scala.Option provider, SparkSession session) {
      String usual = session.sessionState().conf().defaultDataSourceName();
      return provider.isDefined() && usual.equalsIgnoreCase((String) provider.get());
    }

    private boolean isOurs(scala.collection.immutable.Seq name) {
      String key = "spark.sql.catalog." + name.apply(0);
      String named = session.sessionState().conf().getConfString(key, "");
      boolean hasCatalog = name.size() > 1 && !named.isEmpty();
      return hasCatalog
          ? named.equals(LanceCatalog.class.getName())
          : session.sessionState().catalogManager().currentCatalog() instanceof LanceCatalog;
    }

    private TreeNode widened(V2WriteCommand write) {
      LogicalPlan plan = (LogicalPlan) write;
      if (!write.isByName() || !write.query().resolved()) {
        return plan;
      }
      StructType rows = write.query().schema();
      if (write.table() instanceof UnresolvedRelation) {
        UnresolvedRelation relation = (UnresolvedRelation) write.table();
        if (isAsked(options(plan, relation.options()))) {
          widen(new ArrayList(CollectionConverters.asJava(relation.multipartIdentifier())), rows);
        }
        return plan;
      }
      if (!(write.table() instanceof DataSourceV2Relation)) {
        return plan;
      }
      DataSourceV2Relation relation = (DataSourceV2Relation) write.table();
      boolean isNamed = relation.catalog().isDefined() && relation.identifier().isDefined();
      if (!isNamed || !isAsked(options(plan, relation.options()))) {
        return plan;
      }
      TableCatalog catalog = (TableCatalog) relation.catalog().get();
      Identifier ident = (Identifier) relation.identifier().get();
      if (!widen(name(catalog, ident), rows)) {
        return plan;
      }
      try {
        return (TreeNode)
            write.withNewTable(
                DataSourceV2Relation.create(
                    catalog.loadTable(ident),
                    relation.catalog(),
                    relation.identifier(),
                    relation.options(),
                    scala.Option.empty()));
      } catch (Exception error) {
        throw new IllegalStateException(error);
      }
    }

    private boolean widen(List name, StructType rows) {
      return Planner.sessions().widen(session, name, rows);
    }

    private static List name(TableCatalog catalog, Identifier ident) {
      List name = new ArrayList();
      name.add(catalog.name());
      String[] space = ident.namespace();
      for (int i = 0; i < space.length; i++) {
        name.add(space[i]);
      }
      name.add(ident.name());
      return name;
    }

    /** The options of the write itself, which Spark keeps beside those of the relation. */
    private static Map options(Object write, CaseInsensitiveStringMap ofRelation) {
      Map every = new HashMap(ofRelation.asCaseSensitiveMap());
      scala.collection.Iterator members = ((scala.Product) write).productIterator();
      while (members.hasNext()) {
        Object member = members.next();
        if (member instanceof scala.collection.immutable.Map) {
          every.putAll(javaMap((scala.collection.immutable.Map) member));
        }
      }
      return every;
    }

    private static Map javaMap(scala.collection.immutable.Map options) {
      return CollectionConverters.asJava(options);
    }

    private static boolean isAsked(Map options) {
      return "true".equalsIgnoreCase(
          String.valueOf(new CaseInsensitiveStringMap(options).get("mergeSchema")));
    }
  }

  /** Gives a stream the columns that it delivers: those of all versions that it may read. */
  public static class Stream extends Rule {
    private static final AbstractPartialFunction STREAMS =
        new AbstractPartialFunction() {
          public boolean isDefinedAt(Object node) {
            return node instanceof StreamingRelationV2
                && ((StreamingRelationV2) node).table() instanceof Streamed;
          }

          public Object applyOrElse(Object node, scala.Function1 other) {
            return isDefinedAt(node) ? streamed((StreamingRelationV2) node) : other.apply(node);
          }
        };

    public TreeNode apply(TreeNode plan) {
      return ((LogicalPlan) plan).transformUp(STREAMS);
    }

    private static Object streamed(StreamingRelationV2 relation) {
      Map options = new HashMap(relation.extraOptions().asCaseSensitiveMap());
      Table table = ((Streamed) relation.table()).asStream(options);
      scala.collection.immutable.Seq columns = DataTypeUtils.toAttributes(table.schema());
      List output = new ArrayList();
      for (int i = 0; i < columns.size(); i++) {
        output.add(known((AttributeReference) columns.apply(i), relation.output()));
      }
      Object[] members = members(relation);
      for (int i = 0; i < members.length; i++) {
        if (members[i] instanceof Table) {
          members[i] = table;
        } else if (members[i] == relation.output()) {
          members[i] = CollectionConverters.asScala(output).toSeq();
        }
      }
      return relation.makeCopy(members);
    }

    /** A column with the identity that the plan above may know it by. */
    private static Object known(AttributeReference column, scala.collection.immutable.Seq before) {
      for (int i = 0; i < before.size(); i++) {
        AttributeReference other = (AttributeReference) before.apply(i);
        if (other.name().equals(column.name())) {
          return column.withExprId(other.exprId()).withQualifier(other.qualifier());
        }
      }
      return column;
    }
  }
}
