"""NGRAM: the rows of each three letters or digits that follow each other in a text."""
