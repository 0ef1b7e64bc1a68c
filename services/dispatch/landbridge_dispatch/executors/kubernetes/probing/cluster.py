"""The probes of a cluster, by kind. Nodes are followed by a watch, so that a change of one voids its proof at once."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from landbridge.domain import claims, probe_kinds
from landbridge.domain.discovering.nodes import Node, read_node
from landbridge.schema.wire.command_v1 import Probe
from landbridge.schema.wire.report_v1 import EvidenceResult
from landbridge_dispatch.executors.bindings import Bindings
from landbridge_dispatch.executors.claimed import claimed_amount, claimed_part
from landbridge_dispatch.executors.kubernetes.api import Api, ApiError, Object, UnreachableError
from landbridge_dispatch.executors.kubernetes.probing.boundary import Boundaries
from landbridge_dispatch.executors.kubernetes.probing.connections import Connections
from landbridge_dispatch.executors.kubernetes.probing.judging import NO_IMAGE, one, trial_of, within
from landbridge_dispatch.executors.kubernetes.probing.members import (
    Member,
    Reach,
    members_of,
    published_devices,
    reach_of,
)
from landbridge_dispatch.executors.kubernetes.probing.network import Network
from landbridge_dispatch.executors.kubernetes.probing.running import Trials
from landbridge_dispatch.executors.kubernetes.probing.self_stop import SelfStop
from landbridge_dispatch.executors.kubernetes.probing.smoke import Outcome, Trial
from landbridge_dispatch.executors.kubernetes.probing.where import Proof, affinity
from landbridge_dispatch.executors.kubernetes.shelf import namespaces_of
from landbridge_dispatch.executors.kubernetes.watching import Kept
from landbridge_dispatch.executors.protocol import Finding

LISTED_WITHIN_S: Final = 10.0
NAMED_MAX: Final = 3


class ClusterProbes:
    """All probes of one cluster. `run_nodes` follows its nodes and has to run beside."""

    def __init__(self, api: Api, bindings: Bindings) -> None:
        """Take over what the site allows. Raises BindingsError."""
        site = bindings.kubernetes
        self._api = api
        self._bindings = bindings
        self._site = site
        self._trials = Trials(api, site, namespaces_of(bindings)[0])
        self._boundaries = Boundaries(api, bindings)
        self.self_stop = SelfStop(api, bindings)
        self._connections = Connections(api, bindings, self._trials)
        self._network = Network(api, bindings, self._trials)
        self.nodes = Kept(api, "/api/v1/nodes", "", self._node_changed)
        self._subjects: dict[str, str] = {}
        self._void: set[str] = set()
        self._voided = asyncio.Event()
        self._classes: set[str] = set()
        self._proofs: dict[str, Proof] = {}

    async def run_nodes(self) -> None:
        """Follow the nodes until cancelled."""
        await self.nodes.run()

    async def voided(self) -> AsyncIterator[list[str]]:
        """Yield claims whose evidence is void, because a node that it is about has changed."""
        while True:
            await self._voided.wait()
            self._voided.clear()
            void, self._void = self._void, set()
            yield sorted(void)

    def _node_changed(self, item: Object, gone: bool) -> None:
        node = read_node(item)
        before = self._subjects.pop(node.name, None)
        state = f"{node.subject} {node.ready}"
        if not gone:
            self._subjects[node.name] = state
        if before is not None and (gone or before != state):
            self._void |= {claims.capability_class(name) for name in self._classes}
            self._voided.set()

    async def run(self, probe: Probe) -> Finding | None:
        """Run a probe; None: not one of a cluster's own. What the cluster does not answer is unknown."""
        kinds: Mapping[str, Callable[[Probe], Awaitable[Finding | None]]] = {
            probe_kinds.WORKLOAD: self._workload,
            probe_kinds.CAPACITY: self._capacity,
            probe_kinds.STORAGE: self._storage,
            probe_kinds.CONNECTION: self._connections.reached,
            probe_kinds.BANDWIDTH: self._connections.measured,
            probe_kinds.BOUNDARY: self._boundary,
            probe_kinds.SELF_STOP: self._stops_itself,
        }
        if probe.kind not in kinds:
            return None
        try:
            return await kinds[probe.kind](probe)
        except ApiError as error:
            return Finding(EvidenceResult.UNKNOWN, "the cluster's API", str(error))

    def affinity(self, capability_class: str) -> dict[str, Any]:
        """Return where a pod may go that asks for a class, or for none: to nodes that are proven for it."""
        if capability_class:
            return affinity(proof for name, proof in self._proofs.items() if name == capability_class)
        return affinity(proof for proof in self._proofs.values() if proof.plain)

    # -- workloads -----------------------------------------------------------------------------------------------

    async def _workload(self, probe: Probe) -> Finding:
        return await one(self._trials, probe, trial_of(self._site, "runtime", "any node"), "a Job ran and ended")

    async def _boundary(self, probe: Probe) -> Finding | None:
        if probe.parameters.get("boundary") == "network":
            return await self._network.run(probe)
        return await self._boundaries.run(probe)

    async def _stops_itself(self, probe: Probe) -> Finding:
        return await self.self_stop.run(within(probe))

    async def _storage(self, probe: Probe) -> Finding:
        storage_class = str(claimed_part(probe).get("storageClass", ""))
        if not storage_class:
            return Finding(EvidenceResult.UNKNOWN, "no storage class", "the contract names no storageClass")
        subject = f"storage class {storage_class}"
        trial = trial_of(self._site, f"storage {storage_class}", subject, storage_class=storage_class, writes=True)
        return await one(self._trials, probe, trial, "a claim was bound, written and read")

    # -- classes -------------------------------------------------------------------------------------------------

    async def _capacity(self, probe: Probe) -> Finding:
        """Only nodes on which a smoke workload ran count, and only as they were then."""
        name, part = probe.parameters.get("class", ""), claimed_part(probe)
        self._classes.add(name)
        claimed = claimed_amount(probe)
        reach = reach_of(self._site, name, part)
        members = await self._members(reach, counted=part.get("count") is not None)
        trials = {self._node_trial(name, member.node, reach): member for member in members}
        subject = _subject(list(trials))
        if not trials:
            told = "no ready node has what the class claims"
            return Finding(EvidenceResult.FAILED, subject, told, proven=0.0, claimed=claimed)
        if not next(iter(trials)).image:
            return Finding(EvidenceResult.UNKNOWN, subject, NO_IMAGE, claimed=claimed)
        outcomes = await self._trials.run(list(trials), within(probe), alone=f"class {name}")
        good = [member for trial, member in trials.items() if outcomes[trial].proven]
        proven = frozenset(member.node.name for member in good)
        others = frozenset(member.node.name for member in members) - proven
        self._proofs[name] = Proof(proven, others, plain=part.get("count") is None)
        amount = sum(member.amount for member in good)
        counted = amount if claimed is None else min(amount, claimed)
        detail = _told(len(good), {trial.node: outcomes[trial] for trial in trials})
        result = EvidenceResult.PROVEN if good else EvidenceResult.FAILED
        return Finding(result, subject, detail, proven=round(counted, 3), claimed=claimed)

    async def _members(self, reach: Reach, *, counted: bool) -> list[Member]:
        try:
            async with asyncio.timeout(LISTED_WITHIN_S):
                await self.nodes.listed.wait()
        except TimeoutError:
            raise UnreachableError("the cluster's nodes cannot be read: see the dispatcher's ClusterRole") from None
        nodes = [read_node(item) for item in self.nodes.items.values()]
        published: Mapping[str, int] = {}
        if counted and (reach.device_class or reach.claim_template):
            published = await self._published(reach)
        return members_of(nodes, reach, counted=counted, published=published)

    async def _published(self, reach: Reach) -> dict[str, int]:
        """Devices for claims by node; of all drivers where a template names the class."""
        slices, _ = await self._api.list("/apis/resource.k8s.io/v1/resourceslices")
        found = await self._api.get(f"/apis/resource.k8s.io/v1/deviceclasses/{reach.device_class}") or {}
        selectors = (found.get("spec") or {}).get("selectors") or ()
        told = " ".join(str((one.get("cel") or {}).get("expression", "")) for one in selectors)
        drivers = frozenset(
            str(item["spec"]["driver"])
            for item in slices
            if reach.claim_template or item["spec"]["driver"] == reach.device_class or item["spec"]["driver"] in told
        )
        return published_devices(slices, drivers)

    def _node_trial(self, name: str, node: Node, reach: Reach) -> Trial:
        return trial_of(self._site, f"class {name}", node.subject, node=node.name, reach=reach)


def _subject(trials: Sequence[Trial]) -> str:
    """Name what was proven: any other state of any node is another subject, which voids older evidence."""
    told = hashlib.sha256("\n".join(sorted(trial.subject for trial in trials)).encode()).hexdigest()[:12]
    return f"{len(trials)} node{'' if len(trials) == 1 else 's'}, state {told}"


def _told(good: int, outcomes: Mapping[str, Outcome]) -> str:
    bad = [f"node {node}: {outcome.told}" for node, outcome in sorted(outcomes.items()) if not outcome.proven]
    if not bad:
        return ""
    more = f" and {len(bad) - NAMED_MAX} more" if len(bad) > NAMED_MAX else ""
    return f"{good} of {len(outcomes)} nodes proven; {'; '.join(bad[:NAMED_MAX])}{more}"
