"""Resources of a SkyPilot task: amounts and accelerators; clouds, regions and instance types are told."""

from typing import Any, Final

from landbridge.domain.documents.places import Path
from landbridge.domain.importing.hardware import ACCELERATOR, take_count, take_product, take_spot
from landbridge.domain.importing.images import take_image
from landbridge.domain.importing.report import Left, Why
from landbridge.domain.importing.sheet import Sheet
from landbridge.domain.importing.sizes import gigabytes
from landbridge.domain.importing.wishes import CLUSTER, INSTANCE, REGION, take_labels

_REQUESTS: Final = ("spec", "resources", "requests")
_LEAST: Final = "at least so much, as every request"
_CHOICES: Final = Left(
    Why.DECISION,
    "one of several; an operation says once what it needs, and every environment that has it comes into question",
    "choose the class that all of them fulfil; regions only where they are a duty",
)
_RESOURCES: Final[dict[str, Left]] = {
    **dict.fromkeys(("cloud", "region", "zone", "infra"), REGION),
    "instance_type": INSTANCE,
    "any_of": _CHOICES,
    "ordered": _CHOICES,
    "autostop": CLUSTER,
    "autodown": CLUSTER,
    "idle_minutes_to_autostop": CLUSTER,
    "hooks": Left(Why.NO_COUNTERPART, "scripts of the machine", "SIGTERM with a grace comes before a stop"),
    "disk_tier": Left(Why.NO_COUNTERPART, "how fast a disk is, the environment's class says", "choose a class"),
    "local_disk": Left(Why.NO_COUNTERPART, "how fast a disk is, the environment's class says", "choose a class"),
    "network_tier": Left(Why.DECISION, "how fast nodes speak", "write accelerator.interconnect if it must be"),
    "accelerator_args": Left(Why.NO_COUNTERPART, "of one provider's devices", "a capability class says it"),
    "max_hourly_cost": Left(Why.DECISION, "a bound on the price", "weigh cost in spec.preferences; quotas bound it"),
    "volumes": Left(Why.NAME, "volumes of the machine", "write spec.inputs and outputs with a connection"),
    "priority": Left(Why.DECISION, "a number between jobs of one controller", "spec.priority names a queue's class"),
    "_cluster_config_overrides": CLUSTER,
    "_no_missing_accel_warnings": CLUSTER,
}


def take_resources(sheet: Sheet) -> None:
    """Map what each node needs."""
    base: Path = ("resources",)
    _amounts(sheet)
    _accelerators(sheet, (*base, "accelerators"))
    _image(sheet)
    spot = sheet.at(*base, "use_spot")
    if spot is True:
        take_spot(sheet, (*base, "use_spot"), "require")
    elif spot is False:
        sheet.leave(
            (*base, "use_spot"), Left(Why.NOT_NEEDED, "hardware that can be taken away is forbidden unless asked for")
        )
    _recovery(sheet, (*base, "job_recovery"))
    take_labels(sheet, (*base, "labels"))
    sheet.leave_known(base, _RESOURCES)


def _amounts(sheet: Sheet) -> None:
    cpus = sheet.text("resources", "cpus")
    if cpus.removesuffix("+").replace(".", "", 1).isdigit():
        note = _LEAST if cpus.endswith("+") else ""
        sheet.put(("resources", "cpus"), (*_REQUESTS, "cpu"), cpus.removesuffix("+"), note)
    for field, target in (
        ("memory", "memory"), ("disk_size", "ephemeral-storage"), ("ephemeral_storage", "ephemeral-storage"),
    ):  # fmt: skip
        text = sheet.text("resources", field)
        size = gigabytes(text)
        if size:
            sheet.put(("resources", field), (*_REQUESTS, target), size, _LEAST if text.endswith("+") else "")
        elif text:
            factor = text.endswith("x")
            reason = "a multiple of the processors" if factor else "not an amount"
            sheet.leave(("resources", field), Left(Why.DECISION, reason, f"write requests.{target}, such as 32Gi"))


def _accelerators(sheet: Sheet, source: Path) -> None:
    found = sheet.at(*source)
    if isinstance(found, dict) and len(found) == 1:
        ((product, count),) = found.items()
        _accelerator(sheet, (*source, product), str(product), 1 if count is None else count)
    elif isinstance(found, list) and len(found) == 1:
        _written(sheet, (*source, 0), str(found[0]))
    elif isinstance(found, str):
        _written(sheet, source, found)
    elif isinstance(found, dict | list) and found:
        _choice(sheet, source, found)


def _choice(sheet: Sheet, source: Path, found: dict[str, Any] | list[Any]) -> None:
    """Map the number of devices where all choices agree on it; which class they have in common, people say."""
    written = (
        [f"{product}:{count or 1}" for product, count in found.items()]
        if isinstance(found, dict)
        else [str(each) for each in found]
    )
    products = [each.partition(":")[0] for each in written]
    counts = {each.partition(":")[2] or "1" for each in written}
    count = counts.pop() if len(counts) == 1 else ""
    if count.isdigit():
        take_count(sheet, source, int(count))
    classes = {sheet.named(product) for product in products}
    if len(classes) == 1 and "" not in classes:
        sheet.put(source, (*ACCELERATOR, "class"), classes.pop(), f"{', '.join(products)} are one class")
    else:
        sheet.leave(source, _CHOICES, found=", ".join(written), answer=products[0])


def _written(sheet: Sheet, source: Path, text: str) -> None:
    product, _, count = text.partition(":")
    try:
        number: object = int(count) if count else 1
    except ValueError:
        number = float(count) if count.replace(".", "", 1).isdigit() else count
    _accelerator(sheet, source, product, number)


def _accelerator(sheet: Sheet, source: Path, product: str, count: object) -> None:
    take_count(sheet, source, int(count) if isinstance(count, float) and count.is_integer() else count)
    take_product(sheet, source, product)


def _image(sheet: Sheet) -> None:
    for field in ("image_id", "container_image"):
        source: Path = ("resources", field)
        source = (*source, "ref") if sheet.text(*source, "ref") else source
        text = sheet.text(*source)
        if text.startswith("docker:") or (text and field == "container_image"):
            take_image(sheet, source, text.removeprefix("docker:"))
        elif sheet.has(*source):
            reason = "a machine's image; work here runs in a container image or as a plain process"
            sheet.leave_rest(source, Left(Why.NAME, reason, "write spec.image, pinned by digest"))


def _recovery(sheet: Sheet, source: Path) -> None:
    text = sheet.text(*source)
    target: Path = ("spec", "lifecycle", "recovery", "mode")
    if text.lower() == "none":
        sheet.put(source, target, "never")
    elif text:
        sheet.put(source, target, "restart", "from the beginning; ranking chooses where")
    if sheet.text(*source, "strategy"):
        sheet.put((*source, "strategy"), target, "restart", "from the beginning; ranking chooses where")
    limit = sheet.at(*source, "max_restarts_on_errors")
    if isinstance(limit, int) and not isinstance(limit, bool):
        sheet.put((*source, "max_restarts_on_errors"), ("spec", "lifecycle", "retries", "limit"), limit)
    if sheet.has(*source, "recover_on_exit_codes"):
        reason = "codes after which it goes on; here codes are named that are final"
        left = Left(Why.DECISION, reason, "write lifecycle.retries.exceptExitCodes")
        sheet.leave((*source, "recover_on_exit_codes"), left)
