"""PostgreSQL for tests and demos: an embedded server that is the real one."""

from tailrace._postgres.embedded import EmbeddedPostgres

__all__ = ["EmbeddedPostgres"]
