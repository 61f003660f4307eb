"""The core object: a session, and the tables opened in it."""
