"""Properties, statistics and files of the open version."""
