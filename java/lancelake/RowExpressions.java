package lancelake;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeMap;
import org.apache.spark.sql.catalyst.expressions.AttributeMap$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.Assignment;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.ExpressionUtils;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * The columns of both sides of a command, and the rows that its clauses make of them. Each call of
 * Python takes time, and a table may have thousands of columns: none is made for each of them.
 */
public class RowExpressions {
  /** Columns of the table by name, as expressions refer to them. */
  private final Map target = new LinkedHashMap();

  /** Columns of the table that Spark pads: the stored column, and the padded value. */
  private final Map stored = new LinkedHashMap();

  private final Map padding = new LinkedHashMap();
  private final List source = new ArrayList();

  /** New ids of the columns; null if they have the ids of the command. */
  private AttributeMap numbers;

  public RowExpressions() {}

  public RowExpressions(
      scala.collection.immutable.Seq shown,
      scala.collection.immutable.Seq relation,
      scala.collection.immutable.Seq made,
      scala.collection.immutable.Seq source) {
    for (int i = 0; i < shown.size(); i++) {
      Attribute attribute = (Attribute) shown.apply(i);
      target.put(attribute.name(), attribute);
    }
    for (int i = 0; i < made.size(); i++) {
      NamedExpression expression = (NamedExpression) made.apply(i);
      Attribute attribute = (Attribute) relation.apply(i);
      if (expression.exprId().id() != attribute.exprId().id()) {
        stored.put(expression.name(), attribute);
        padding.put(expression.name(), ((Alias) expression).child());
      }
    }
    for (int i = 0; i < source.size(); i++) {
      this.source.add(source.apply(i));
    }
  }

  /** The names and ids of the columns of the table, and the ids of the source's, as JSON. */
  public String described() throws Exception {
    Map ids = new LinkedHashMap();
    for (Iterator i = target.values().iterator(); i.hasNext(); ) {
      Attribute attribute = (Attribute) i.next();
      ids.put(attribute.name(), Long.valueOf(attribute.exprId().id()));
    }
    List others = new ArrayList();
    for (int i = 0; i < source.size(); i++) {
      others.add(Long.valueOf(((Attribute) source.get(i)).exprId().id()));
    }
    Map result = new LinkedHashMap();
    result.put("target", ids);
    result.put("source", others);
    result.put("padded", new ArrayList(padding.keySet()));
    return json(result);
  }

  public Attribute attribute(String name) {
    return (Attribute) target.get(name);
  }

  /** The source with columns that are named by their positions, and keep their ids. */
  public LogicalPlan numbered(LogicalPlan plan) {
    List columns = new ArrayList();
    for (int i = 0; i < source.size(); i++) {
      columns.add(((Attribute) source.get(i)).withName("c" + i));
    }
    return new Project(seq(columns), plan);
  }

  /** One clause: its condition or null, and the values it assigns; null if it deletes. */
  public static class Clause {
    private final Expression condition;
    private final Map values;

    Clause(Expression condition, Map values) {
      this.condition = condition;
      this.values = values;
    }

    public Column condition() {
      return condition == null ? null : ExpressionUtils.column(condition);
    }

    public String names() throws Exception {
      return json(new ArrayList(values.keySet()));
    }
  }

  public Clause clause(scala.Option condition, scala.collection.immutable.Seq assignments) {
    Expression given = condition.isDefined() ? (Expression) condition.get() : null;
    if (assignments == null) {
      return new Clause(given, null);
    }
    Map values = new LinkedHashMap();
    for (int i = 0; i < assignments.size(); i++) {
      Assignment assignment = (Assignment) assignments.apply(i);
      if (!assignment.key().semanticEquals(assignment.value())) {
        values.put(((NamedExpression) assignment.key()).name(), assignment.value());
      }
    }
    return new Clause(given, values);
  }

  /** The ids of the columns that clauses refer to, as JSON. */
  public String references(List clauses) throws Exception {
    return json(new ArrayList(referred(clauses).keySet()));
  }

  private static Map referred(List clauses) {
    Map ids = new LinkedHashMap();
    for (int i = 0; i < clauses.size(); i++) {
      Clause clause = (Clause) clauses.get(i);
      List expressions = clause.values == null ? new ArrayList() : new ArrayList(clause.values.values());
      if (clause.condition != null) {
        expressions.add(clause.condition);
      }
      for (int j = 0; j < expressions.size(); j++) {
        scala.collection.Iterator found = ((Expression) expressions.get(j)).references().iterator();
        while (found.hasNext()) {
          ids.put(id(found.next()), null);
        }
      }
    }
    return ids;
  }

  private static Long id(Object attribute) {
    return Long.valueOf(((Attribute) attribute).exprId().id());
  }

  /** The same columns with new ids, since ids must be unique in a plan. */
  public RowExpressions renewed() {
    RowExpressions result = new RowExpressions();
    List pairs = new ArrayList();
    renew(target, result.target, pairs);
    renew(stored, result.stored, pairs);
    for (int i = 0; i < source.size(); i++) {
      Attribute after = ((Attribute) source.get(i)).newInstance();
      pairs.add(new scala.Tuple2(source.get(i), after));
      result.source.add(after);
    }
    result.numbers = AttributeMap$.MODULE$.apply(seq(pairs));
    for (Iterator i = padding.keySet().iterator(); i.hasNext(); ) {
      Object name = i.next();
      result.padding.put(name, result.renumbered((Expression) padding.get(name)));
    }
    return result;
  }

