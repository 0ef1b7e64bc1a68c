"""The carrier's own parts: signatures, names from elsewhere, links of a workload."""

import hashlib
import os
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landbridge_dispatch.executors.kubernetes.carrier import checkpoints, files
from landbridge_dispatch.executors.kubernetes.carrier.signing import Keys, encoded, signed

EXAMPLE = Keys("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
AT = datetime(2013, 5, 24, tzinfo=UTC)
EMPTY = hashlib.sha256(b"").hexdigest()


def _signature(headers: dict[str, str]) -> str:
    return headers["authorization"].rpartition("=")[2]


def test_a_signature_is_that_of_the_published_examples() -> None:
    host = "examplebucket.s3.amazonaws.com"
    got = signed(
        "GET", host, "/test.txt", {}, {"Range": "bytes=0-9"}, digest=EMPTY, keys=EXAMPLE, region="us-east-1", at=AT
    )
    assert _signature(got) == "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
    query = {"max-keys": "2", "prefix": "J"}
    listed = signed("GET", host, "/", query, {}, digest=EMPTY, keys=EXAMPLE, region="us-east-1", at=AT)
    assert _signature(listed) == "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"


def test_names_are_signed_as_other_clients_sign_them() -> None:
    # Imported here and not for each name: it takes longer than Hypothesis gives one example.
    from botocore.auth import S3SigV4Auth  # type: ignore[import-untyped]
    from botocore.awsrequest import AWSRequest  # type: ignore[import-untyped]
    from botocore.credentials import Credentials  # type: ignore[import-untyped]

    @given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40))
    def signed_alike(name: str) -> None:
        path = encoded(f"/bucket/{name}")
        request = AWSRequest("GET", f"http://store:1{path}", headers={"X-Amz-Content-SHA256": EMPTY})
        request.context["timestamp"] = "20130524T000000Z"
        request.headers["X-Amz-Date"] = "20130524T000000Z"
        other = S3SigV4Auth(Credentials(EXAMPLE.access, EXAMPLE.secret), "s3", "eu-1")
        told = other.string_to_sign(request, other.canonical_request(request))

        got = signed("GET", "store:1", path, {}, {}, digest=EMPTY, keys=EXAMPLE, region="eu-1", at=AT)
        assert _signature(got) == other.signature(told, request)

    signed_alike()


def test_keys_never_show_themselves() -> None:
    assert "wJal" not in repr(EXAMPLE)
    assert "AKIA" not in str(EXAMPLE)


@pytest.mark.parametrize("name", ["", ".", "..", "a/../b", "/a", "a//b", "a/", "a\0b"])
def test_a_name_that_leads_out_is_not_below(name: str) -> None:
    assert not files.is_below(name)


def test_links_of_a_workload_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own/plain").write_text("x")
    (tmp_path / "own/link").symlink_to("/etc/hostname")
    (tmp_path / "own/away").symlink_to("/etc")
    os.mkfifo(tmp_path / "own/pipe")
    assert list(files.regular(str(tmp_path / "own"))) == ["plain"]
    for name in ("link", "away/hostname", "pipe", "../own/plain", "gone"):
        with pytest.raises(OSError):
            files.opened(str(tmp_path / "own"), name)
    file, size = files.opened(str(tmp_path / "own"), "plain")
    with file:
        assert (file.read(), size) == (b"x", 1)


class _Listed:
    """A store that tells what it holds, all of it stored in the same second."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def list(self, below: str) -> list[Any]:
        at = "2026-12-01T09:00:00.000Z"
        return [SimpleNamespace(key=f"{below}{name}/manifest.json", modified=at) for name in self._names]


def test_of_checkpoints_of_one_second_the_larger_number_is_the_later_one() -> None:
    store = _Listed("e1-1/sealed-9", "e1-1/sealed-10", "e1-1/sealed-8", "e1-1/sealed-last", "e1-3/sealed-99")
    found = checkpoints._sealed(store, "op", (1, 3), after="op/e1-1/sealed-8")  # type: ignore[arg-type]
    assert [each.path for each in sorted(found)] == ["op/e1-1/sealed-9", "op/e1-1/sealed-10"]
