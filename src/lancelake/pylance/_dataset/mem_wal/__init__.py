"""Dataset methods and values of the MemWAL."""
