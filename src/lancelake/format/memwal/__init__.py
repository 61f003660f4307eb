"""MemWAL documents: region manifests, WAL entries, region specs and key filters."""
