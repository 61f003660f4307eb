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
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A Python process that plans for this driver, with the gateway that it calls. */
final class PlannerProcess {
  private static final String MODULE = "lancelake.spark.planner.process";
  private static final String ADVICE =
      " Set spark.lancelake.python to a Python interpreter with the packages lancelake and pyspark.";

  /** Of a process whose last line says all that is wrong; `REFUSED` in Python. */
  private static final int REFUSED = 78;

  /** A process that a signal has ended has this exit code plus the number of the signal. */
  private static final int SIGNALS = 128;

  private final String python;
  private final SparkContext context;
  private final Py4JServer server;
  private final Process process;
  private final Output output;

  /** Negative if the process had to be killed. */
  private int code = -1;

  private PlannerProcess(
      String python, SparkContext context, Py4JServer server, Process process) {
    this.python = python;
    this.context = context;
    this.server = server;
    this.process = process;
    this.output = new Output(process);
    output.start();
  }

  /** Starts a gateway in a daemon thread: its own threads do not keep a program from ending. */
  private static Py4JServer gateway(final SparkConf conf) {
    final Py4JServer[] started = new Py4JServer[1];
    Thread starter =
        new Thread("lancelake-gateway") {
          public void run() {
            started[0] = new Py4JServer(conf);
            started[0].start();
          }
        };
    starter.setDaemon(true);
    starter.start();
    try {
      starter.join();
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
    }
    if (started[0] == null) {
      throw new IllegalStateException("the gateway for the Python process could not be started");
    }
    return started[0];
  }

  static PlannerProcess start(SparkContext context) {
    String python = interpreter(context.getConf());
    Py4JServer server = gateway(context.getConf());
    ProcessBuilder builder = new ProcessBuilder(new String[] {python, "-u", "-m", MODULE});
    Map environment = builder.environment();
    environment.put("PYSPARK_GATEWAY_PORT", String.valueOf(server.getListeningPort()));
    environment.put("PYSPARK_GATEWAY_SECRET", server.secret());
    String path = (String) environment.get("PYTHONPATH");
    String sparks = PythonUtils.sparkPythonPath();
    environment.put("PYTHONPATH", path == null ? sparks : path + File.pathSeparator + sparks);
    builder.redirectErrorStream(true);
    try {
      return new PlannerProcess(python, context, server, builder.start());
    } catch (IOException error) {
      server.shutdown();
      throw new IllegalStateException(
          "Lance tables are planned in Python, which cannot be started: " + error.getMessage() + "."
              + ADVICE);
    }
  }

  boolean isRunning() {
    return process.isAlive();
  }

  /**
   * Whether the process answers, for a context that runs. A process may be dead before the system
   * says so, and one that stands between, such as a launcher, may outlive it.
   */
  boolean answers(Planner.Sessions sessions) {
    try {
      return !context.isStopped() && process.isAlive() && sessions.answers();
    } catch (RuntimeException error) {
      return false;
    }
  }

  /** Ends the process, if it has not ended, and closes its gateway. */
  void stop() {
    try {
      // One that has died is reported at once, with its exit code.
      if (process.waitFor(1, TimeUnit.SECONDS)) {
        code = process.exitValue();
      }
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
    }
    process.destroyForcibly();
    output.await();
    server.shutdown();
  }

  /** Why the process, which has been stopped, did not begin to plan. */
  String refusal() {
    String last = output.last();
    if (code == REFUSED) {
      return last;
    }
    if (code < 0) {
      return "The Python process that plans Lance tables did not begin to within the limit."
          + " Run the query again." + output.text();
    }
    if (last.isEmpty() && code < SIGNALS) {
      return "Lance tables are planned in Python, but " + python + ended() + " and wrote nothing."
          + ADVICE;
    }
    if (last.contains("No module named")) {
      return "Lance tables are planned in Python, but " + python + " lacks a package: " + last + "."
          + ADVICE + output.text();
    }
    return "The Python process that plans Lance tables" + ended() + " when it was started"
        + (last.isEmpty() ? "" : ": " + last)
        + ". Correct the cause and run the query again." + output.text();
  }

  /** What is wrong with a query that the process, which has been stopped, was to answer. */
  String loss() {
    return "The Python process that plans Lance tables" + ended() + " during this query. Run the"
        + " query again; if it changes a table, see in the table's history first whether it has done"
        + " so." + output.text();
  }

  private String ended() {
    if (code > SIGNALS) {
      return " was killed by signal " + (code - SIGNALS);
    }
    return code < 0 ? " ended" : " ended with exit code " + code;
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
    private static final Logger LOG = LoggerFactory.getLogger("lancelake.LancePlanner");
    private static final int MOST_LINES = 20;
    private static final long MOST_MILLIS = TimeUnit.SECONDS.toMillis(10);

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
          // A planner writes when something is wrong: shells show warnings only.
          LOG.warn(line);
          keep(line);
        }
      } catch (IOException error) {
        LOG.debug("the planner was stopped", error);
      }
    }

    private synchronized void keep(String line) {
      if (!line.trim().isEmpty()) {
        lines.add(line);
      }
      if (lines.size() > MOST_LINES) {
        lines.remove();
      }
    }

    /** Waits until all that the process has written is read. */
    void await() {
      try {
        join(MOST_MILLIS);
      } catch (InterruptedException error) {
        Thread.currentThread().interrupt();
      }
    }

    synchronized String last() {
      return lines.isEmpty() ? "" : (String) lines.getLast();
    }

    synchronized String text() {
      if (lines.isEmpty()) {
        return "\nThe process wrote nothing.";
      }
      StringBuilder text = new StringBuilder("\nThe last lines of the process:");
      Object[] all = lines.toArray();
      for (int i = 0; i < all.length; i++) {
        text.append("\n  ").append(all[i]);
      }
      return text.toString();
    }
  }
}
