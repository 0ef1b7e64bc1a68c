"""The kinds of operators' objects that are made or followed here, by their published names. Pure."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind that an operator defines. `suspend`: where its spec says that nothing is to run; empty: nowhere."""

    operator: str
    group: str
    version: str
    kind: str
    plural: str
    suspend: tuple[str, ...] = ()

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}"

    def path(self, namespace: str, name: str = "") -> str:
        """Return the path of an object, or of all in a namespace."""
        return f"/apis/{self.group}/{self.version}/namespaces/{namespace}/{self.plural}" + (f"/{name}" if name else "")


JOBSET: Final = Kind("jobset", "jobset.x-k8s.io", "v1alpha2", "JobSet", "jobsets", ("suspend",))
PYTORCHJOB: Final = Kind(
    "kubeflow-training", "kubeflow.org", "v1", "PyTorchJob", "pytorchjobs", ("runPolicy", "suspend")
)
TRAINJOB: Final = Kind("kubeflow-trainer", "trainer.kubeflow.org", "v1alpha1", "TrainJob", "trainjobs", ("suspend",))
TRAININGRUNTIME: Final = Kind(
    "kubeflow-trainer", "trainer.kubeflow.org", "v1alpha1", "TrainingRuntime", "trainingruntimes"
)
"""What a TrainJob takes its pods from: made with it, and not followed."""
RAYJOB: Final = Kind("kuberay", "ray.io", "v1", "RayJob", "rayjobs", ("suspend",))
RAYCLUSTER: Final = Kind("kuberay", "ray.io", "v1", "RayCluster", "rayclusters")
"""Made by KubeRay for a RayJob; it owns the pods."""

HTTPROUTE: Final = Kind("gateway-api", "gateway.networking.k8s.io", "v1", "HTTPRoute", "httproutes")
"""Of the Gateway API: applied for services, and not followed."""

MADE: Final = {kind.operator: kind for kind in (JOBSET, PYTORCHJOB, TRAINJOB, RAYJOB)}
"""What is made for a gang, by operator."""
KINDS: Final = {kind.kind: kind for kind in (*MADE.values(), RAYCLUSTER)}
_MADE_BY_ITS_OBJECTS: Final = {"kubeflow-trainer": (JOBSET,)}
"""Other operators' kinds that an operator makes its pods by."""


def kinds_of(operator: str) -> tuple[Kind, ...]:
    """Return what is followed of an operator."""
    own = tuple(kind for kind in KINDS.values() if kind.operator == operator)
    return own + _MADE_BY_ITS_OBJECTS.get(operator, ())


def needed_by(operator: str) -> tuple[Kind, ...]:
    """Return what has to be served for an operator to count as there."""
    return (*kinds_of(operator), *((TRAININGRUNTIME,) if operator == TRAINJOB.operator else ()))
