"""The Redis server for tests and demos: its binary, its process and a minimal client."""
