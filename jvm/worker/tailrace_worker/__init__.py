"""The Python side of Tailrace's operators. It is part of the plugin's jar, so executors need no installation.

It runs PySpark's own workers with one change: a worker flushes the results of each batch at once and reports when it
has taken a batch, where PySpark's worker fills a buffer first.
"""
