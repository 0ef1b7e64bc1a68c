"""Helpers for tests; nothing here is imported by the product."""
