"""Object stores: local disk, memory, S3, Google Cloud Storage and Azure behind one protocol."""
