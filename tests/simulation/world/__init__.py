"""A small world on virtual time that runs the production decisions of ownership under faults."""
