"""Hard rules, one a file. A violated one makes an environment ineligible; all violations are kept."""

from typing import Final

from landbridge.domain.constraints.architecture import Architecture
from landbridge.domain.constraints.base import Constraint
from landbridge.domain.constraints.class_control import ClassControl
from landbridge.domain.constraints.compute import Compute
from landbridge.domain.constraints.compute_evidence import ComputeEvidence
from landbridge.domain.constraints.connections import Connections
from landbridge.domain.constraints.contract_phase import ContractPhase
from landbridge.domain.constraints.control import Control
from landbridge.domain.constraints.controls import Controls
from landbridge.domain.constraints.deadline import Deadline
from landbridge.domain.constraints.dispatcher_features import DispatcherFeatures
from landbridge.domain.constraints.environment_choice import EnvironmentChoice
from landbridge.domain.constraints.evidence import Evidence
from landbridge.domain.constraints.gang_operator import GangOperator
from landbridge.domain.constraints.hardware import Hardware
from landbridge.domain.constraints.identity import Identity
from landbridge.domain.constraints.kubernetes import Kubernetes
from landbridge.domain.constraints.link import Link
from landbridge.domain.constraints.maintenance import Maintenance
from landbridge.domain.constraints.model_licence import ModelLicence
from landbridge.domain.constraints.movement import DataMovement
from landbridge.domain.constraints.operated_by import OperatedBy
from landbridge.domain.constraints.operator_rules import OperatorRules
from landbridge.domain.constraints.project_choice import ProjectChoice
from landbridge.domain.constraints.queue_routing import QueueRouting
from landbridge.domain.constraints.recovery import Recovery
from landbridge.domain.constraints.residency import Residency
from landbridge.domain.constraints.runtime_form import RuntimeForm
from landbridge.domain.constraints.security_tier import SecurityTier
from landbridge.domain.constraints.site_policy import SitePolicy
from landbridge.domain.constraints.support import Support
from landbridge.domain.constraints.workload_type import WorkloadType

# Groups of rules that ask operations for the same sort of thing, so that answers are shared by many operations: who may
# use what and which protection there is; where work and data may be; what is there; how much of it; when; what
# operators demand besides.
GROUPS: Final[tuple[tuple[Constraint, ...], ...]] = (
    (
        EnvironmentChoice(),
        QueueRouting(),
        ProjectChoice(),
        SitePolicy(),
        OperatedBy(),
        WorkloadType(),
        RuntimeForm(),
        Architecture(),
        Kubernetes(),
        Controls(),
        Identity(),
        Recovery(),
    ),
    (Residency(), SecurityTier(), ModelLicence(), DataMovement(), Connections()),
    (Hardware(), Compute(), ClassControl()),
    (ComputeEvidence(), Evidence(), DispatcherFeatures(), GangOperator(), ContractPhase(), Control(), Link()),
    (Deadline(), Maintenance(), Support()),
    (OperatorRules(),),
)

# The order of violations follows.
CONSTRAINTS: Final[tuple[Constraint, ...]] = tuple(constraint for group in GROUPS for constraint in group)

__all__ = ["CONSTRAINTS", "GROUPS", "Constraint"]