  private static void renew(Map before, Map result, List pairs) {
    for (Iterator i = before.keySet().iterator(); i.hasNext(); ) {
      Object name = i.next();
      Attribute after = ((Attribute) before.get(name)).newInstance();
      pairs.add(new scala.Tuple2(before.get(name), after));
      result.put(name, after);
    }
  }

  /** The same clause with the new ids, in its subqueries too. */
  public Clause renewed(Clause clause) {
    Expression condition = clause.condition == null ? null : renumbered(clause.condition);
    if (clause.values == null) {
      return new Clause(condition, null);
    }
    Map values = new LinkedHashMap();
    for (Iterator i = clause.values.keySet().iterator(); i.hasNext(); ) {
      Object name = i.next();
      values.put(name, renumbered((Expression) clause.values.get(name)));
    }
    return new Clause(condition, values);
  }

  private Expression renumbered(Expression found) {
    Filter filter = new Filter(found, new OneRowRelation());
    return ((Filter) filter.rewriteAttrs(numbers)).condition();
  }

  /**
   * Rows with those fields of the structs of both sides as columns that the clauses refer to. A
   * column that was added after the command was resolved has no id, and no expression refers to it.
   */
  public Dataset unpacked(Dataset rows, String targetName, String sourceName, List clauses) {
    Map used = referred(clauses);
    List columns = new ArrayList();
    columns.add(functions.col("*"));
    List padded = new ArrayList();
    padded.add(functions.col("*"));
    StructField[] fields = rows.schema().fields();
    for (int i = 0; i < fields.length; i++) {
      if (fields[i].name().equals(targetName)) {
        String[] names = ((StructType) fields[i].dataType()).fieldNames();
        for (int j = 0; j < names.length; j++) {
          Object shown = target.get(names[j]);
          if (shown == null || !used.containsKey(id(shown))) {
            continue;
          }
          Object attribute = stored.containsKey(names[j]) ? stored.get(names[j]) : shown;
          columns.add(known(member(targetName, names[j]), attribute, "__lance_t" + j));
          if (padding.containsKey(names[j])) {
            Column value = ExpressionUtils.column((Expression) padding.get(names[j]));
            padded.add(known(value, target.get(names[j]), "__lance_padded_" + j));
          }
        }
      }
      if (fields[i].name().equals(sourceName)) {
        String[] names = ((StructType) fields[i].dataType()).fieldNames();
        for (int j = 0; j < names.length; j++) {
          if (used.containsKey(id(source.get(j)))) {
            columns.add(known(member(sourceName, names[j]), source.get(j), "__lance_s" + j));
          }
        }
      }
    }
    Dataset result = rows.select(seq(columns));
    return padded.size() > 1 ? result.select(seq(padded)) : result;
  }

  private static Column known(Column found, Object attribute, String name) {
    scala.collection.immutable.Seq none = seq(new ArrayList());
    Expression child = ExpressionUtils.expression(found);
    return ExpressionUtils.column(
        new Alias(child, name, ((Attribute) attribute).exprId(), none, scala.Option.empty(), none));
  }

  /**
   * Every column of a schema, from the clause that the column `action` numbers, and more columns. A
   * column that the clause does not assign is that of the target, or null in a new row. Columns
   * that are not computed are null.
   */
  public static Dataset outputs(
      Dataset rows,
      StructType schema,
      StructType computed,
      List clauses,
      String action,
      String targetName,
      List more) {
    Set known = new HashSet(Arrays.asList(computed.fieldNames()));
    List columns = new ArrayList();
    StructField[] fields = schema.fields();
    for (int i = 0; i < fields.length; i++) {
      boolean isKnown = known.contains(fields[i].name());
      Column found = isKnown ? output(fields[i], clauses, action, targetName) : none(fields[i]);
      columns.add(found.as(fields[i].name()));
    }
    columns.addAll(more);
    return rows.select(seq(columns));
  }

  /** One column of every clause. Each row has a clause, so the last one needs no condition. */
  private static Column output(StructField field, List clauses, String action, String targetName) {
    Column found = null;
    for (int number = clauses.size() - 1; number >= 0; number--) {
      Map values = ((Clause) clauses.get(number)).values;
      Column value =
          values == null
              ? none(field)
              : value(values, field.name(), targetName).cast(field.dataType());
      Column applies = functions.col(action).equalTo(Integer.valueOf(number));
      found = found == null ? value : functions.when(applies, value).otherwise(found);
    }
    return found;
  }

  private static Column none(StructField field) {
    return functions.lit(null).cast(field.dataType());
  }

  private static Column value(Map values, String name, String targetName) {
    if (values.containsKey(name)) {
      return ExpressionUtils.column((Expression) values.get(name));
    }
    return targetName == null ? functions.lit(null) : member(targetName, name);
  }

  private static Column member(String struct, String name) {
    return functions.col(quoted(struct) + "." + quoted(name));
  }

  private static String quoted(String name) {
    return "`" + name.replace("`", "``") + "`";
  }

  private static scala.collection.immutable.Seq seq(List found) {
    return scala.jdk.javaapi.CollectionConverters.asScala(found).toSeq();
  }

  private static String json(Object found) throws Exception {
    return new ObjectMapper().writeValueAsString(found);
  }
}
