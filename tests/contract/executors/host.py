"""A process like a dispatcher: opens the site's executor, starts work, and waits to be killed."""

import asyncio
import json
import os
from pathlib import Path

from contract.executors.harness import a_lease, make_executor, run
from landbridge.domain.ownership.epochs import Epoch
from landbridge.domain.ownership.policy import Disconnection
from landbridge_dispatch.executors.protocol import Work
from landbridge_dispatch.specification import disconnection_of, read_operation


def main() -> None:
    """Do what HOST_WORK says; ends only when it is killed."""
    asyncio.run(work_at(**json.loads(os.environ["HOST_WORK"])))


async def work_at(home: str, operation: str, spec: str, lease_s: float) -> None:
    executor = make_executor(Path(home))
    await executor.open()
    executor.hold_lease(a_lease(seconds=lease_s))
    body = Path(spec).read_bytes()
    view = read_operation(body)
    policy: Disconnection = disconnection_of(view.spec.lifecycle)
    work = Work(
        operation=operation,
        epoch=Epoch(1, 1),
        project="retail-eu",
        attempt=1,
        term=3,
        spec=body,
        spec_sha256="00",
        view=view,
        policy=policy,
    )
    await run(executor, work)
    async for changed in executor.observe():
        for found in changed:
            print(found.phase, flush=True)
