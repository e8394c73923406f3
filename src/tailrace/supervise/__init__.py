"""Draining and supervising real-time queries."""
