"""The ranking service."""
