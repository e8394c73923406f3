"""`tailrace bench`: the same workloads on Tailrace and on other systems, with the same load and the same broker."""
