"""Redis for tests and demos: an embedded server that is the real one."""

from tailrace._redis.embedded import EmbeddedRedis

__all__ = ["EmbeddedRedis"]
