"""All slots of a cluster as they stand, over every namespace of the site, and the writes that change one.

Names are unique over the namespaces: one epoch of an operation has one slot, wherever its project's work lies.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from landbridge.runtime import logs
from landbridge_dispatch.executors.bindings import Bindings, BindingsError
from landbridge_dispatch.executors.kubernetes import names, records
from landbridge_dispatch.executors.kubernetes.api import Api, ApiError, Object
from landbridge_dispatch.executors.kubernetes.facts import GONE, pod_facts
from landbridge_dispatch.executors.kubernetes.operators.kinds import KINDS, MADE, kinds_of
from landbridge_dispatch.executors.kubernetes.operators.lineage import Lineage, owners_of
from landbridge_dispatch.executors.kubernetes.operators.told import NOT_TOLD, Told, told_by
from landbridge_dispatch.executors.kubernetes.watching import Kept

log = logs.get(__name__)

TRIES: Final = 8
Change = Callable[[Object], Object | None]
"""From a Job as it stands to a merge patch of it; None: nothing is to be changed."""


def namespaces_of(bindings: Bindings) -> tuple[str, ...]:
    """Return the namespaces of the site's work. Raises BindingsError where the projects are not stated."""
    settings = bindings.kubernetes
    if "{project}" not in settings.namespace:
        return (settings.namespace,)
    projects = [project for project in bindings.accepts.projects if project != "*"]
    if not projects:
        raise BindingsError(
            "kubernetes.namespace: with {project} the site has to say which projects it accepts (accepts.projects)"
        )
    return tuple(sorted({settings.namespace_of(project) for project in projects}))


def jobs_path(namespace: str, name: str = "") -> str:
    return f"/apis/batch/v1/namespaces/{namespace}/jobs" + (f"/{name}" if name else "")


def pods_path(namespace: str, name: str = "") -> str:
    return f"/api/v1/namespaces/{namespace}/pods" + (f"/{name}" if name else "")


def deployments_path(namespace: str, name: str = "") -> str:
    return f"/apis/apps/v1/namespaces/{namespace}/deployments" + (f"/{name}" if name else "")


@dataclass(slots=True)
class _Namespace:
    name: str
    jobs: Kept
    pods: Kept
    deployments: Kept
    gangs: dict[str, Kept] = field(default_factory=dict)
    """Objects of operators, by kind."""

    def kinds(self) -> tuple[Kept, ...]:
        # Jobs last: what stands in a Job is then never younger than what is known of its pods.
        return self.pods, self.deployments, *self.gangs.values(), self.jobs


