"""Dataset methods that write rows and commit transactions, and the values of transactions."""
