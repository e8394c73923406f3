"""The jobs that are measured: a folder for each workload, with a file for each system in it.

They run in processes of their own, some in an environment without Tailrace, where this package is called `bench_jobs`.
So its files import each other with relative imports, and nothing else of Tailrace at their top.
"""
