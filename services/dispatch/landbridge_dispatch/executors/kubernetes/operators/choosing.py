"""Which operator runs a gang: the contract says which, the bindings whether it may, the cluster whether it is there.

Where the operator is absent the contract's fallback counts; where it states none the work is refused. Pure.
"""

from collections.abc import Collection, Mapping

from landbridge.domain.contract import Via
from landbridge.domain.features import RANKS
from landbridge_dispatch.executors.kubernetes.operators.kinds import MADE
from landbridge_dispatch.executors.protocol import RefusalCode, RefusedError
from landbridge_dispatch.specification import Spec


def operator_for(spec: Spec, via: Mapping[str, Via], usable: Collection[str]) -> str:
    """Return the operator's name; empty: an Indexed Job, or no gang at all. Raises RefusedError."""
    if spec.type != "distributed-job":
        return ""
    framework = spec.gang.framework or RANKS
    chosen = via.get(framework)
    if chosen is None:
        if framework == RANKS:
            return ""
        raise RefusedError(
            RefusalCode.OPERATOR,
            f"gangs of framework {framework} do not run here: state their operator in the contract's runtime.via",
        )
    if chosen.operator in usable and (framework == RANKS) is (chosen.operator != "kuberay"):
        return chosen.operator
    if chosen.fallback and framework == RANKS:
        return ""
    why = (
        "is not there, or its rights were not given to the dispatcher (kubernetes.operators in the bindings)"
        if chosen.operator in MADE and (framework == RANKS) is (chosen.operator != "kuberay")
        else "does not run this framework"
    )
    raise RefusedError(
        RefusalCode.OPERATOR, f"operator {chosen.operator}, by which framework {framework} runs here, {why}"
    )
