"""MemWAL: durable upserts to a log next to the table, merged into it later."""