class Shelf:
    """What is known of the site's slots."""

    def __init__(self, api: Api, bindings: Bindings) -> None:
        site = bindings.kubernetes.site
        self.touched: Callable[[str], None] = lambda _name: None
        """Called with the name of each slot whose objects changed."""
        self.site = site
        self.api = api
        self._spaces = {
            name: _Namespace(
                name,
                Kept(api, jobs_path(name), names.selector(site), self._job_changed),
                Kept(api, pods_path(name), names.selector(site), self._part_changed),
                Kept(api, deployments_path(name), names.selector(site), self._part_changed),
            )
            for name in namespaces_of(bindings)
        }
        self._pods: dict[str, dict[str, Object]] = {}
        """By the slot's name, then the pod's."""
        self._ghosts: dict[str, dict[str, Object]] = {}
        """Pods that have run and are gone, as they were last: their slot's end may not be recorded yet."""
        self._lineage = Lineage()

    async def follow(self, operators: Iterable[str]) -> None:
        """Follow the objects of these operators, and of no others, in every namespace. Raises ApiError."""
        chosen = names.selector(self.site)
        wanted = {kind.kind: kind for operator in sorted(operators) for kind in kinds_of(operator)}
        for space in self._spaces.values():
            for name in space.gangs.keys() - wanted.keys():
                await space.gangs[name].list()  # what is gone is told as gone before it is let go of
                del space.gangs[name]
            for name in sorted(wanted.keys() - space.gangs.keys()):
                path = wanted[name].path(space.name)
                space.gangs[name] = Kept(self.api, path, chosen, self._gang_changed, may_lack=True)
                await space.gangs[name].list()

    def gangs(self) -> list[Kept]:
        """Return what is followed of operators; who follows it has to run each."""
        return [kept for space in self._spaces.values() for kept in space.gangs.values()]

    @property
    def first_namespace(self) -> str:
        """Where tombstones of unknown projects lie."""
        return next(iter(self._spaces))

    def namespaces(self) -> tuple[str, ...]:
        return tuple(self._spaces)

    def watches(self) -> Iterator[tuple[str, Callable[[], Coroutine[Any, Any, None]]]]:
        """Return what has to run for the shelf to follow the cluster, operators apart, by name."""
        for space in self._spaces.values():
            for kept in (space.pods, space.deployments, space.jobs):
                yield f"watch {kept.path}", kept.run

    async def read(self) -> None:
        """Read everything anew, uncached. Raises ApiError."""
        for space in self._spaces.values():
            for kept in space.kinds():
                await kept.list()

    # -- looking -------------------------------------------------------------------------------------------------------

    def jobs(self) -> list[Object]:
        """Return the Jobs of all slots."""
        return [job for space in self._spaces.values() for job in space.jobs.items.values() if _is_slot(job)]

    def job(self, name: str) -> Object | None:
        for space in self._spaces.values():
            job = space.jobs.items.get(name)
            if job is not None and _is_slot(job):
                return job
        return None

    def deployment(self, job: Object) -> Object | None:
        found = self._spaces[job["metadata"]["namespace"]].deployments.items.get(job["metadata"]["name"])
        return found if found is not None and _belongs(found, job) else None

    def told(self, job: Object) -> Told:
        """Return what the operator that runs a slot says of it; nothing where none does, or where it has not begun."""
        record = records.record_of(job)
        if record is None or not record.operator or names.BEGUN not in records.annotations(job):
            return NOT_TOLD
        return told_by(self.gang(job))

    def gang(self, job: Object) -> Object | None:
        """Return the operator's object of a slot."""
        record, meta = records.record_of(job), job["metadata"]
        if record is None or record.operator not in MADE:
            return None
        kept = self._spaces[meta["namespace"]].gangs.get(MADE[record.operator].kind)
        found = None if kept is None else kept.items.get(meta["name"])
        return found if found is not None and _belongs(found, job) else None

    def note_gang(self, item: Object) -> None:
        """Take in an operator's object as it was made."""
        kept = self._spaces[item["metadata"]["namespace"]].gangs.get(item["kind"])
        if kept is not None:
            kept.note(item)
            self._gang_changed(item, gone=False)

    async def made(self, pod: Object, job: Object) -> bool:
        """Tell whether a slot's Job made a pod, perhaps through an operator; asks for owners that are not known yet."""
        namespace = job["metadata"]["namespace"]
        followed = self._spaces[namespace].gangs
        unknown = self._lineage.unknown(pod, job)
        while unknown is not None:
            kind, name = KINDS[unknown["kind"]] if unknown["kind"] in followed else None, unknown["name"]
            path = kind.path(namespace, name) if kind else jobs_path(namespace, name)
            found = await self.api.get(path) if kind or unknown["kind"] == "Job" else None
            if found is None or found["metadata"]["uid"] != unknown["uid"] or not names.is_own(found, self.site):
                return False
            self._lineage.note(job["metadata"]["name"], found)
            following = self._lineage.unknown(pod, job)
            if following == unknown:
                return False
            unknown = following
        return self._lineage.descends(pod, job)

    def pods(self, name: str) -> list[Object]:
        """Return the pods that carry a slot's label, oldest first."""
        found = [*self._pods.get(name, {}).values(), *self._ghosts.get(name, {}).values()]
        return sorted(found, key=lambda pod: (pod["metadata"].get("creationTimestamp") or "", pod["metadata"]["name"]))

    def pods_of(self, job: Object) -> list[Object]:
        """Return the pods that this Job made itself; a service's are its Deployment's."""
        pods = self.pods(job["metadata"]["name"])
        record = records.record_of(job)
        if record is not None and record.type == "service":
            return pods
        return [pod for pod in pods if self._lineage.descends(pod, job)]

    def forget_ghosts(self, name: str) -> None:
        """Let go of pods that are gone: what they told is recorded."""
        self._ghosts.pop(name, None)

    async def pod(self, namespace: str, name: str, uid: str) -> Object | None:
        """Return a pod of ours by name and UID; asks the server for one that is not known yet."""
        space = self._spaces.get(namespace)
        if space is None:
            return None
        found = space.pods.items.get(name)
        if found is None or found["metadata"]["uid"] != uid or not pod_facts(found).node:
            # Who asks runs on a node: a state without one is older.
            found = await self.api.get(pods_path(namespace, name))
            if found is not None and found["metadata"]["uid"] == uid and names.is_own(found, self.site):
                # The watch is behind: who claims a slot must be known before anybody asks where it is.
                space.pods.note(found)
                self._part_changed(found, gone=False)
        if found is None or found["metadata"]["uid"] != uid or not names.is_own(found, self.site):
            return None
        return found

    async def read_pods(self, namespace: str) -> None:
        """Read the pods of a namespace anew, uncached: before it is said that one is gone. Raises ApiError."""
        await self._spaces[namespace].pods.list()

    # -- changing ------------------------------------------------------------------------------------------------------

    async def create(self, job: Object) -> Object | None:
        """Create a slot's Job; None: created. The Job that has the name already, whosever it is, else."""
        namespace, name = job["metadata"]["namespace"], job["metadata"]["name"]
        if (known := self.job(name)) is not None:
            return known
        try:
            self._note(await self.api.create(jobs_path(namespace), job))
        except ApiError as error:
            if error.status != 409:
                raise
            found = await self.api.get(jobs_path(namespace, name))
            if found is None:
                raise
            if names.is_own(found, self.site):
                self._note(found)
            return found
        return None

    async def change(self, name: str, decide: Change) -> Object | None:
        """Change a slot's Job by what `decide` makes of it as it stands; again if somebody was faster.

        Return the Job as it is then; None where there is none. Raises ApiError.
        """
        job = self.job(name)
        for _ in range(TRIES):
            if job is None:
                return None
            patch = decide(job)
            if patch is None:
                return job
            meta = job["metadata"]
            path = jobs_path(meta["namespace"], name)
            patch.setdefault("metadata", {}).update(resourceVersion=meta["resourceVersion"], uid=meta["uid"])
            try:
                changed = await self.api.merge(path, patch)
            except ApiError as error:
                if error.status == 404:
                    return None
                if error.status != 409:
                    raise
                job = await self.api.get(path)
                if job is not None and (job["metadata"]["uid"] != meta["uid"] or not names.is_own(job, self.site)):
                    return None
                if job is not None:
                    self._note(job)
            else:
                self._note(changed)
                return changed
        raise ApiError(409, "Conflict", f"slot {name} was changed by others {TRIES} times in a row")

    async def remove(self, job: Object) -> None:
        """Delete a slot's Job, and with it all that it owns."""
        meta = job["metadata"]
        await self.api.delete(jobs_path(meta["namespace"], meta["name"]), uid=meta["uid"])
        self._spaces[meta["namespace"]].jobs.forget(meta["name"])
        self._lineage.forget(meta["name"])

    async def end_pods(self, pods: list[Object], grace_s: int | None) -> None:
        """Delete pods of ours; `grace_s` None: with their own grace."""
        ours = [pod["metadata"] for pod in pods if names.is_own(pod, self.site)]
        await asyncio.gather(
            *(
                self.api.delete(pods_path(meta["namespace"], meta["name"]), uid=meta["uid"], grace_s=grace_s)
                for meta in ours
                if not meta.get("deletionTimestamp") or (grace_s or 0) < (meta.get("deletionGracePeriodSeconds") or 0)
            )
        )

    def _note(self, job: Object) -> None:
        self._spaces[job["metadata"]["namespace"]].jobs.note(job)
        self.touched(job["metadata"]["name"])

    def _job_changed(self, job: Object, gone: bool) -> None:
        slot = (job["metadata"].get("labels") or {}).get(names.SLOT) or job["metadata"]["name"]
        if slot != job["metadata"]["name"]:
            # A Job that an operator made for a slot.
            self._gang_changed(job, gone)
            return
        if gone:
            self._lineage.forget(slot)
        self.touched(slot)

    def _gang_changed(self, item: Object, gone: bool) -> None:
        slot = (item["metadata"].get("labels") or {}).get(names.SLOT, "")
        if not gone:
            self._lineage.note(slot, item)
        elif self.job(slot) is None:
            self._lineage.forget(slot)
        self.touched(slot)

    def _part_changed(self, item: Object, gone: bool) -> None:
        slot = (item["metadata"].get("labels") or {}).get(names.SLOT, "")
        if item.get("kind") != "Deployment" and "containers" in (item.get("spec") or {}):
            if gone:
                self._pods.get(slot, {}).pop(item["metadata"]["name"], None)
                if not self._pods.get(slot, True):
                    del self._pods[slot]
                facts = pod_facts(item)
                if facts.ended or facts.running:
                    self._ghosts.setdefault(slot, {})[item["metadata"]["name"]] = item | {GONE: True}
            else:
                self._pods.setdefault(slot, {})[item["metadata"]["name"]] = item
        self.touched(slot)


def _is_slot(job: Object) -> bool:
    return names.RECORD in records.annotations(job)


def _belongs(item: Object, job: Object) -> bool:
    """Tell whether a Job made an object; a label alone anybody can write."""
    return any(owner.get("uid") == job["metadata"]["uid"] for owner in owners_of(item))
