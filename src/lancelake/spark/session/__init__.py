"""Sessions, options of reads and writes, and the engine that runs tasks on executors."""
