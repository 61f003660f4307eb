"""Code generated from `protos/` by `make proto`."""
