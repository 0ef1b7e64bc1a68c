"""The executor that a site's bindings name."""

from landbridge_dispatch.executors.bindings import Bindings, BindingsError
from landbridge_dispatch.executors.protocol import Executor


def make_executor(bindings: Bindings) -> Executor:
    """Return a new executor; modules of others are not even loaded. Raises BindingsError for one not offered here."""
    match bindings.executor.name:
        case "process":
            from landbridge_dispatch.executors.local.executor import LocalExecutor

            return LocalExecutor(bindings)
        case "simulated":
            from landbridge_dispatch.executors.simulated.executor import SimulatedExecutor

            return SimulatedExecutor(bindings)
        case "kubernetes":
            from landbridge_dispatch.executors.kubernetes.executor import KubernetesExecutor

            return KubernetesExecutor(bindings)
    raise BindingsError(
        f"executor {bindings.executor.name} is not offered by this release; expected process, simulated, kubernetes"
    )
