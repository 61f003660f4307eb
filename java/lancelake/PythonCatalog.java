package lancelake;

/** A catalog of a session in Python; asked for again if the process that had it has died. */
final class PythonCatalog {
  private final Object session;
  private final String name;
  private Planner.Sessions planner;
  private Object found;

  PythonCatalog(Object session, String name) {
    this.session = session;
    this.name = name;
  }

  synchronized Object get() {
    Planner.Sessions now = Planner.sessions();
    if (now != planner) {
      found = now.catalog(session, name);
      planner = now;
    }
    return found;
  }
}
