"""A contract draft from what a cluster's API tells: what can be seen is filled in, a person is asked the rest. Pure."""

from landbridge.domain.discovering.draft import Draft, draft_contract
from landbridge.domain.discovering.survey import Survey

__all__ = ["Draft", "Survey", "draft_contract"]
