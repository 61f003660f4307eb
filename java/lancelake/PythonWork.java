package lancelake;

import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import org.apache.spark.TaskContext;
import org.apache.spark.api.python.BasePythonRunner;
import org.apache.spark.sql.execution.datasources.v2.python.UserDefinedPythonDataSource;
import org.apache.spark.sql.types.StructType;

/**
 * Runs a function of Python in a worker, on batches of rows, and yields the batches it answers
 * with. Spark's class for that has no name of its own and turns the answers into rows.
 */
public class PythonWork {
  private static final String EVALUATOR =
      "org.apache.spark.sql.execution.python.MapInBatchEvaluatorFactory$MapInBatchEvaluator";

  /** Scala numbers the classes without a name in a file, and there are never this many. */
  private static final int NUMBERS = 64;

  private static Constructor known;

  /** Raises an exception when Spark's internals are not as this class expects them. */
  public static void check() throws Exception {
    evaluatorFactory();
    runner(Class.forName(EVALUATOR));
  }

  /** Takes an iterator of iterators of rows; each row is a struct, the only value of its row. */
  public static scala.collection.Iterator run(
      UserDefinedPythonDataSource source,
      byte[] command,
      StructType input,
      StructType output,
      scala.collection.immutable.Map metrics,
      scala.collection.Iterator batches) {
    try {
      Object evaluator = evaluator(source, command, input, output, metrics);
      Object[] arguments = new Object[] {evaluator, new int[][] {new int[] {0}}};
      return compute(runner(evaluator.getClass()).newInstance(arguments), batches);
    } catch (Exception error) {
      throw new RuntimeException("the Python worker could not be started", error);
    }
  }

  private static Method evaluatorFactory() throws Exception {
    return method(UserDefinedPythonDataSource.class, "createMapInBatchEvaluatorFactory");
  }

  /** The class that talks to the worker, before its batches are turned into rows. */
  private static synchronized Constructor runner(Class evaluator) throws Exception {
    if (known == null || known.getParameterTypes()[0] != evaluator) {
      known = find(evaluator);
    }
    return known;
  }

  /** Looks for the only runner of Python workers that an evaluator makes, whatever its number. */
  private static Constructor find(Class evaluator) throws Exception {
    Constructor found = null;
    for (int number = 1; number <= NUMBERS; number++) {
      Constructor fitting = fitting(evaluator, number);
      if (fitting != null && found != null) {
        throw new ClassNotFoundException("several runners of workers in " + evaluator.getName());
      }
      found = fitting == null ? found : fitting;
    }
    if (found == null) {
      throw new ClassNotFoundException("no runner of workers in " + evaluator.getName());
    }
    return found;
  }

  private static Constructor fitting(Class evaluator, int number) {
    try {
      String name = evaluator.getName() + "$$anon$" + number;
      Class found = Class.forName(name, false, evaluator.getClassLoader());
      if (!BasePythonRunner.class.isAssignableFrom(found)) {
        return null;
      }
      return found.getConstructor(new Class[] {evaluator, int[][].class});
    } catch (ClassNotFoundException error) {
      return null;
    } catch (NoSuchMethodException error) {
      return null;
    }
  }

  private static Object evaluator(
      UserDefinedPythonDataSource source,
      byte[] command,
      StructType input,
      StructType output,
      scala.collection.immutable.Map metrics)
      throws Exception {
    Method make = evaluatorFactory();
    Object[] arguments = new Object[make.getParameterTypes().length];
    arguments[0] = command;
    arguments[1] = "lancelake";
    arguments[2] = input;
    arguments[3] = output;
    arguments[4] = metrics;
    for (int i = 5; i < arguments.length; i++) {
      arguments[i] = scala.Option.empty();
    }
    Object factory = make.invoke(source, arguments);
    return method(factory.getClass(), "createEvaluator").invoke(factory, new Object[0]);
  }

  private static scala.collection.Iterator compute(Object runner, scala.collection.Iterator batches)
      throws Exception {
    TaskContext context = TaskContext.get();
    Object[] arguments = new Object[] {batches, Integer.valueOf(context.partitionId()), context};
    return (scala.collection.Iterator) method(runner.getClass(), "compute").invoke(runner, arguments);
  }

  private static Method method(Class owner, String name) throws Exception {
    Method[] methods = owner.getMethods();
    for (int i = 0; i < methods.length; i++) {
      if (methods[i].getName().equals(name)) {
        return methods[i];
      }
    }
    throw new NoSuchMethodException(name);
  }
}
