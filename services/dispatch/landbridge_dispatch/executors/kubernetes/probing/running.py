"""Trials in a cluster: Jobs are made where no proof stands, watched for a while, and judged."""

import asyncio
import secrets
import time
from collections.abc import Sequence
from typing import Final

from landbridge.runtime import logs
from landbridge_dispatch.executors.kubernetes.api import Api, ApiError
from landbridge_dispatch.executors.kubernetes.facts import condition, moment
from landbridge_dispatch.executors.kubernetes.manifests import devices_version
from landbridge_dispatch.executors.kubernetes.probing import smoke
from landbridge_dispatch.executors.kubernetes.probing.smoke import Object, Outcome, Trial
from landbridge_dispatch.executors.kubernetes.settings import KubernetesSettings
from landbridge_dispatch.executors.kubernetes.shelf import jobs_path, pods_path

log = logs.get(__name__)

AT_A_TIME: Final = 8
"""Trials that run at once for one probe: proving a cluster must not crowd it."""
POLL_S: Final = 1.0
FRESH_S: Final = 10.0
"""Probes that begin together read once."""
BUSY_LASTS_S: Final = 86_400
"""How long the proof of a node counts whose devices are all at work, as long as the node is the same."""
RETRY_AFTER_S: Final = 60
"""How soon something that failed is tried again, as long as it is the same."""


class Trials:
    """The trials of one site, all in one namespace of its work."""

    def __init__(self, api: Api, site: KubernetesSettings, namespace: str) -> None:
        self._api = api
        self._site = site
        self._namespace = namespace
        self._cluster = (0, 0)
        self._reading = asyncio.Lock()
        self._read: tuple[dict[str, Object], list[Object]] | None = None
        self._read_at = 0.0
        self._earlier: dict[tuple[str, str], float] = {}

    async def run(self, trials: Sequence[Trial], within_s: float, *, alone: str = "") -> dict[Trial, Outcome]:
        """Return what is known of each trial after at most about `within_s`. Raises ApiError.

        A proof counts for as long as the site says and only for the same subject; what has none is tried, a few at a
        time. A trial for which there is no room now keeps the proof that its node had before, as the same. `alone`:
        what these trials are about; others about it, of nodes that are gone, are removed.
        """
        deadline = asyncio.get_running_loop().time() + within_s
        known = await self._known(at_most_s=FRESH_S)
        found = {trial: self._judge(trial, *known) for trial in trials}
        if alone:
            await self._clear(alone, {trial.name for trial in trials}, known[0])
        for trial in [trial for trial in trials if found[trial] is None][:AT_A_TIME]:
            await self._begin(trial, known[0].get(trial.name))
        while any(outcome is None or outcome.proven is None for outcome in found.values()):
            if asyncio.get_running_loop().time() + POLL_S > deadline:
                break
            await asyncio.sleep(POLL_S)
            known = await self._known()
            found = {trial: self._judge(trial, *known) for trial in trials}
            waiting = [trial for trial, outcome in found.items() if outcome is None]
            busy = sum(outcome is not None and outcome.proven is None for outcome in found.values())
            for trial in waiting[: max(0, AT_A_TIME - busy)]:
                await self._begin(trial, known[0].get(trial.name))
        return {trial: outcome or Outcome(None, "not tried yet") for trial, outcome in found.items()}

    async def _known(self, *, at_most_s: float = 0.0) -> tuple[dict[str, Object], list[Object]]:
        """Read all Jobs of probes and their pods; those read at most so long ago will do."""
        async with self._reading:
            now = asyncio.get_running_loop().time()
            if self._read is None or now - self._read_at > at_most_s:
                self._read, self._read_at = await self._list(), now
            return self._read

    async def _list(self) -> tuple[dict[str, Object], list[Object]]:
        chosen = smoke.selector(self._site.site)
        (jobs, _), (pods, _) = await asyncio.gather(
            self._api.list(jobs_path(self._namespace), chosen), self._api.list(pods_path(self._namespace), chosen)
        )
        return {job["metadata"]["name"]: job for job in jobs}, pods

    def _judge(self, trial: Trial, jobs: dict[str, Object], pods: list[Object]) -> Outcome | None:
        """None: it has to be tried, because there is no proof, or one about something else, or an old one."""
        job = jobs.get(trial.name)
        if job is None or job["metadata"].get("deletionTimestamp"):
            return None
        if (job["metadata"].get("annotations") or {}).get(smoke.SUBJECT) != trial.subject:
            return None
        outcome = smoke.outcome(job, pods)
        age_s = time.time() - outcome.at
        earlier = float(job["metadata"]["annotations"].get(smoke.EARLIER) or 0)
        if outcome.busy and time.time() - earlier < BUSY_LASTS_S:
            tried = outcome.proven is not None and age_s > RETRY_AFTER_S
            return None if tried else Outcome(True, "no room for a trial now", earlier)
        lasts_s = self._site.probes.every_seconds if outcome.proven else RETRY_AFTER_S
        return None if outcome.proven is not None and age_s > lasts_s else outcome

    async def _clear(self, about: str, wanted: set[str], jobs: dict[str, Object]) -> None:
        for name, job in jobs.items():
            what = (job["metadata"].get("annotations") or {}).get(smoke.WHAT, "")
            if name not in wanted and what.startswith(f"{about} ") and not job["metadata"].get("deletionTimestamp"):
                await self._api.delete(jobs_path(self._namespace, name), uid=job["metadata"]["uid"])

    async def _begin(self, trial: Trial, old: Object | None) -> None:
        """Make the Job; one that is there about something else goes first, and the next look makes the new one."""
        path = jobs_path(self._namespace, trial.name)
        try:
            if old is not None:
                if not old["metadata"].get("deletionTimestamp"):
                    self._remember(trial, old)
                    await self._api.delete(path, uid=old["metadata"]["uid"])
                return
            await self._claim_template(trial)
            job = smoke.job(self._site, self._namespace, trial, secrets.token_hex(8))
            if earlier := self._earlier.pop((trial.name, trial.subject), 0.0):
                job["metadata"]["annotations"][smoke.EARLIER] = f"{earlier:.0f}"
            await self._api.create(jobs_path(self._namespace), job)
        except ApiError as error:
            if error.status != 409:
                log.warning("probe_not_started", probe=trial.what, node=trial.node, error=str(error))

    def _remember(self, trial: Trial, old: Object) -> None:
        """Keep when the same was proven: its devices may all be at work when it is tried again."""
        annotations = old["metadata"].get("annotations") or {}
        if annotations.get(smoke.SUBJECT) != trial.subject:
            return
        completed = condition(old, "Complete")
        at = moment(completed.get("lastTransitionTime")) if completed else float(annotations.get(smoke.EARLIER) or 0)
        if at:
            self._earlier[trial.name, trial.subject] = at

    async def _claim_template(self, trial: Trial) -> None:
        if not trial.reach.device_class:
            return
        if self._cluster == (0, 0):
            self._cluster = await self._api.version()
        version = devices_version(self._cluster)
        template = smoke.claim_template(self._site, self._namespace, trial, version)
        path = f"/apis/resource.k8s.io/{version}/namespaces/{self._namespace}/resourceclaimtemplates"
        if template is None or not version or await self._api.get(f"{path}/{trial.name}") is not None:
            return
        await self._api.create(path, template)
