"""Transactions: conflict rules, rebase, and the next version that an operation builds."""
