"""The probes of a cluster, by kind. Nodes are followed by a watch, so that a change of one voids its proof at once."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from landbridge.domain import claims, probe_kinds
from landbridge.domain.discovering.nodes import Node, read_node
from landbridge.schema.wire.command_v1 import Probe
from landbridge.schema.wire.report_v1 import EvidenceResult
from landbridge_dispatch.executors.bindings import WRITABLE, Bindings
from landbridge_dispatch.executors.claimed import claimed_amount, claimed_part
from landbridge_dispatch.executors.kubernetes.api import Api, ApiError, Object, UnreachableError
from landbridge_dispatch.executors.kubernetes.pods import volume_of
from landbridge_dispatch.executors.kubernetes.probing.boundary import Boundaries
from landbridge_dispatch.executors.kubernetes.probing.members import (
    Member,
    Reach,
    members_of,
    published_devices,
    reach_of,
)
from landbridge_dispatch.executors.kubernetes.probing.running import Trials
from landbridge_dispatch.executors.kubernetes.probing.smoke import Outcome, Trial
from landbridge_dispatch.executors.kubernetes.probing.where import Proof, affinity
from landbridge_dispatch.executors.kubernetes.settings import ConnectionOptions, connection_options
from landbridge_dispatch.executors.kubernetes.shelf import namespaces_of
from landbridge_dispatch.executors.kubernetes.watching import Kept
from landbridge_dispatch.executors.protocol import Finding

MARGIN_S: Final = 4.0
"""How long before its timeout a probe says what it knows."""
LISTED_WITHIN_S: Final = 10.0
NAMED_MAX: Final = 3
NO_IMAGE: Final = "no image to try with: set kubernetes.probes.image in the site's bindings"


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
        self._nodes = Kept(api, "/api/v1/nodes", "", self._node_changed)
        self._subjects: dict[str, str] = {}
        self._void: set[str] = set()
        self._voided = asyncio.Event()
        self._classes: set[str] = set()
        self._proofs: dict[str, Proof] = {}

    async def run_nodes(self) -> None:
        """Follow the nodes until cancelled."""
        await self._nodes.run()

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
        try:
            match probe.kind:
                case probe_kinds.WORKLOAD:
                    return await self._workload(probe)
                case probe_kinds.CAPACITY:
                    return await self._capacity(probe)
                case probe_kinds.STORAGE:
                    return await self._storage(probe)
                case probe_kinds.CONNECTION:
                    return await self._connection(probe)
                case probe_kinds.BOUNDARY:
                    return await self._boundaries.run(probe)
        except ApiError as error:
            return Finding(EvidenceResult.UNKNOWN, "the cluster's API", str(error))
        return None

    def affinity(self, capability_class: str) -> dict[str, Any]:
        """Return where a pod may go that asks for a class, or for none: to nodes that are proven for it."""
        if capability_class:
            return affinity(proof for name, proof in self._proofs.items() if name == capability_class)
        return affinity(proof for proof in self._proofs.values() if proof.plain)

    # -- workloads -----------------------------------------------------------------------------------------------

    async def _workload(self, probe: Probe) -> Finding:
        return await self._one(probe, self._trial("runtime", "any node"), "a Job ran and ended")

    async def _storage(self, probe: Probe) -> Finding:
        storage_class = str(claimed_part(probe).get("storageClass", ""))
        if not storage_class:
            return Finding(EvidenceResult.UNKNOWN, "no storage class", "the contract names no storageClass")
        subject = f"storage class {storage_class}"
        trial = self._trial(f"storage {storage_class}", subject, storage_class=storage_class, writes=True)
        return await self._one(probe, trial, "a claim was bound, written and read")

    async def _connection(self, probe: Probe) -> Finding:
        """Mount it as work does, or pull from it."""
        name = probe.parameters.get("connection", "")
        binding = self._bindings.connections.get(name)
        if binding is None:
            told = f"connection {name} is not bound here: add it to the site's bindings"
            return Finding(EvidenceResult.FAILED, f"connection {name}", told)
        options = connection_options(binding.options)
        if options.registry:
            return await self._registry(probe, name, options)
        if not options.mounted:
            told = f"connection {name} is reached by variables only, which no probe of this release tries"
            return Finding(EvidenceResult.UNKNOWN, f"connection {name}", told)
        if not options.claim:
            # A pod that mounts it does not start where it is missing.
            trial = self._trial(f"connection {name}", f"connection {name}", mount=volume_of(options, writable=False))
            return await self._one(probe, trial, "mounted")
        writes = probe.parameters.get("access") in WRITABLE
        claim = await self._api.get(
            f"/api/v1/namespaces/{namespaces_of(self._bindings)[0]}/persistentvolumeclaims/{options.claim}"
        )
        uid = str(((claim or {}).get("metadata") or {}).get("uid", "not there"))[:8]
        subject = f"connection {name} on a claim {uid}"
        trial = self._trial(
            f"connection {name}",
            subject,
            mount=volume_of(options, writable=writes),
            writes=writes and not options.sub_path,
        )
        return await self._one(probe, trial, "mounted, written and read" if trial.writes else "mounted")

    async def _registry(self, probe: Probe, name: str, options: ConnectionOptions) -> Finding:
        image = self._site.probes.images.get(name, "")
        if not image and self._site.probes.image.startswith(options.registry.rstrip("/") + "/"):
            image = self._site.probes.image
        if not image:
            told = f"nothing to pull: set kubernetes.probes.images.{name} to an image with a shell, by digest"
            return Finding(EvidenceResult.UNKNOWN, f"registry {name}", told)
        digest = image.rpartition("@")[2]
        trial = self._trial(f"registry {name}", f"registry {name}, {digest[:19]}", image=image)
        trial = replace(trial, pull_secret=options.pull_secret)
        return await self._one(probe, trial, "pulled by digest")

    def _trial(self, what: str, subject: str, *, image: str = "", **more: Any) -> Trial:
        """Return a trial with the site's image, whose digest is part of what is proven."""
        chosen = image or self._site.probes.image or self._site.wrapper.image
        shell = self._site.probes.shell if image or self._site.probes.image else self._site.wrapper.shell
        return Trial(what, f"{subject}, image {chosen.rpartition('@')[2][:19]}", chosen, shell, **more)

    async def _one(self, probe: Probe, trial: Trial, told: str) -> Finding:
        if not trial.image:
            return Finding(EvidenceResult.UNKNOWN, trial.subject, NO_IMAGE)
        outcome = (await self._trials.run([trial], _within(probe)))[trial]
        if outcome.proven:
            return Finding(EvidenceResult.PROVEN, trial.subject, told)
        result = EvidenceResult.UNKNOWN if outcome.proven is None and outcome.busy else EvidenceResult.FAILED
        return Finding(result, trial.subject, outcome.told)

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
        outcomes = await self._trials.run(list(trials), _within(probe), alone=f"class {name}")
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
                await self._nodes.listed.wait()
        except TimeoutError:
            raise UnreachableError("the cluster's nodes cannot be read: see the dispatcher's ClusterRole") from None
        nodes = [read_node(item) for item in self._nodes.items.values()]
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
        return self._trial(f"class {name}", node.subject, node=node.name, reach=reach)


def _within(probe: Probe) -> float:
    return max(1.0, (probe.timeout_seconds or 30) - MARGIN_S)


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
