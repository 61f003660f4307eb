"""From a request to rows: plan, tasks, execution."""
