"""One trial for a whole claim: made with the site's image, run, and brought to a finding."""

from typing import Any, Final

from landbridge.schema.wire.command_v1 import Probe
from landbridge.schema.wire.report_v1 import EvidenceResult
from landbridge_dispatch.executors.kubernetes.probing.running import Trials
from landbridge_dispatch.executors.kubernetes.probing.smoke import Outcome, Trial
from landbridge_dispatch.executors.kubernetes.settings import KubernetesSettings
from landbridge_dispatch.executors.protocol import Finding

MARGIN_S: Final = 4.0
"""How long before its timeout a probe says what it knows."""
NO_IMAGE: Final = "no image to try with: set kubernetes.probes.image in the site's bindings"


def within(probe: Probe) -> float:
    """Return for how many seconds a probe may look."""
    return max(1.0, (probe.timeout_seconds or 30) - MARGIN_S)


def trial_of(site: KubernetesSettings, what: str, subject: str, *, image: str = "", **more: Any) -> Trial:
    """Return a trial with the site's image, whose digest is part of what is proven."""
    chosen = image or site.probes.image or site.wrapper.image
    shell = site.probes.shell if image or site.probes.image else site.wrapper.shell
    return Trial(what, f"{subject}, image {chosen.rpartition('@')[2][:19]}", chosen, shell, **more)


async def outcome_of(trials: Trials, probe: Probe, trial: Trial) -> Outcome:
    """Run a trial unless its proof stands. Raises ApiError."""
    if not trial.image:
        return Outcome(None, NO_IMAGE, busy=True)
    return (await trials.run([trial], within(probe)))[trial]


def finding_of(trial: Trial, outcome: Outcome, told: str) -> Finding:
    """Return what an outcome shows; `told`: what was done, where it was."""
    if outcome.proven:
        return Finding(EvidenceResult.PROVEN, trial.subject, told)
    result = EvidenceResult.UNKNOWN if outcome.proven is None and outcome.busy else EvidenceResult.FAILED
    return Finding(result, trial.subject, outcome.told)


async def one(trials: Trials, probe: Probe, trial: Trial, told: str) -> Finding:
    """Run a trial and say what it shows. Raises ApiError."""
    return finding_of(trial, await outcome_of(trials, probe, trial), told)
