"""Table scans: request, plan, tasks and execution."""
