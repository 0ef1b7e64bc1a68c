"""Resources of a dstack configuration: ranges become their lower ends, products classes."""

import re
from typing import Final

from landbridge.domain.documents.places import Path
from landbridge.domain.importing.hardware import ACCELERATOR, take_count, take_product
from landbridge.domain.importing.report import Left, Why
from landbridge.domain.importing.sheet import Sheet
from landbridge.domain.importing.sizes import bounds, gigabytes

_REQUESTS: Final = ("spec", "resources", "requests")
_VENDORS: Final = frozenset(("nvidia", "amd", "google", "tpu", "intel", "tenstorrent", "tt"))
_ARCHITECTURES: Final = {"x86": "amd64", "arm": "arm64"}
_UPPER: Final = Left(Why.NOT_NEEDED, "an upper end of a range: work gets what it asks for", "")
_SHARED: Final = Left(Why.NOT_NEEDED, "shared memory counts as memory; the environment sizes it", "")


def take_resources(sheet: Sheet, base: Path) -> None:
    """Map processors, memory, disk and accelerators."""
    _processors(sheet, (*base, "cpu"))
    _amount(sheet, (*base, "memory"), "memory")
    _amount(sheet, (*base, "disk", "size") if sheet.map(*base, "disk") else (*base, "disk"), "ephemeral-storage")
    _accelerator(sheet, (*base, "gpu"))
    if sheet.has(*base, "shm_size"):
        sheet.leave((*base, "shm_size"), _SHARED)


def _ends(sheet: Sheet, source: Path) -> tuple[str, str]:
    if sheet.map(*source):
        return sheet.text(*source, "min"), sheet.text(*source, "max")
    return bounds(sheet.text(*source))


def _processors(sheet: Sheet, source: Path) -> None:
    if sheet.map(*source) and (sheet.has(*source, "arch") or sheet.has(*source, "count")):
        _architecture(sheet, (*source, "arch"), sheet.text(*source, "arch"))
        _count(sheet, (*source, "count"), *_ends(sheet, (*source, "count")))
        return
    text = sheet.text(*source)
    words = [part for part in text.split(":") if part]
    architecture = next((word for word in words if word.lower() in _ARCHITECTURES), "")
    if architecture:
        _architecture(sheet, source, architecture)
        text = next((word for word in words if word != architecture), "")
    if text or sheet.map(*source):
        _count(sheet, source, *(bounds(text) if text else _ends(sheet, source)))


def _architecture(sheet: Sheet, source: Path, text: str) -> None:
    if text:
        known = _ARCHITECTURES.get(text.lower(), text)
        sheet.put(source, ("spec", "constraints", "architectures"), [known])


def _count(sheet: Sheet, source: Path, low: str, high: str) -> None:
    if low.isdigit():
        sheet.put(source, (*_REQUESTS, "cpu"), low, "at least so many" if low != high else "")
        _told_upper(sheet, source, low, high)
    else:
        sheet.leave(source, Left(Why.DECISION, "no lower end", "write requests.cpu"))


def _amount(sheet: Sheet, source: Path, target: str) -> None:
    if not sheet.has(*source):
        return
    low, high = _ends(sheet, source)
    size = gigabytes(low)
    if size:
        sheet.put(source, (*_REQUESTS, target), size, "at least so much" if low != high else "")
        _told_upper(sheet, source, low, high)
    else:
        sheet.leave(source, Left(Why.DECISION, "no lower end", f"write requests.{target}, such as 32Gi"))


def _told_upper(sheet: Sheet, source: Path, low: str, high: str) -> None:
    if high and high != low:
        sheet.leave(source, _UPPER, found=f"at most {high}")


# -- accelerators ------------------------------------------------------------------------------------------------------


def _accelerator(sheet: Sheet, source: Path) -> None:
    if sheet.map(*source):
        _stated(sheet, source)
    elif sheet.text(*source):
        _written(sheet, source, sheet.text(*source))


def _stated(sheet: Sheet, source: Path) -> None:
    low, high = _ends(sheet, (*source, "count"))
    if low.isdigit():
        _devices(sheet, (*source, "count"), low, high)
    elif sheet.has(*source, "count"):
        sheet.leave((*source, "count"), Left(Why.DECISION, "no lower end", "write accelerator.count"))
    names = sheet.list(*source, "name") or [sheet.text(*source, "name")]
    if any(names):
        _products(sheet, (*source, "name"), [str(name) for name in names])
    if sheet.has(*source, "memory"):
        _memory(sheet, (*source, "memory"), *_ends(sheet, (*source, "memory")))
    for field in ("vendor", "total_memory", "compute_capability"):
        if sheet.has(*source, field):
            advice = "choose a class that guarantees it"
            sheet.leave((*source, field), Left(Why.NAME, f"{field.replace('_', ' ')}: a class says it", advice))


def _written(sheet: Sheet, source: Path, text: str) -> None:
    """Read the short form: vendor, names, memory and count in any order, parted by colons."""
    for word in (part for part in text.replace(" ", "").split(":") if part):
        if word.lower() in _VENDORS:
            left = Left(Why.NAME, "a vendor; a class says which devices fulfil it", "choose a class")
            sheet.leave(source, left, found=word)
        elif word[0].isalpha():
            _products(sheet, source, word.split(","))
        elif re.search(r"[A-Za-z]", word):
            _memory(sheet, source, *bounds(word))
        else:
            _devices(sheet, source, *bounds(word))


def _devices(sheet: Sheet, source: Path, low: str, high: str) -> None:
    if not low.isdigit():
        sheet.leave(source, Left(Why.DECISION, "no lower end", "write accelerator.count"))
        return
    take_count(sheet, source, int(low))
    _told_upper(sheet, source, low, high)


def _memory(sheet: Sheet, source: Path, low: str, high: str) -> None:
    size = gigabytes(low)
    if not size:
        sheet.leave(source, Left(Why.DECISION, "no lower end", "write accelerator.memory"))
        return
    sheet.put(source, (*ACCELERATOR, "memory"), size, "of each, at least")
    _told_upper(sheet, source, low, high)
    if not sheet.drafted(*ACCELERATOR, "class") and sheet.named(low):
        sheet.put(source, (*ACCELERATOR, "class"), sheet.named(low), f"{low} is the class {sheet.named(low)}")


def _products(sheet: Sheet, source: Path, names: list[str]) -> None:
    if len(names) == 1:
        take_product(sheet, source, names[0])
        return
    known = {sheet.named(name) for name in names} - {""}
    if len(known) == 1 and all(sheet.named(name) for name in names):
        sheet.put(source, (*ACCELERATOR, "class"), known.pop(), f"{', '.join(names)} are one class")
        return
    left = Left(
        Why.NAME, "one of several products; a class holds all that fulfil it", "choose the class that all fulfil"
    )
    sheet.leave(source, left, found=", ".join(names), answer=names[0])
