"""The what-if simulator: the ranking service's own decisions over a trace of work, on virtual time."""
