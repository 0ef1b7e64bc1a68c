"""The lineage service."""
