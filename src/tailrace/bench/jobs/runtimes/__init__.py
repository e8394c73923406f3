"""How each system is started, with its source and its sink. What a workload does is in the workloads' folders."""
