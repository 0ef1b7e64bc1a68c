"""Comparing the projection with its facts, and writing again what differs, on an administrator's word."""

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Depends, FastAPI, Query

from landbridge.runtime import logs
from landbridge.runtime.auth import Principal, Role
from landbridge_lineage import replay

if TYPE_CHECKING:
    from landbridge_lineage.service import LineageService

log = logs.get(__name__)


def add_routes(app: FastAPI, service: "LineageService") -> None:
    """Add the route."""
    admin = Depends(service.auth.require(Role.ADMIN))

    @app.post("/v1/recovery/lineage")
    async def rebuild(
        dry_run: Annotated[bool, Query(alias="dryRun")] = False, principal: Principal = admin
    ) -> dict[str, Any]:
        """Fold every fact again; `dryRun` only compares."""
        found = await replay.compare(service.database)
        repaired = 0
        if not found.equal and not dry_run:
            repaired = await replay.repair(service.database, found)
            log.warning("projection_written_again", by=principal.name, operations=repaired)
        return {
            "operations": found.operations,
            "equal": found.equal,
            "differing": len(found.differing),
            "repaired": repaired,
            "dryRun": dry_run,
        }
