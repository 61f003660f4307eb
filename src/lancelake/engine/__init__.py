"""Where work is done: tasks go in, bytes come out."""
