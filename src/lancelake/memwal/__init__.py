"""MemWAL: durable upserts to a log beside the table, merged into it later."""
