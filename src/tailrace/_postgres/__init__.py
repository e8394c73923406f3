"""The PostgreSQL server for tests and demos: its binaries, its process and a minimal client."""
