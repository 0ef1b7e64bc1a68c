"""What people may ask ranking: what waits where in a queue, what is held against which limit, why it was decided so."""

from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from fastapi import Depends, FastAPI

from landbridge.domain.decision_record import Placed, replay
from landbridge.runtime.auth import Principal, Role
from landbridge.runtime.problems import ProblemError
from landbridge_ranking import questions, store

if TYPE_CHECKING:
    from landbridge_ranking.service import RankingService


def add_routes(app: FastAPI, service: "RankingService") -> None:
    """Add the routes. Any replica answers, from the tables."""
    Viewer = Annotated[Principal, Depends(service.auth.require(Role.VIEWER))]  # noqa: N806 - a type

    @app.get("/v1/ranking/queues")
    async def queues(principal: Viewer) -> list[dict[str, Any]]:  # noqa: ARG001
        async with service.database.transaction(readonly=True) as tx:
            return await questions.queues(tx, service.book.view.catalogue)

    @app.get("/v1/ranking/operations/{operation}")
    async def operation(principal: Viewer, operation: str) -> dict[str, Any]:
        async with service.database.transaction(readonly=True) as tx:
            found = await questions.standing(tx, operation)
        if found is None or not principal.sees(found["project"]):
            raise ProblemError(404, "Not found", f"operation {operation} neither waits here nor holds anything")
        return found

    @app.get("/v1/ranking/decisions/{decision}")
    async def decision(principal: Viewer, decision: str) -> dict[str, Any]:
        """Return a decision record, and whether computing it again for the operations it placed gives the same."""
        async with service.database.transaction(readonly=True) as tx:
            record = await store.decision(tx, decision)
            placed = await questions.placed_by(tx, decision) if record is not None else []
        if record is None or not all(principal.sees(project) for project, _ in placed):
            raise ProblemError(404, "Not found", f"there is no decision {decision}")
        again = [replay(record, Placed(p.operation, p.round, p.previous, p.held_out)) == record for _, p in placed]
        answer: dict[str, Any] = msgspec.to_builtins(record)
        return {**answer, "operations": [msgspec.to_builtins(p) for _, p in placed], "replays": all(again)}
