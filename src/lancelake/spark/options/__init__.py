"""Options of reads and writes, and the times in them."""
