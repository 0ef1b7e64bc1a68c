"""Reading a NATS credentials file: who it is for and which inbox its user may use."""

import base64
import binascii
import json
from pathlib import Path
from typing import Any

INBOX = "_INBOX"


def claims_of(creds: Path) -> dict[str, Any]:
    """Return the claims of the user JWT in a credentials file. Raises ValueError that names the file."""
    return claims_in(creds.read_text(), str(creds))


def claims_in(text: str, name: str = "credentials") -> dict[str, Any]:
    """Return the claims of the user JWT in the text of a credentials file. Raises ValueError that says `name`."""
    try:
        token = text.split("BEGIN NATS USER JWT-----", 1)[1].strip().splitlines()[0].strip()
        body = token.split(".")[1]
        claims: dict[str, Any] = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    except (IndexError, binascii.Error, ValueError) as error:
        raise ValueError(f"{name}: not a NATS credentials file: expected a user JWT and its seed") from error
    return claims


def inbox_prefix_of(text: str, name: str = "credentials") -> str:
    """Return the inbox prefix that the user may subscribe to, e.g. `_INBOX_intake`; "" if it may use any."""
    allowed = claims_in(text, name).get("nats", {}).get("sub", {}).get("allow", [])
    return next((subject.removesuffix(".>") for subject in allowed if subject.startswith(INBOX)), "")
