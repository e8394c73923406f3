"""Encode each value with base64."""
