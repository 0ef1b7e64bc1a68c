"""What an operation could ask for less of: accelerators and their attributes, processors, memory, replicas."""

from collections.abc import Iterator
from datetime import datetime

import msgspec

from landbridge.domain.candidate import Candidate
from landbridge.domain.constraints.base import Rule
from landbridge.domain.constraints.compute import Compute
from landbridge.domain.constraints.hardware import Hardware
from landbridge.domain.contract import CPU, MEMORY, SCRATCH, OfferedClass, format_quantity
from landbridge.domain.hardware import match_accelerator
from landbridge.domain.remedies.base import Trial, changed, largest
from landbridge.domain.requirements import AcceleratorNeed, Requirements
from landbridge.domain.units import format_bytes

_ACCELERATOR = "spec.resources.accelerator"
_FIELDS = {CPU: "cpu", MEMORY: "memory", SCRATCH: "scratch"}
_MEBIBYTE = 2**20


def hardware(requirements: Requirements, candidate: Candidate, now: datetime) -> Iterator[Trial]:
    """Yield fewer replicas, then what the environment's classes can give, then no accelerator at all."""
    need = requirements.accelerator
    if need is None:
        return
    yield from _fewer_replicas(Hardware(), requirements, candidate, now)
    offer = match_accelerator(need, candidate).offer
    offered = sorted(offer.name for offer in candidate.contract.classes.values() if offer.is_accelerator)
    for name in [need.name] if offer is not None else offered:
        yield from _less_of(msgspec.structs.replace(need, name=name), requirements, candidate, now)
    text = f"run without an accelerator (take {_ACCELERATOR} out)"
    yield Trial(text, _ACCELERATOR, "", changed(requirements, accelerator=None))


def _less_of(
    asked: AcceleratorNeed, requirements: Requirements, candidate: Candidate, now: datetime
) -> Iterator[Trial]:
    """Yield the request in the form that a class can serve, with as many devices as fit."""
    offer, mismatches = match_accelerator(asked, candidate)
    if offer is None:
        return
    relaxed, told, place = _relaxed(asked, [mismatch.reason for mismatch in mismatches], offer, candidate)
    before = requirements.accelerator
    if before is not None and relaxed.name != before.name:
        told, place = [f"class {relaxed.name}", *told], [("class", relaxed.name), *place]

    def with_count(count: int) -> Requirements:
        return changed(requirements, accelerator=msgspec.structs.replace(relaxed, count=count))

    def fits(count: int) -> bool:
        return not Hardware().check(with_count(count), candidate, now)

    count = asked.count if fits(asked.count) else largest(fits, asked.count)
    if not count:
        return
    if count < asked.count:
        each = f" for each of {requirements.replicas} replicas" if requirements.replicas > 1 else ""
        told.append(f"at most {count} device{'' if count == 1 else 's'}{each} instead of {asked.count}")
        place.append(("count", str(count)))
    if len(place) == 1:
        path, value = f"{_ACCELERATOR}.{place[0][0]}", place[0][1]
    else:
        path, value = _ACCELERATOR, ", ".join(f"{name}: {text or 'left out'}" for name, text in place)
    yield Trial(f"ask for {' and '.join(told)}", path, value, with_count(count))


def _relaxed(
    asked: AcceleratorNeed, reasons: list[str], offer: OfferedClass, candidate: Candidate
) -> tuple[AcceleratorNeed, list[str], list[tuple[str, str]]]:
    """Give up what the class does not have; return the request, words, and fields with their new values."""
    document = candidate.catalogue.classes.get(offer.name)
    told: list[str] = []
    place: list[tuple[str, str]] = []
    for reason in reasons:
        if reason == "memory-too-small":
            memory = offer.memory if offer.memory is not None else (document.memory if document else None) or 0
            asked = msgspec.structs.replace(asked, memory=memory)
            told.append(f"at most {format_bytes(memory)} a device" if memory else "no certain memory of a device")
            place.append(("memory", format_bytes(memory) if memory else ""))
        elif reason == "precision-not-offered":
            offered = offer.precision or (document.precision if document else ())
            asked = msgspec.structs.replace(asked, precision=tuple(p for p in asked.precision if p in offered))
            told.append(f"precision {', '.join(offered) or 'of any sort'}")
            place.append(("precision", ", ".join(offered)))
        elif reason == "interconnect-not-offered":
            asked = msgspec.structs.replace(asked, interconnect="")
            told.append("any interconnect")
            place.append(("interconnect", ""))
        elif reason == "partition-not-offered":
            partition = offer.partition or (document.partition if document else "")
            asked = msgspec.structs.replace(asked, partition=partition)
            told.append(f"partition {partition}" if partition else "whole devices")
            place.append(("partition", partition))
        elif reason == "product-not-offered":
            asked = msgspec.structs.replace(asked, name=offer.name, product="")
            told.append("no single product")
            place.append(("exception", ""))
        elif reason in ("interruptible", "not-interruptible"):
            asked = msgspec.structs.replace(asked, interruptible="allow")
            told.append("devices that may be interruptible")
            place.append(("interruptible", "allow"))
    return asked, told, place


def compute(requirements: Requirements, candidate: Candidate, now: datetime) -> Iterator[Trial]:
    """Yield fewer replicas, then as much as there is for each replica."""
    yield from _fewer_replicas(Compute(), requirements, candidate, now)
    told: list[str] = []
    fields: dict[str, int] = {}
    for resource, name in _FIELDS.items():
        asked = getattr(requirements, name)
        claimed = candidate.claimed.get(resource)
        if not asked or claimed is None:
            continue
        most = min(claimed, candidate.proven.get(resource, 0)) // requirements.replicas
        most -= most % _MEBIBYTE if resource != CPU else 0
        if 0 < most < asked:
            fields[name] = most
            told.append(f"{format_quantity(resource, most)} {resource} instead of {format_quantity(resource, asked)}")
    if fields:
        single = next(iter(told)).partition(" instead")[0].split()
        path = f"spec.resources.requests.{single[1]}" if len(told) == 1 else "spec.resources.requests"
        each = f" for each of {requirements.replicas} replicas" if requirements.replicas > 1 else ""
        value = single[0] if len(told) == 1 else ", ".join(text.partition(" instead")[0] for text in told)
        yield Trial(f"ask for at most {' and '.join(told)}{each}", path, value, changed(requirements, **fields))


def _fewer_replicas(rule: Rule, requirements: Requirements, candidate: Candidate, now: datetime) -> Iterator[Trial]:
    replicas = requirements.replicas
    if replicas < 2:
        return
    most = largest(lambda count: not rule.check(changed(requirements, replicas=count), candidate, now), replicas)
    if most:
        text = f"run at most {most} replica{'' if most == 1 else 's'} instead of {replicas}"
        yield Trial(text, "spec.replicas", str(most), changed(requirements, replicas=most))
