"""A link with TLS: the site's NATS connects to the centre that its authority vouches for, and to no other."""

import asyncio
import shutil
import subprocess
from pathlib import Path

import pytest

from fixtures.bus import SecuredNats
from integration.bus.test_confinement import X
from integration.leaf.conftest import registered
from support.own_nats import SiteNats
from support.wait import wait_until

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make certificates")


def certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """Make a certificate for loopback that is its own authority; return it and its key."""
    cert, key = folder / f"{name}.pem", folder / f"{name}.key"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    subject = ["-days", "2", "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-keyout", str(key), "-out", str(cert)]
    subprocess.run([*command, *subject, *files], check=True, capture_output=True, timeout=30)
    return cert, key


async def test_a_link_with_tls_and_only_to_the_right_centre(secured: SecuredNats, tmp_path: Path) -> None:
    cert, key = certificate(tmp_path, "centre")
    other, _ = certificate(tmp_path, "other")
    secured.server.leaf_files = (str(cert), str(key))
    await secured.server.stop()
    await secured.server.start()
    creds = await registered(secured, X)
    right = SiteNats(tmp_path / "right", X, creds, secured.server.leaf_port, ca=str(cert))
    wrong = SiteNats(tmp_path / "wrong", X, creds, secured.server.leaf_port, ca=str(other))
    try:
        await right.start()
        await wait_until(right.linked, "the site is linked")
        await wrong.start()
        await asyncio.sleep(1.5)
        assert not await wrong.linked()
        log = (wrong.root / "nats.log").read_text()
        assert "certificate signed by unknown authority" in log or "tls" in log.lower()
    finally:
        await right.stop()
        await wrong.stop()
