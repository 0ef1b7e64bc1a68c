"""Accelerators: from products to classes. What a product can do helps to choose; which class it is, people say."""

from dataclasses import dataclass
from typing import Final

from landbridge.domain.documents.places import Path
from landbridge.domain.importing.report import Left, Why
from landbridge.domain.importing.sheet import Sheet

ACCELERATOR: Final = ("spec", "resources", "accelerator")


@dataclass(frozen=True, slots=True)
class Product:
    """What a product can do, as its maker states: memory of each device, and number formats."""

    memory: str
    precision: tuple[str, ...] = ()


_OLD: Final = ("fp32", "fp16")
_AMPERE: Final = ("fp32", "tf32", "bf16", "fp16", "int8")
_HOPPER: Final = (*_AMPERE, "fp8")
_BLACKWELL: Final = (*_HOPPER, "fp4")
PRODUCTS: Final[dict[str, Product]] = {
    "t4": Product("16 GB", (*_OLD, "int8")),
    "v100": Product("16 GB or 32 GB", _OLD),
    "p100": Product("16 GB", _OLD),
    "a10": Product("24 GB", _AMPERE),
    "a10g": Product("24 GB", _AMPERE),
    "a100": Product("40 GB or 80 GB", _AMPERE),
    "a100-80gb": Product("80 GB", _AMPERE),
    "l4": Product("24 GB", _HOPPER),
    "l40s": Product("48 GB", _HOPPER),
    "rtx4090": Product("24 GB", _HOPPER),
    "rtxa6000": Product("48 GB", _AMPERE),
    "h100": Product("80 GB", _HOPPER),
    "h200": Product("141 GB", _HOPPER),
    "b200": Product("180 GB", _BLACKWELL),
    "mi300x": Product("192 GB", _HOPPER),
}


def take_product(sheet: Sheet, source: Path, product: str) -> None:
    """Map a product to the class that people call it, or say which attributes such a class has."""
    known = sheet.named(product)
    if known:
        sheet.put(source, (*ACCELERATOR, "class"), known, f"{product} is the class {known}")
        return
    fact = _fact(product)
    told = f": it has {fact.memory} each and computes in {', '.join(fact.precision)}" if fact else ""
    left = Left(
        Why.NAME,
        f"{product} is a product{told}; an operation asks for a capability class",
        "choose one with these attributes (`landbridge get capability-classes`)"
        if fact
        else "choose one that does what you need (`landbridge get capability-classes`)",
    )
    sheet.leave(source, left, found=product, answer=product)


def _fact(product: str) -> Product | None:
    """Return what is known of a product, also by the long names that clusters give: NVIDIA-A100-SXM4-80GB."""
    plain = product.lower().replace(" ", "")
    if plain in PRODUCTS:
        return PRODUCTS[plain]
    words = plain.split("-")
    name = next((word for word in words if word in PRODUCTS), "")
    return PRODUCTS.get(f"{name}-80gb" if "80gb" in words else name) or PRODUCTS.get(name)


def take_count(sheet: Sheet, source: Path, count: object) -> None:
    """Map a number of accelerators."""
    if isinstance(count, int) and not isinstance(count, bool) and count > 0:
        sheet.put(source, (*ACCELERATOR, "count"), count)
    elif isinstance(count, float) and 0 < count < 1:
        sheet.put(source, (*ACCELERATOR, "count"), 1, f"{count:g} of a device is one partition, which the class states")
    elif count in (0, "0"):
        sheet.leave(source, Left(Why.NOT_NEEDED, "no accelerator is wanted", ""))
    else:
        left = Left(Why.DECISION, "not a number of devices", "write spec.resources.accelerator.count")
        sheet.leave(source, left)


def take_spot(sheet: Sheet, source: Path, choice: str) -> None:
    """Map whether hardware may be taken away: `allow`, `require` or `forbid`. Only accelerators say so here."""
    if sheet.drafted(*ACCELERATOR):
        note = "only hardware that can be taken away, as it says; write allow if other hardware is welcome"
        sheet.put(source, (*ACCELERATOR, "interruptible"), choice, note if choice == "require" else "")
        return
    reason = "without an accelerator, interruptible hardware is chosen by contract and price"
    sheet.leave(source, Left(Why.NO_COUNTERPART, reason, "weigh cost in spec.preferences"))
