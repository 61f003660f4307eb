"""NGRAM index: rows by trigram, a sequence of three letters or digits in a text."""
