"""HTTP of alerting: alerts as far as the caller may see them, and silences."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import msgspec
from fastapi import Depends, FastAPI, Request

from landbridge.domain.units import UnitError, parse_duration
from landbridge.runtime import logs
from landbridge.runtime.auth import Principal, Role
from landbridge.runtime.ids import new_id
from landbridge.runtime.problems import ProblemError
from landbridge_alerting import alerts_table
from landbridge_alerting.alerts_table import Silence
from landbridge_alerting.evaluation import unsilenced
from landbridge_alerting.machine import Alert, State

if TYPE_CHECKING:
    from landbridge_alerting.service import AlertingService

log = logs.get(__name__)

_STATES: Final = tuple(state.value for state in State)
_LIST_MAX: Final = 1000
_SILENCE_MAX: Final = timedelta(days=90)


class SilenceAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of POST /v1/silences: labels (also `rule`, `severity`) and how long, such as `2h`."""

    matchers: dict[str, str]
    duration: str
    comment: str = ""


def add_routes(app: FastAPI, service: "AlertingService") -> None:
    """Add the routes."""
    viewer = Depends(service.auth.require(Role.VIEWER))
    operator = Depends(service.auth.require(Role.OPERATOR))

    @app.get("/v1/alerts")
    async def list_alerts(
        state: str = "firing", rule: str = "", limit: int = 200, principal: Principal = viewer
    ) -> dict[str, Any]:
        now = service.clock.wall()
        async with service.database.transaction(readonly=True) as tx:
            found = await alerts_table.listed(tx, _states(state), rule, max(1, min(limit, _LIST_MAX)))
            silences = await alerts_table.silences(tx, now)
        loud = {alert.fingerprint for alert in unsilenced(found, silences, now)}
        seen = [alert for alert in found if _visible(principal, alert)]
        return {"items": [_shown(alert, silenced=alert.fingerprint not in loud) for alert in seen]}

    @app.get("/v1/silences")
    async def list_silences(_: Principal = viewer) -> dict[str, Any]:
        async with service.database.transaction(readonly=True) as tx:
            found = await alerts_table.silences(tx, service.clock.wall())
        return {"items": [msgspec.to_builtins(each) for each in found]}

    @app.post("/v1/silences", status_code=201)
    async def create_silence(request: Request, principal: Principal = operator) -> dict[str, Any]:
        silence = _silence(await request.body(), principal.name, service.clock.wall())
        async with service.database.transaction() as tx:
            await alerts_table.add_silence(tx, silence)
        log.info("silence made", matchers=dict(silence.matchers), by=principal.name, until=silence.ends_at.isoformat())
        return dict(msgspec.to_builtins(silence))

    @app.delete("/v1/silences/{silence_id}")
    async def delete_silence(silence_id: UUID, principal: Principal = operator) -> dict[str, Any]:
        async with service.database.transaction() as tx:
            if not await alerts_table.end_silence(tx, str(silence_id), service.clock.wall()):
                raise ProblemError(404, "Not found", f"no silence {silence_id} that still holds")
        log.info("silence ended", silence=str(silence_id), by=principal.name)
        return {"id": str(silence_id), "ended": True}


def _states(text: str) -> Sequence[str]:
    if text == "all":
        return _STATES
    wanted = [part.strip() for part in text.split(",") if part.strip()]
    unknown = [part for part in wanted if part not in _STATES]
    if unknown or not wanted:
        detail = f"expected {', '.join(_STATES)} or all; found {text!r}"
        raise ProblemError(422, "Unknown state", detail)
    return wanted


def _visible(principal: Principal, alert: Alert) -> bool:
    """Alerts of a project are seen by those who see the project, all others by everybody."""
    project = alert.labels.get("project", "")
    return not project or principal.sees(project)


def _shown(alert: Alert, *, silenced: bool) -> dict[str, Any]:
    return {
        "rule": alert.rule,
        "fingerprint": alert.fingerprint,
        "state": alert.state.value,
        "severity": alert.severity,
        "labels": dict(alert.labels),
        "summary": alert.summary,
        "description": alert.description,
        "startsAt": (alert.starts_at or alert.since).isoformat(),
        **({"endsAt": alert.ends_at.isoformat()} if alert.ends_at is not None else {}),
        "silenced": silenced,
    }


def _silence(body: bytes, by: str, now: datetime) -> Silence:
    """Read a silence. Raises ProblemError 422."""
    try:
        asked = msgspec.json.decode(body, type=SilenceAsked)
        length = timedelta(milliseconds=parse_duration(asked.duration))
    except (msgspec.MsgspecError, UnitError) as error:
        raise ProblemError(422, "Invalid request", str(error)) from error
    if not asked.matchers:
        raise ProblemError(422, "No matchers", "name at least one label; a silence of everything is not offered")
    if not timedelta(0) < length <= _SILENCE_MAX:
        raise ProblemError(422, "Invalid duration", f"expected more than 0 and at most 90d, found {asked.duration}")
    return Silence(
        id=new_id(),
        matchers=asked.matchers,
        starts_at=now,
        ends_at=now + length,
        created_by=by,
        comment=asked.comment,
    )
