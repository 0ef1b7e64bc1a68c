"""AWS Signature Version 4, which S3-compatible stores check. Pure."""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote

_ALGORITHM = "AWS4-HMAC-SHA256"


@dataclass(frozen=True)
class Keys:
    """What a store knows its caller by. Never printed."""

    access: str
    secret: str
    token: str = ""

    def __repr__(self) -> str:
        return "Keys(…)"


def encoded(path: str) -> str:
    """Return a path as it stands in a request: every byte but unreserved ones and slashes escaped."""
    return quote(path, safe="/-_.~")


def query_text(query: Mapping[str, str]) -> str:
    """Return a query in canonical order."""
    pairs = sorted((quote(key, safe="-_.~"), quote(value, safe="-_.~")) for key, value in query.items())
    return "&".join(f"{key}={value}" for key, value in pairs)


def signed(
    method: str,
    host: str,
    path: str,
    query: Mapping[str, str],
    headers: Mapping[str, str],
    *,
    digest: str,
    keys: Keys,
    region: str,
    at: datetime,
) -> dict[str, str]:
    """Return all headers of a request. `path` is encoded already, `digest` the body's SHA-256, `at` in UTC."""
    stamp = at.strftime("%Y%m%dT%H%M%SZ")
    scope = f"{stamp[:8]}/{region}/s3/aws4_request"
    told = {"host": host, "x-amz-content-sha256": digest, "x-amz-date": stamp}
    if keys.token:
        told["x-amz-security-token"] = keys.token
    told |= {name.lower(): value.strip() for name, value in headers.items()}
    names = ";".join(sorted(told))
    lines = "".join(f"{name}:{told[name]}\n" for name in sorted(told))
    request = "\n".join((method, path, query_text(query), lines, names, digest))
    text = "\n".join((_ALGORITHM, stamp, scope, hashlib.sha256(request.encode()).hexdigest()))
    key = f"AWS4{keys.secret}".encode()
    for part in (stamp[:8], region, "s3", "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    told["authorization"] = (
        f"{_ALGORITHM} Credential={keys.access}/{scope}, SignedHeaders={names}, Signature={signature}"
    )
    return told
