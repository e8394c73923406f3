"""The one place where the version is written; the plugin jar is stamped with it."""

__version__ = "0.1.0"
