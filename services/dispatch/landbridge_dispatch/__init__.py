"""Dispatch: the coordinator in the centre and one dispatcher per environment."""
