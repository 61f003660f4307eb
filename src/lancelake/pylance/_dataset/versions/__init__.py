"""Dataset methods for versions, tags, branches, clones and changes between versions."""
