"""SkyPilot tasks as operations."""

from landbridge.domain.importing.skypilot.task import import_skypilot

__all__ = ["import_skypilot"]
