"""The eligibility service."""
