"""The alerting service."""
