"""Bytes at paths: local disk, memory, S3, Google Cloud and Azure behind one protocol."""
