"""Faults on a real instance, from a seed, with a ground truth that the control plane never reads."""
