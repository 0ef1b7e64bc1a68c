"""What the coordinator reads of an accepted operation: retries, queue time, disconnection, needed features."""

from base64 import b64decode
from collections import OrderedDict
from functools import lru_cache

import msgspec

from landbridge.domain.features import features_of
from landbridge.domain.ownership.gang_model import NO_GANG, Gang
from landbridge.domain.ownership.policy import RETRY_BACKOFF_MAX_MS, Disconnection, Retries
from landbridge_dispatch.specification import DeclaredDisconnection, Lifecycle, disconnection_of, milliseconds

QUEUE_TIMEOUT_MS = 86_400_000
START_WITHIN_MS = 600_000
RETRY_BACKOFF_MS = 60_000
_MEMO = 4096


class DeclaredRetries(msgspec.Struct, frozen=True, rename="camel"):
    """Retries as written."""

    limit: int = 0
    backoff: str = ""
    max_backoff: str = ""
    except_exit_codes: tuple[int, ...] = ()


class DeclaredLifecycle(msgspec.Struct, frozen=True, rename="camel"):
    """The part of a lifecycle that the coordinator acts on, as written."""

    queue_timeout: str = ""
    stop_grace: str = ""
    retries: DeclaredRetries = DeclaredRetries()
    disconnection: DeclaredDisconnection = DeclaredDisconnection()


class DeclaredGang(msgspec.Struct, frozen=True, rename="camel"):
    """How the replicas of a distributed job, or the members of a gang, start, as written."""

    start_within: str = ""
    framework: str = ""
    name: str = ""
    members: int = 0
    after_start: str = ""


class DeclaredAccelerator(msgspec.Struct, frozen=True):
    """The class of accelerators that is named."""

    class_: str = msgspec.field(name="class", default="")


class DeclaredResources(msgspec.Struct, frozen=True):
    """What is asked for, as written."""

    accelerator: DeclaredAccelerator | None = None


class Declared(msgspec.Struct, frozen=True):
    """The same, as numbers. `start_within_ms` 0: it starts with nothing else. `accelerator_class`: the one it names."""

    policy: Disconnection
    retries: Retries
    queue_timeout_ms: int
    features: tuple[str, ...]
    start_within_ms: int = 0
    accelerator_class: str = ""
    gang: Gang = NO_GANG


class Specification(msgspec.Struct, frozen=True):
    """An accepted operation's bytes, ready to travel, with what they declare."""

    sha256: bytes
    body: bytes
    raw: msgspec.Raw
    """The bytes as a JSON text in base64: copied into offers and requests to place again as it stands."""
    declared: Declared


class _Spec(msgspec.Struct, frozen=True):
    """The parts of a specification that decide; of the others only whether they are there."""

    type: str = ""
    lifecycle: DeclaredLifecycle = DeclaredLifecycle()
    gang: DeclaredGang = DeclaredGang()
    resources: DeclaredResources = DeclaredResources()
    image: msgspec.Raw = msgspec.Raw()
    command: msgspec.Raw = msgspec.Raw()
    source: msgspec.Raw = msgspec.Raw()
    inputs: msgspec.Raw = msgspec.Raw()
    outputs: msgspec.Raw = msgspec.Raw()
    checkpoints: msgspec.Raw = msgspec.Raw()
    acceptance: msgspec.Raw = msgspec.Raw()


class _Document(msgspec.Struct, frozen=True, rename="camel"):
    spec: _Spec = _Spec()
    environment_settings: msgspec.Raw = msgspec.Raw()


_document = msgspec.json.Decoder(_Document)
_NOTHING = frozenset({b"", b"null", b"{}", b"[]", b'""'})


def _stated(part: msgspec.Raw) -> bool:
    return bytes(part) not in _NOTHING


def declare(body: bytes) -> Declared:
    """Read an effective specification. Raises msgspec.MsgspecError or ValueError for what intake would refuse."""
    document = _document.decode(body)
    spec = document.spec
    lifecycle = spec.lifecycle
    features = features_of(
        spec.type,
        lifecycle.disconnection.policy,
        image_only=_stated(spec.image) and not _stated(spec.command),
        source=_stated(spec.source),
        inputs=_stated(spec.inputs),
        outputs=_stated(spec.outputs),
        checkpoints=_stated(spec.checkpoints),
        acceptance=_stated(spec.acceptance),
        environment_settings=_stated(document.environment_settings),
        framework=spec.gang.framework,
        gang=bool(spec.gang.name),
    )
    policy = disconnection_of(Lifecycle(stop_grace=lifecycle.stop_grace, disconnection=lifecycle.disconnection))
    queue_timeout_ms = milliseconds(lifecycle.queue_timeout, QUEUE_TIMEOUT_MS)
    gang = Gang(spec.gang.name, spec.gang.members, spec.gang.after_start == "apart") if spec.gang.name else NO_GANG
    starts_together = spec.type == "distributed-job" or bool(gang)
    start_within_ms = milliseconds(spec.gang.start_within, START_WITHIN_MS) if starts_together else 0
    accelerator = spec.resources.accelerator
    named = accelerator.class_ if accelerator is not None else ""
    return Declared(policy, _retries(lifecycle.retries), queue_timeout_ms, features, start_within_ms, named, gang)


@lru_cache(maxsize=256)
def _retries(declared: DeclaredRetries) -> Retries:
    return Retries(
        limit=declared.limit,
        backoff_ms=milliseconds(declared.backoff, RETRY_BACKOFF_MS),
        except_exit_codes=declared.except_exit_codes,
        max_backoff_ms=milliseconds(declared.max_backoff, RETRY_BACKOFF_MAX_MS),
    )


def as_raw(body: bytes) -> msgspec.Raw:
    """Return bytes as the JSON text that the wire carries."""
    return msgspec.Raw(msgspec.json.encode(body))


class Specifications:
    """Specifications by hash, the latest few thousand. Applications submit the same shape many times."""

    def __init__(self) -> None:
        self._memo: OrderedDict[bytes, Specification] = OrderedDict()

    def get(self, sha256: bytes) -> Specification | None:
        found = self._memo.get(sha256)
        if found is not None:
            self._memo.move_to_end(sha256)
        return found

    def keep(self, specification: Specification) -> None:
        self._memo[specification.sha256] = specification
        if len(self._memo) > _MEMO:
            self._memo.popitem(last=False)

    def read(self, sha256: bytes, raw: msgspec.Raw) -> Specification:
        """Return the specification that a message carries; it is kept once its transaction is committed."""
        known = self._memo.get(sha256)
        if known is not None:
            return known
        body = b64decode(msgspec.json.decode(raw, type=str))
        return Specification(sha256, body, msgspec.Raw(bytes(raw)), declare(body))
