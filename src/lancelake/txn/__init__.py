"""What changes mean: verdicts on concurrent changes, and the version a change leads to."""
