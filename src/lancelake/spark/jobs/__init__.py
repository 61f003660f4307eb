"""Jobs on executors: tasks of the engine, and work on the partitions of a DataFrame."""
