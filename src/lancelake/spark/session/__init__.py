"""Sessions, their options, and the engine that runs tasks on executors."""
