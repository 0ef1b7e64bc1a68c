"""Which of an environment's accelerator classes could serve a request, and what speaks against each by its attributes.

A class is served under its own name, or by any other whose attributes fulfil everything that the catalogue's class
guarantees; a request without a class, by all that have the attributes. Several are alternatives: which of them can
serve now is for `constraints.serving`, which of those does is for ranking and admission.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from landbridge.domain.candidate import Candidate, place_name
from landbridge.domain.catalogue import CapabilityClass
from landbridge.domain.contract import OfferedClass
from landbridge.domain.requirements import AcceleratorNeed, Requirements
from landbridge.domain.units import format_bytes
from landbridge.domain.version_range import within


class Mismatch(NamedTuple):
    """One attribute that does not fit: a code, what is wanted, what is found."""

    reason: str
    wanted: str
    found: str


class Match(NamedTuple):
    """The class that serves the request, or with `mismatches` the one that comes nearest; None: there is none."""

    offer: OfferedClass | None
    mismatches: tuple[Mismatch, ...]


class Fit(NamedTuple):
    """A class that is in question for a request, with the attributes that do not fit."""

    offer: OfferedClass
    mismatches: tuple[Mismatch, ...]


def match_accelerator(need: AcceleratorNeed, candidate: Candidate) -> Match:
    """Return the best class for the request: its own name first, then the smallest that fulfils the guarantees.

    Of a candidate that is looked at for one class, that one.
    """
    if candidate.served_by:
        return Match(candidate.contract.classes[candidate.served_by], ())
    best: Match | None = None
    for offer, mismatches in fits(need, candidate):
        if not mismatches:
            return Match(offer, ())
        if best is None or len(mismatches) < len(best.mismatches):
            best = Match(offer, mismatches)
    return best or Match(None, ())


def alternatives(need: AcceleratorNeed | None, candidate: Candidate, classes: Sequence[str]) -> list[Candidate]:
    """Return the candidate once for each of the classes that can serve a request, in their order.

    It stays as it is where no class is named, and where the only one is the best anyway.
    """
    offered = [name for name in classes if name in candidate.contract.classes]
    if need is None or not offered:
        return [candidate]
    if len(offered) == 1:
        best = match_accelerator(need, candidate).offer
        if best is not None and best.name == offered[0]:
            return [candidate]
    environment = candidate.environment
    return [replace(candidate, served_by=name, place=place_name(environment, name)) for name in offered]


def image_variant_for(served_by: str, requirements: Requirements, candidate: Candidate) -> bool:
    """Tell whether an image that can only start by a variant has one for a class, or for the one that is asked for."""
    variants, need = requirements.image_variants, requirements.accelerator
    runtime = candidate.contract.runtime
    if not variants or (requirements.command and runtime.executor == "process"):
        return True
    classes = ("", served_by, need.name if need is not None else "")
    return any(
        accelerator in classes and (not architecture or architecture in runtime.architectures)
        for architecture, accelerator in variants
    )


def fits(need: AcceleratorNeed, candidate: Candidate) -> Iterator[Fit]:
    """Yield all classes in question, the one to prefer first, each with what does not fit."""
    documents = candidate.catalogue.classes
    for offer in _possible(need, documents.get(need.name), candidate):
        # A class that is taken for another one, or for a product, has to state by itself what it is taken for.
        guaranteed = documents.get(offer.name) if need.name == offer.name or need.by_attributes else None
        yield Fit(offer, _mismatches(need, guaranteed, offer))


def _possible(need: AcceleratorNeed, document: CapabilityClass | None, candidate: Candidate) -> list[OfferedClass]:
    offers = [offer for offer in candidate.contract.classes.values() if offer.is_accelerator]
    if need.by_attributes:
        return sorted(offers, key=lambda offer: (offer.memory or 0, offer.name))
    if not need.name:  # an exact product, whatever class it is offered under
        return sorted(offers, key=lambda offer: (offer.product.lower() != need.product.lower(), offer.name))
    own = [offer for offer in offers if offer.name == need.name]
    if document is None or not _guarantees(document):
        return own
    others = [offer for offer in offers if offer.name != need.name and fulfils(offer, document, candidate)]
    return own + sorted(others, key=lambda offer: (offer.memory or 0, offer.name))


def _guarantees(document: CapabilityClass) -> bool:
    """Tell whether a class states anything by which another could be found equal."""
    return bool(document.memory or document.precision or document.interconnect or document.partition or document.driver)


def fulfils(offer: OfferedClass, document: CapabilityClass, candidate: Candidate) -> bool:
    """Tell whether an offered class fulfils every guarantee of a catalogue class by its own stated attributes."""
    return (
        (document.memory is None or (offer.memory or 0) >= document.memory)
        and set(document.precision) <= set(offer.precision)
        and document.interconnect in ("", offer.interconnect)
        and document.partition == offer.partition
        and (not document.driver or within(offer.driver, document.driver))
        and (document.interruptible is not False or offer.interruptible is False)
        and (not document.architecture or document.architecture in candidate.contract.runtime.architectures)
    )


def _mismatches(need: AcceleratorNeed, guaranteed: CapabilityClass | None, offer: OfferedClass) -> tuple[Mismatch, ...]:
    """Compare the request with what the offer states; where it states nothing, with what its class guarantees."""
    found: list[Mismatch] = []
    memory = offer.memory if offer.memory is not None else guaranteed.memory if guaranteed else None
    if guaranteed and offer.memory is not None and guaranteed.memory and offer.memory < guaranteed.memory:
        wanted = f"{format_bytes(guaranteed.memory)} a device, as class {offer.name} guarantees"
        found.append(Mismatch("below-guarantee", wanted, format_bytes(offer.memory)))
    if need.memory and (memory is None or memory < need.memory):
        wanted = f"{format_bytes(need.memory)} a device"
        found.append(Mismatch("memory-too-small", wanted, "not stated" if memory is None else format_bytes(memory)))
    precision = offer.precision or (guaranteed.precision if guaranteed else ())
    if not set(need.precision) <= set(precision):
        found.append(
            Mismatch(
                "precision-not-offered", f"precision {', '.join(need.precision)}", ", ".join(precision) or "not stated"
            )
        )
    interconnect = offer.interconnect or (guaranteed.interconnect if guaranteed else "")
    if need.interconnect and need.interconnect != interconnect:
        found.append(
            Mismatch("interconnect-not-offered", f"interconnect {need.interconnect}", interconnect or "not stated")
        )
    partition = offer.partition or (guaranteed.partition if guaranteed else "")
    if need.partition != partition:
        found.append(Mismatch("partition-not-offered", _partition(need.partition), _partition(partition)))
    if need.product and need.product.lower() != offer.product.lower():
        found.append(Mismatch("product-not-offered", f"product {need.product}", offer.product or "not stated"))
    return (*found, *_interruption(need, offer, guaranteed))


def _partition(name: str) -> str:
    return f"partition {name}" if name else "whole devices"


def _interruption(
    need: AcceleratorNeed, offer: OfferedClass, guaranteed: CapabilityClass | None
) -> tuple[Mismatch, ...]:
    interruptible = offer.interruptible
    if interruptible is None and guaranteed is not None:
        interruptible = guaranteed.interruptible
    if need.interruptible == "require" and interruptible is not True:
        return (Mismatch("not-interruptible", "interruptible devices", "devices that are not"),)
    if need.interruptible not in ("allow", "require") and interruptible:
        return (Mismatch("interruptible", "devices that are not taken away", "interruptible devices"),)
    return ()
