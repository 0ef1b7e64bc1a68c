"""Landbridge: decide where portable AI workloads may and should run, run them there, keep the evidence."""
