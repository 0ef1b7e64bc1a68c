"""Local processes: a launcher per environment, a guardian per workload. Standard library only below `launcher`."""
