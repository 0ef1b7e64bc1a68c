"""What rules may ask about: the operation's requirements and the environment's contract, each field with its meaning.

The table of types and the values are written side by side in `facts`; a test holds them together.
"""

from typing import Final

from landbridge.domain.rules.types import BOOL, DOUBLE, INT, TEXT, Many, Member, Thing, Type

OPERATION: Final = "operation"
ENVIRONMENT: Final = "environment"
ACCELERATOR: Final = "accelerator"
NEEDED: Final = "needed connection"
CLASS: Final = "class"
OFFERED: Final = "connection"
# As long as documents let these lists be.
_NAMES, _CLASSES, _NEEDED, _CONNECTIONS = 100, 200, 400, 1_000


def _names(most: int = _NAMES) -> Many:
    return Many(TEXT, most)


_ACCELERATOR: Final = Thing(
    ACCELERATOR,
    {
        "class": Member(TEXT, "The capability class; empty where one exact product is asked for."),
        "count": Member(INT, "Devices of each replica."),
        "memoryGiB": Member(DOUBLE, "Memory of each device that is asked for; 0: any."),
        "precision": Member(_names(20), "Number formats that are asked for."),
        "interconnect": Member(TEXT, "The interconnect that is asked for; empty: any."),
        "partition": Member(TEXT, "The partition that is asked for; empty: whole devices."),
        "interruptible": Member(TEXT, "Whether devices may be taken away: allow, forbid or require."),
        "product": Member(TEXT, "The exact product, by exception; empty: none."),
    },
)
_NEEDED_CONNECTION: Final = Thing(
    NEEDED,
    {
        "name": Member(TEXT, "Its name."),
        "reads": Member(BOOL, "Whether the operation reads through it."),
        "writes": Member(BOOL, "Whether the operation writes through it."),
        "licenses": Member(_names(), "Licences of what is read and written."),
        "dataClass": Member(TEXT, "The class of the data by the operation; empty: not said."),
    },
)
_OPERATION: Final = Thing(
    OPERATION,
    {
        "project": Member(TEXT, "Its project."),
        "queue": Member(TEXT, "The queue that it waits in."),
        "priority": Member(TEXT, "Its priority class; empty: none."),
        "type": Member(TEXT, "Its workload type: job, distributed-job, service."),
        "replicas": Member(INT, "How many replicas it has."),
        "cpu": Member(DOUBLE, "Processors of each replica."),
        "memoryGiB": Member(DOUBLE, "Memory of each replica."),
        "accelerator": Member(_ACCELERATOR, "The accelerators of each replica.", optional=True),
        "connections": Member(Many(_NEEDED_CONNECTION, _NEEDED), "The connections that it names."),
        "registry": Member(TEXT, "The connection that its image comes from; empty: no image, or a public one."),
        "identity": Member(TEXT, "Its logical identity; empty: none."),
        "jurisdictions": Member(_names(), "Jurisdictions that it must stay in; empty: any."),
        "regions": Member(_names(), "Regions that it must stay in; empty: any."),
        "securityTier": Member(TEXT, "The security tier that it demands; empty: none."),
        "dataClass": Member(TEXT, "The class of its data; empty: not said."),
        "controls": Member(_names(), "The security controls that it demands."),
        "expectedSeconds": Member(DOUBLE, "How long it is expected to run; 0: not said."),
        "timeoutSeconds": Member(DOUBLE, "The longest that an attempt may run; 0: no limit."),
        "failedOver": Member(BOOL, "Whether its last environment was lost."),
    },
)
_CLASS: Final = Thing(
    CLASS,
    {
        "name": Member(TEXT, "Its name."),
        "accelerator": Member(BOOL, "Whether it is of accelerators."),
        "count": Member(INT, "Devices in all.", optional=True),
        "perNode": Member(INT, "Devices of one node.", optional=True),
        "cpu": Member(DOUBLE, "Processors in all.", optional=True),
        "memoryGiB": Member(DOUBLE, "Memory of each device, or in all where it is not of accelerators.", optional=True),
        "precision": Member(_names(20), "Number formats."),
        "interconnect": Member(TEXT, "The interconnect; empty: not stated."),
        "driver": Member(TEXT, "The range of driver versions; empty: not stated."),
        "partition": Member(TEXT, "The partition; empty: whole devices."),
        "product": Member(TEXT, "The product; empty: not stated."),
        "interruptible": Member(BOOL, "Whether devices may be taken away.", optional=True),
    },
)
_OFFERED_CONNECTION: Final = Thing(
    OFFERED,
    {
        "name": Member(TEXT, "Its name."),
        "type": Member(TEXT, "What it leads to."),
        "access": Member(TEXT, "What may be done: read-only, read-write or write-only."),
        "region": Member(TEXT, "The region of the data; empty: not stated."),
        "dataClass": Member(TEXT, "The most sensitive data that it may carry; empty: not stated."),
        "encrypted": Member(BOOL, "Whether data is encrypted at rest.", optional=True),
        "cached": Member(BOOL, "Whether the content is a local copy."),
    },
)
_ENVIRONMENT: Final = Thing(
    ENVIRONMENT,
    {
        "name": Member(TEXT, "Its name."),
        "contractVersion": Member(INT, "The version of the contract that is judged."),
        "regions": Member(_names(), "Its regions."),
        "jurisdictions": Member(_names(), "The jurisdictions that it is in."),
        "operatedBy": Member(TEXT, "Who operates it: own or provider.", optional=True),
        "executor": Member(TEXT, "How work is run: process, kubernetes, slurm, simulated, managed-endpoint."),
        "kubernetes": Member(TEXT, "The Kubernetes version.", optional=True),
        "architectures": Member(_names(20), "Processor architectures; empty: not stated."),
        "operators": Member(_names(), "Operators that are installed."),
        "workloads": Member(_names(10), "Workload types that it takes."),
        "securityTier": Member(TEXT, "How well it is protected.", optional=True),
        "managedControlPlane": Member(BOOL, "Whether a provider manages its control plane.", optional=True),
        "networkDefault": Member(TEXT, "What holds for traffic that no rule names: deny or allow.", optional=True),
        "classes": Member(Many(_CLASS, _CLASSES), "The capability classes that it claims."),
        "connections": Member(Many(_OFFERED_CONNECTION, _CONNECTIONS), "The connections that exist there."),
        "availability": Member(DOUBLE, "The availability that its owner aims at, 0 to 1.", optional=True),
    },
)
VARIABLES: Final[dict[str, Type]] = {OPERATION: _OPERATION, ENVIRONMENT: _ENVIRONMENT}
