"""How a query will run, as a picture: for a terminal, a browser, a document and a notebook."""

from tailrace.explain.explanation import Explanation

__all__ = ["Explanation"]
