"""Connections, tried as work uses them: mounted, written and read, pulled from; and how fast that goes."""

import hashlib
from dataclasses import replace

from landbridge.domain import units
from landbridge.schema.wire.command_v1 import Probe
from landbridge.schema.wire.report_v1 import EvidenceResult
from landbridge_dispatch.executors.bindings import WRITABLE, Bindings
from landbridge_dispatch.executors.claimed import claimed_part
from landbridge_dispatch.executors.kubernetes.api import Api
from landbridge_dispatch.executors.kubernetes.pods import volume_of
from landbridge_dispatch.executors.kubernetes.probing.judging import finding_of, outcome_of, trial_of
from landbridge_dispatch.executors.kubernetes.probing.running import Trials
from landbridge_dispatch.executors.kubernetes.probing.smoke import Trial
from landbridge_dispatch.executors.kubernetes.settings import S3, ConnectionOptions, connection_options
from landbridge_dispatch.executors.kubernetes.shelf import namespaces_of
from landbridge_dispatch.executors.protocol import Finding

_DONE = {"read-only": "read", "write-only": "written", "read-write": "written and read"}


class Connections:
    """Probes of the connections that a site binds. One Job proves that one is reached, and how fast it is."""

    def __init__(self, api: Api, bindings: Bindings, trials: Trials) -> None:
        self._api = api
        self._bindings = bindings
        self._site = bindings.kubernetes
        self._trials = trials

    async def reached(self, probe: Probe) -> Finding:
        """Reach it as work does. Raises ApiError."""
        trial = await self._trial(probe)
        if isinstance(trial, Finding):
            return trial
        return finding_of(trial, await outcome_of(self._trials, probe, trial), _done(trial))

    async def measured(self, probe: Probe) -> Finding:
        """Say how fast it is, in bits per second, two digits of it. Raises ApiError."""
        trial = await self._trial(probe)
        if isinstance(trial, Finding):
            return replace(trial, result=EvidenceResult.UNKNOWN)
        outcome = await outcome_of(self._trials, probe, trial)
        stated = claimed_part(probe).get("bandwidth")
        claimed = float(units.parse_bandwidth(str(stated))) if stated else None
        if not outcome.proven or outcome.speed is None:
            why = "nothing there is large enough, or may be written, to measure by" if outcome.proven else outcome.told
            return Finding(EvidenceResult.UNKNOWN, trial.subject, why, claimed=claimed)
        told = "read by one pod" if trial.store is not None and trial.access != "write-only" else "written by one pod"
        return Finding(EvidenceResult.PROVEN, trial.subject, told, units.two_digits(outcome.speed), claimed)

    async def _trial(self, probe: Probe) -> Trial | Finding:
        """Return what is to be tried; a finding where nothing can be."""
        name, access = probe.parameters.get("connection", ""), probe.parameters.get("access", "read-only")
        binding = self._bindings.connections.get(name)
        subject = f"connection {name}"
        if binding is None:
            told = f"connection {name} is not bound here: add it to the site's bindings"
            return Finding(EvidenceResult.FAILED, subject, told)
        options = connection_options(binding.options)
        if options.registry:
            return self._registry(name, options)
        if options.s3 is not None:
            if access in WRITABLE and binding.access not in WRITABLE:
                return Finding(EvidenceResult.FAILED, subject, f"connection {name} is read-only here: see its binding")
            return self._store(name, options.s3, access)
        if not options.mounted:
            told = f"connection {name} is reached by variables only, which no probe of this release tries"
            return Finding(EvidenceResult.UNKNOWN, subject, told)
        if not options.claim:
            # A pod that mounts it does not start where it is missing.
            return trial_of(self._site, subject, subject, mount=volume_of(options, writable=False))
        return await self._claim(name, options, writes=access in WRITABLE)

    async def _claim(self, name: str, options: ConnectionOptions, *, writes: bool) -> Trial:
        claim = await self._api.get(
            f"/api/v1/namespaces/{namespaces_of(self._bindings)[0]}/persistentvolumeclaims/{options.claim}"
        )
        uid = str(((claim or {}).get("metadata") or {}).get("uid", "not there"))[:8]
        written = writes and not options.sub_path
        return trial_of(
            self._site,
            f"connection {name}",
            f"connection {name} on a claim {uid}",
            mount=volume_of(options, writable=writes),
            writes=written,
            measures=written,
        )

    def _store(self, name: str, store: S3, access: str) -> Trial | Finding:
        """Try an object store. What it is bound to is part of what is proven, told only by its digest."""
        place = f"{store.endpoint} {store.bucket} {store.prefix} {store.secret} {access}"
        subject = f"connection {name} in store {hashlib.sha256(place.encode()).hexdigest()[:12]}"
        if not self._site.carrier.image:
            told = "no image to try an object store with: set kubernetes.carrier.image in the site's bindings"
            return Finding(EvidenceResult.UNKNOWN, subject, told)
        image = self._site.carrier.image
        return trial_of(self._site, f"connection {name}", subject, image=image, store=store, access=access)

    def _registry(self, name: str, options: ConnectionOptions) -> Trial | Finding:
        image = self._site.probes.images.get(name, "")
        if not image and self._site.probes.image.startswith(options.registry.rstrip("/") + "/"):
            image = self._site.probes.image
        if not image:
            told = f"nothing to pull: set kubernetes.probes.images.{name} to an image with a shell, by digest"
            return Finding(EvidenceResult.UNKNOWN, f"registry {name}", told)
        digest = image.rpartition("@")[2]
        trial = trial_of(self._site, f"registry {name}", f"registry {name}, {digest[:19]}", image=image)
        return replace(trial, pull_secret=options.pull_secret)


def _done(trial: Trial) -> str:
    if trial.store is not None:
        return _DONE.get(trial.access, "read")
    if trial.what.startswith("registry"):
        return "pulled by digest"
    return "mounted, written and read" if trial.writes else "mounted"
