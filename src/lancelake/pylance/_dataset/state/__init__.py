"""State that the methods of a dataset share: the open version, its session and its commit lock."""
