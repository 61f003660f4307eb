package lancelake;

import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SparkContext;

/**
 * The Python process that plans for this driver: the program's own, or one that is started when a
 * catalog is first asked for. It is started again if it has died.
 */
public final class Planner {
  /** What Python answers. */
  public interface Sessions {
    /** Whether Python answers: always true. */
    boolean answers();

    /** The catalog of a session, which implements the catalog interfaces of Spark. */
    Object catalog(Object session, String name);

    /** A statement of ours as one that Spark has; null for others. */
    String translate(Object session, String statement);

    /** Runs a DELETE, UPDATE or MERGE, and returns numbers of rows by what became of them. */
    Map change(Object session, Object plan);

    /** The table that options select; with a schema, one that may not exist. */
    Object table(Object session, Map options, Object schema);

    /** Writes rows into the table that options select. */
    void save(Object session, Object rows, String mode, Map options);

    /** Writes a batch of a stream into the table that options select. */
    void addBatch(Object session, Object rows, long number, Map options);

    /** Adds the columns of rows to a table, and answers whether it had not all of them. */
    boolean widen(Object session, List name, Object schema);
  }

  private static final long MOST_MILLIS = TimeUnit.MINUTES.toMillis(10);

  /** Guards the fields below. */
  private static final Object LOCK = new Object();

  /** Held while a process is started or stopped, so that there is one at a time. */
  private static final Object STARTS = new Object();

  private static Sessions python;
  private static Sessions sessions;
  private static PlannerProcess process;
  private static boolean isStarting;
  private static String loss;

  private Planner() {}

  /** Called by Python: from now on it plans. */
  public static void answerBy(Sessions answers) throws Exception {
    synchronized (LOCK) {
      if (process != null && !isStarting) {
        // A program that plans itself has registered its session.
        process.stop();
        process = null;
      }
      python = answers;
      sessions = (Sessions) new Remembered().of(answers);
      LOCK.notifyAll();
    }
  }

  /** The release that the jar is of. */
  public static String release() {
    return Planner.class.getPackage().getImplementationVersion();
  }

  /** The sessions of a Python process that has just answered. */
  static Sessions sessions() {
    Sessions found = answering();
    if (found != null) {
      return found;
    }
    synchronized (STARTS) {
      found = answering();
      return found == null ? start() : found;
    }
  }

  /** The error to raise in place of that of a call to Python which had no answer. */
  static RuntimeException lost(RuntimeException error) {
    synchronized (STARTS) {
      if (answering() == null) {
        retire();
      }
      return loss == null ? error : new IllegalStateException(loss, error);
    }
  }

  private static Sessions answering() {
    Sessions asked;
    Sessions found;
    PlannerProcess running;
    synchronized (LOCK) {
      asked = python;
      found = sessions;
      running = process;
    }
    // A program that plans itself is alive as long as its driver.
    return found == null || running == null || running.answers(asked) ? found : null;
  }

  private static void retire() {
    synchronized (LOCK) {
      if (process != null) {
        process.stop();
        loss = process.loss();
      }
      process = null;
      python = null;
      sessions = null;
    }
  }

  private static Sessions start() {
    retire();
    PlannerProcess started = PlannerProcess.start(SparkContext.getOrCreate());
    synchronized (LOCK) {
      isStarting = true;
      try {
        await(started);
      } finally {
        isStarting = false;
      }
      if (sessions == null) {
        started.stop();
        throw new IllegalStateException(started.refusal());
      }
      process = started;
      return sessions;
    }
  }

  /** Waits until the process has called `answerBy`, or has ended. */
  private static void await(PlannerProcess started) {
    long end = System.currentTimeMillis() + MOST_MILLIS;
    while (sessions == null && started.isRunning() && System.currentTimeMillis() < end) {
      try {
        LOCK.wait(100);
      } catch (InterruptedException error) {
        Thread.currentThread().interrupt();
        started.stop();
        throw new IllegalStateException("interrupted while the Python process was started");
      }
    }
  }
}
