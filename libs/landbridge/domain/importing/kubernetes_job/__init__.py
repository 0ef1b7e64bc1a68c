"""Kubernetes Jobs (batch/v1) as operations."""

from landbridge.domain.importing.kubernetes_job.job import import_kubernetes_job

__all__ = ["import_kubernetes_job"]
