"""The process that plans for drivers without a Python program."""
