"""Files, buckets and volumes of a SkyPilot task."""

import re
from typing import Final

from landbridge.domain.documents.places import Path
from landbridge.domain.importing.report import Left, Why
from landbridge.domain.importing.sheet import Sheet
from landbridge.domain.importing.wishes import CLUSTER, UPLOADED, take_mount

_BUCKET: Final = re.compile(r"((?:s3|gs|r2|cos|oci|nebius|cw|https)://[^/]+)/?(.*)")
_FIELDS: Final[dict[str, Left]] = {
    "mode": Left(Why.NOT_NEEDED, "how data comes to the work is the environment's choice"),
    "persistent": Left(Why.NOT_NEEDED, "what a connection leads to outlives the work"),
    "store": Left(Why.NOT_NEEDED, "the connection says what it leads to"),
    "type": Left(Why.NOT_NEEDED, "the connection says what it leads to"),
    "config": CLUSTER,
    "size": CLUSTER,
    "_is_sky_managed": CLUSTER,
    "_bucket_sub_path": CLUSTER,
}


def take_mounts(sheet: Sheet) -> None:
    """Map buckets and volumes to connections; local files are told."""
    for where in sheet.map("file_mounts"):
        path: Path = ("file_mounts", where)
        if sheet.map(*path):
            _storage(sheet, path, str(where))
        else:
            _plain(sheet, path, str(where), sheet.text(*path), read_only=True)
    for where in sheet.map("volumes"):
        path = ("volumes", where)
        source = (*path, "name") if sheet.map(*path) else path
        if sheet.text(*source):
            take_mount(sheet, source, sheet.text(*source), str(where), what="a volume of a cluster")
        sheet.leave_known(path, _FIELDS)


def _storage(sheet: Sheet, path: Path, where: str) -> None:
    source, name = sheet.text(*path, "source"), sheet.text(*path, "name")
    copied = sheet.text(*path, "mode") == "COPY"
    if _BUCKET.fullmatch(source):
        _plain(sheet, (*path, "source"), where, source, read_only=True if copied else None)
        if name:
            sheet.leave((*path, "name"), Left(Why.NOT_NEEDED, "the connection is named instead"))
    else:
        if name:
            what = "a volume" if sheet.text(*path, "store") == "volume" else "a bucket"
            written = None if source else False
            take_mount(sheet, (*path, "name"), name, where, what=what, read_only=True if copied else written)
        if source:
            sheet.leave((*path, "source"), UPLOADED)
    sheet.leave_known(path, _FIELDS)


def _plain(sheet: Sheet, path: Path, where: str, source: str, *, read_only: bool | None) -> None:
    match = _BUCKET.fullmatch(source)
    if match is None:
        sheet.leave(path, UPLOADED)
        return
    bucket, below = match[1], match[2].rstrip("/")
    whole = sheet.named(source)
    if whole:  # a name was given for the place with its path
        take_mount(sheet, path, source, where, what="a bucket", read_only=read_only)
    else:
        take_mount(sheet, path, bucket, where, what="a bucket", path=below, read_only=read_only)
