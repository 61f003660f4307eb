package lancelake;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.api.python.Py4JServer;
import org.apache.spark.api.python.PythonUtils;

/**
 * The Python process that plans for this driver: the program's own, or one that is started when a
 * catalog is first asked for. It is started again if it has died.
 */
public final class Planner {
  /** What Python answers. */
  public interface Sessions {
    /** The catalog of a session, which implements the catalog interfaces of Spark. */
    Object catalog(Object session, String name);

    /** The Lance tables of the session catalog, which Spark or Hive keeps the names of. */
    Object sessionCatalog(Object session);

    /** A statement of ours as one that Spark has; null for others. */
    String translate(Object session, String statement);

    /** Runs DELETE, UPDATE or MERGE; answers the numbers of rows that it changed. */
    Map run(Object session, Object plan);

    /** The table that options select; with a schema, one that may not exist. */
    Object table(Object session, Map options, Object schema);

    /** Writes rows into the table that options select. */
    void save(Object session, Object rows, String mode, Map options);

    /** Writes a batch of a stream into the table that options select. */
    void addBatch(Object session, Object rows, long number, Map options);

    /** Adds the columns of rows to a table, and answers whether it had not all of them. */
    boolean widen(Object session, java.util.List name, Object schema);
  }

  private static final String MODULE = "lancelake.spark.registration.planner";
  private static final long MOST_MILLIS = TimeUnit.MINUTES.toMillis(10);
  private static final int LAST_LINES = 20;
  private static final Object LOCK = new Object();

  private static Sessions sessions;
  private static Process process;
  private static boolean isStarting;
  private static Output output;

  private Planner() {}

  /** Called by Python: from now on it plans. */
  public static void answerBy(Sessions answers) {
    synchronized (LOCK) {
      if (process != null && !isStarting) {
        // A program that plans itself has registered its session.
        process.destroy();
        process = null;
      }
      sessions = answers;
      LOCK.notifyAll();
    }
  }

  /** The release that the jar is of. */
  public static String release() {
    return Planner.class.getPackage().getImplementationVersion();
  }

  static Sessions sessions() {
    synchronized (LOCK) {
      if (process != null && !process.isAlive()) {
        process = null;
        sessions = null;
      }
      if (sessions == null) {
        start();
      }
      return sessions;
    }
  }

  private static void start() {
    SparkConf conf = SparkContext.getOrCreate().getConf();
    String python = interpreter(conf);
    Py4JServer server = new Py4JServer(conf);
    server.start();
    ProcessBuilder builder = new ProcessBuilder(new String[] {python, "-u", "-m", MODULE});
    Map environment = builder.environment();
    environment.put("PYSPARK_GATEWAY_PORT", String.valueOf(server.getListeningPort()));
    environment.put("PYSPARK_GATEWAY_SECRET", server.secret());
    String path = (String) environment.get("PYTHONPATH");
    String sparks = PythonUtils.sparkPythonPath();
    environment.put("PYTHONPATH", path == null ? sparks : path + File.pathSeparator + sparks);
    builder.redirectErrorStream(true);
    try {
      process = builder.start();
    } catch (IOException error) {
      server.shutdown();
      throw new IllegalStateException(
          "Lance tables need Python, but " + python + " cannot be started: " + error.getMessage()
              + ". Set spark.lancelake.python to an interpreter with the package lancelake.");
    }
    output = new Output(process);
    output.start();
    isStarting = true;
    try {
      await(python);
    } finally {
      isStarting = false;
    }
  }

  /** Waits until the process has called `answerBy`. */
  private static void await(String python) {
    long end = System.currentTimeMillis() + MOST_MILLIS;
    while (sessions == null && process.isAlive() && System.currentTimeMillis() < end) {
      try {
        LOCK.wait(100);
      } catch (InterruptedException error) {
        process.destroy();
        Thread.currentThread().interrupt();
        throw new IllegalStateException("interrupted while the Python process was started");
      }
    }
    if (sessions == null) {
      process.destroyForcibly();
      output.await();
      throw new IllegalStateException(
          "Lance tables are planned in Python, but the process that " + python + " started ended"
              + " at once. Set spark.lancelake.python to an interpreter with the packages"
              + " lancelake and pyspark. It wrote:\n" + output.text());
    }
  }

  private static String interpreter(SparkConf conf) {
    String[] settings =
        new String[] {"spark.lancelake.python", "spark.pyspark.driver.python", "spark.pyspark.python"};
    for (int i = 0; i < settings.length; i++) {
      if (conf.contains(settings[i])) {
        return conf.get(settings[i]);
      }
    }
    String[] variables = new String[] {"PYSPARK_DRIVER_PYTHON", "PYSPARK_PYTHON"};
    for (int i = 0; i < variables.length; i++) {
      String value = System.getenv(variables[i]);
      if (value != null && !value.isEmpty()) {
        return value;
      }
    }
    return "python3";
  }

  /** Copies what the process writes to the log of the driver, and keeps the last lines. */
  private static final class Output extends Thread {
    private final Process source;
    private final ArrayDeque lines = new ArrayDeque();

    Output(Process source) {
      super("lancelake-planner-output");
      this.source = source;
      setDaemon(true);
    }

    public void run() {
      try {
        BufferedReader reader =
            new BufferedReader(
                new InputStreamReader(source.getInputStream(), StandardCharsets.UTF_8));
        for (String line = reader.readLine(); line != null; line = reader.readLine()) {
          System.err.println("lancelake planner: " + line);
          keep(line);
        }
      } catch (IOException error) {
        keep(error.toString());
      }
    }

    private synchronized void keep(String line) {
      lines.add(line);
      if (lines.size() > LAST_LINES) {
        lines.remove();
      }
    }

    void await() {
      try {
        join(10000);
      } catch (InterruptedException error) {
        Thread.currentThread().interrupt();
      }
    }

    synchronized String text() {
      StringBuilder text = new StringBuilder();
      Object[] all = lines.toArray();
      for (int i = 0; i < all.length; i++) {
        text.append("  ").append(all[i]).append("\n");
      }
      return text.toString();
    }
  }
}
