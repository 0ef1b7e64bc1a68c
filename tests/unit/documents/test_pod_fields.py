"""No field of a Kubernetes pod gets in but those that an operation has: an allow-list, checked field by field."""

from typing import Any

import pytest
from kubernetes_asyncio import client

from landbridge.domain.documents import Refusal, read_document
from landbridge.domain.documents.model_types import field_names
from landbridge.schema.documents_v1 import OperationSpec
from unit.documents.documents import a_document, as_json

ALLOWED = set(field_names(OperationSpec))
MODELS: tuple[Any, ...] = (
    client.V1PodSpec,
    client.V1Container,
    client.V1SecurityContext,
    client.V1PodTemplateSpec,
    client.V1JobSpec,
)
POD_FIELDS = sorted({name for model in MODELS for name in model.attribute_map.values()} - ALLOWED)


@pytest.mark.parametrize("field", POD_FIELDS)
def test_a_pod_field_is_refused_wherever_it_is_put(field: str) -> None:
    put = {f"spec.{field}": {"privileged": True}}
    read = read_document(as_json(a_document(put=put)))
    assert isinstance(read, Refusal)
    assert [(p.path, p.code) for p in read.problems] == [(f"spec.{field}", "unknown-field")]

    # Elsewhere a few names are ours as well: what stands there is then refused as what it is.
    for base in ("spec.resources", "spec.lifecycle", "spec.image", "spec.constraints"):
        assert isinstance(read_document(as_json(a_document(put={f"{base}.{field}": {"privileged": True}}))), Refusal)
