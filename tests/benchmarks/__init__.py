"""Benchmarks of the control plane: figures come from measurement only."""
