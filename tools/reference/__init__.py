"""The reference pages that are generated, each by a function without arguments that returns Markdown."""
