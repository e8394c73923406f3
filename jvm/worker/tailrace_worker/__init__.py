"""The Python side of Tailrace's operators, carried by the plugin's jar so that executors need no installation.

It runs PySpark's own workers with one change: a worker answers each batch as soon as it has the result, and says
when it has taken one in, where PySpark's would fill a buffer first.
"""
