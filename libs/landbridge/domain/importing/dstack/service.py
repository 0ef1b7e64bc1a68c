"""What makes a dstack configuration a service: port, replicas, health."""

from typing import Final

from landbridge.domain.documents.places import Path
from landbridge.domain.importing.report import Left, Why
from landbridge.domain.importing.sheet import Sheet

_ROUTE: Final = Left(Why.NOT_NEEDED, "the environment's own gateway answers callers")
_SERVICE: Final[dict[str, Left]] = {
    "gateway": _ROUTE,
    "https": _ROUTE,
    "strip_prefix": _ROUTE,
    "auth": Left(Why.DECISION, "whether callers must be known", "name a control in spec.constraints.controls"),
    "model": Left(Why.NO_COUNTERPART, "published as a model of dstack's gateway", "name the route that callers use"),
    "scaling": Left(
        Why.NO_COUNTERPART, "a service has a fixed number of replicas", "change spec.replicas as load does"
    ),
    "rate_limits": Left(Why.NO_COUNTERPART, "requests are not counted here", "limit them at the gateway"),
    "cors": _ROUTE,
    "router": Left(Why.NO_COUNTERPART, "a router between replicas", "the environment spreads requests"),
}


def take_service(sheet: Sheet) -> None:
    """Map port, number of replicas and the path of the probe."""
    port = sheet.at("port")
    source: Path = ("port",)
    if isinstance(port, dict):
        source = ("port", "container_port")
        port = sheet.at(*source)
        if sheet.has("port", "local_port"):
            sheet.leave(("port", "local_port"), _ROUTE)
    number = str(port).rpartition(":")[2]
    if number.isdigit():
        sheet.put(source, ("spec", "ports", "http", "port"), int(number))
    _replicas(sheet)
    _probes(sheet)
    sheet.leave_known((), _SERVICE)


def _replicas(sheet: Sheet) -> None:
    found = sheet.at("replicas")
    low, dots, high = str(found).partition("..")
    if isinstance(found, list | dict) or not sheet.has("replicas"):
        if sheet.has("replicas"):
            left = Left(
                Why.NO_COUNTERPART, "replicas of one operation are alike", "submit one operation for each group"
            )
            sheet.leave(("replicas",), left)
        return
    if low.isdigit() and int(low) > 0:
        sheet.put(("replicas",), ("spec", "replicas"), int(low), "the smallest number" if dots else "")
    if dots or not low.isdigit() or not int(low):
        left = Left(Why.NO_COUNTERPART, "does not grow and shrink by itself", "change spec.replicas as load does")
        sheet.leave(("replicas",), left, found=f"up to {high}" if high else None)


def _probes(sheet: Sheet) -> None:
    for index in range(len(sheet.list("probes"))):
        base: Path = ("probes", index)
        if not index and sheet.text(*base, "url"):
            sheet.put((*base, "url"), ("spec", "route", "healthPath"), sheet.text(*base, "url"))
        for field in sheet.map(*base):
            if sheet.has(*base, field):
                reason = "a service is ready when its path answers a GET; how often it is asked is the environment's"
                sheet.leave((*base, field), Left(Why.NO_COUNTERPART, reason))
