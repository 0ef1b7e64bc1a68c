"""Image references: a repository of a logical registry, pinned by digest."""

import re
from typing import Final

from landbridge.domain.documents.names import repository_refusal
from landbridge.domain.documents.places import Path
from landbridge.domain.importing.report import Left, Why
from landbridge.domain.importing.sheet import Sheet

_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_DEFAULT_HOST: Final = "docker.io"


def take_image(sheet: Sheet, source: Path, reference: str) -> None:
    """Map an image reference as far as it is portable; registry host and tag need a person's word."""
    plain, _, digest = reference.partition("@")
    host, name, tag = split(plain)
    if repository_refusal(name)[0]:
        left = Left(Why.DECISION, "not the name of an image repository", "write spec.image by hand")
        sheet.leave(source, left)
        return
    sheet.put(source, ("spec", "image", "name"), name)
    registry = sheet.named(host, f"{host}/{name}")
    if registry:
        sheet.put(source, ("spec", "image", "registry"), registry, f"{host} is the registry connection {registry}")
    else:
        left = Left(
            Why.NAME,
            f"the registry {host} is a place; an operation names the registry's connection",
            "give its connection, or write spec.image.registry",
        )
        sheet.leave(source, left, found=host, answer=host)
    if _DIGEST.fullmatch(digest):
        sheet.put(source, ("spec", "image", "digest"), digest)
        return
    left = Left(
        Why.DECISION,
        f"the tag {tag or 'latest'} can move; an image is pinned by digest",
        "look its digest up (`crane digest`, `docker buildx imagetools inspect`) and write spec.image.digest",
    )
    sheet.leave(source, left, found=tag or "latest")


def split(plain: str) -> tuple[str, str, str]:
    """Return host, repository and tag of a reference without digest, as container engines read it."""
    first, slash, rest = plain.partition("/")
    host, path = (first, rest) if slash and ("." in first or ":" in first or first == "localhost") else ("", plain)
    name, colon, tag = path.rpartition(":")
    if not colon:
        name, tag = path, ""
    if not host:
        host, name = _DEFAULT_HOST, name if "/" in name else f"library/{name}"
    return host.lower(), name.lower(), tag
