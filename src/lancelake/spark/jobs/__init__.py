"""Work of the driver: plans of writes, merges, searches and index builds, run by executors."""
