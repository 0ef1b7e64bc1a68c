"""Executors: how work is started, watched and stopped in one kind of environment."""
