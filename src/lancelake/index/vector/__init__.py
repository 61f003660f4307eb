"""Vector indices: partitions of similar vectors, stored exactly or compressed."""
