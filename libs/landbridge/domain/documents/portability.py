"""What ties an operation to one provider or hands it a credential, and what to write instead.

An operation names capability classes and connections; instance types, bucket URLs, cloud endpoints and secrets live in
the environments (I2). Matches are named by kind, never quoted: a refusal must not repeat a secret.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final
from unicodedata import normalize
from urllib.parse import unquote

from landbridge.domain.documents.credentials import (
    credential_in,
    might_hold_credential,
    secret_after_flag,
    secret_in_variable,
)
from landbridge.domain.documents.places import Path
from landbridge.domain.documents.source import Source
from landbridge.domain.documents.walk import Text, all_text, list_at, map_at, texts
from landbridge.domain.errors import Problem

_USE_CLASS: Final = "ask for a capability class under spec.resources.accelerator.class, such as gpu-80gb"
_USE_CONNECTION: Final = (
    "name a connection under spec.inputs or spec.outputs; each environment binds it to its own store"
)
_USE_REGISTRY: Final = "name a registry connection in spec.image.registry and the repository in spec.image.name"
_USE_IDENTITY: Final = "name a logical role in spec.identity; each environment maps it to its own principal"
_DROP_CREDENTIAL: Final = (
    "remove it, and change it at its source because it was sent here; name a connection, or a role in spec.identity: "
    "the environment hands out short-lived credentials"
)


@dataclass(frozen=True, slots=True)
class _Rule:
    """One kind of provider detail. `where` limits a rule to documents that may not hold it at all."""

    code: str
    what: str
    instead: str
    pattern: re.Pattern[str]


def _rule(code: str, what: str, instead: str, *patterns: str) -> _Rule:
    return _Rule(code, what, instead, re.compile("|".join(patterns), re.IGNORECASE))


_INSTANCE: Final = _rule(
    "provider-instance",
    "the name of a provider's instance type",
    _USE_CLASS,
    # AWS families with their size, also behind ml., db. and cache.
    r"(?<![\w.-])(?:(?:ml|db|cache)\.)?[a-z]{1,3}\d{1,2}[a-z]{0,4}(?:-[a-z0-9]{2,6})?\."
    r"(?:nano|micro|small|medium|x?large|\d{1,3}xlarge|metal(?:-\d{1,2}xl)?)(?![\w-])",
    r"(?<![\w-])(?:trn|inf|u|hpc|mac)\d{1,2}[a-z0-9-]{0,8}\.(?:x?large|\d{1,3}xlarge|metal)(?![\w-])",
    r"(?<![\w])(?:Standard|Basic)_[A-Z]{1,3}\d{1,3}[a-z0-9]{0,6}(?:-\d{1,3})?(?:_[A-Za-z0-9]{1,12}){0,4}(?![\w])",
    r"(?<![\w-])(?:a2|a3|a4|a4x|g2|g4|n1|n2|n2d|n4|c2|c2d|c3|c3d|c4|c4a|c4d|e2|m1|m2|m3|m4|h3|h4d|t2a|t2d|x4|z3)-"
    r"(?:highgpu|megagpu|ultragpu|edgegpu|maxgpu|standard|highmem|highcpu|hypermem|megamem|ultramem|custom|micro|medium"
    r"|small)(?:-[0-9a-z]{1,8}){0,3}(?![\w])",
    r"(?<![\w-])(?:v5litepod|ct4p|ct5lp|ct5p|ct6e|tpu7x)-[a-z0-9-]{1,20}",
    r"(?<![\w.])(?:VM|BM)\.(?:Standard|GPU|DenseIO|HPC|Optimized)[A-Za-z0-9.]{0,30}",
    r"(?<![\w-])[bcgmuv]x\d[a-z]{0,2}-\d{1,3}x\d{1,5}(?:x\d{1,2}[a-z0-9]{1,8})?(?![\w])",
    r"(?<![\w.])ecs\.[a-z0-9-]{2,20}\.(?:\d{0,3}x?large|small)(?![\w-])",
    r"(?<![\w-])gpu_\d{1,2}x_[a-z0-9_]{2,20}(?![\w])",
)
_BUCKET: Final = _rule(
    "bucket-url",
    "the URL of a bucket or object store",
    _USE_CONNECTION,
    r"(?<![a-z0-9])(?:s3[an]?|gs|gcs|abfss?|wasbs?|az|adl|oss|oci|cosn?|obs|swift|r2|b2|minio|hdfs|viewfs|dbfs|tos)://",
    r"\.(?:blob|dfs|file|queue|table)\.(?:core\.|storage\.)",
    r"(?<![\w-])s3(?:[.-][a-z0-9-]{2,30}){0,3}\.amazonaws\.com",
    r"(?<![\w-])storage(?:\.cloud|\.mtls)?\.google(?:apis)?\.com",
    r"\.(?:r2\.cloudflarestorage|digitaloceanspaces|backblazeb2|wasabisys|linodeobjects|scw\.cloud|scaleway)\.?(?:com)?(?![\w-])",
    r"(?<![\w-])oss-[a-z0-9-]{3,30}\.aliyuncs\.com",
    r"(?<![\w-])objectstorage\.[a-z0-9-]{3,30}\.oraclecloud\.com",
)
_REGISTRY: Final = _rule(
    "registry-host",
    "the host of a provider's image registry",
    _USE_REGISTRY,
    r"(?<![\w-])\d{12}\.dkr\.ecr\.",
    r"(?<![\w-])public\.ecr\.aws",
    r"\.azurecr\.io(?![\w-])",
    r"(?<![\w-])(?:[a-z]{2,4}\.)?gcr\.io(?![\w-])",
    r"-docker\.pkg\.dev(?![\w-])",
    r"(?<![\w-])[a-z]{2,4}\.ocir\.io(?![\w-])",
)
_PRINCIPAL: Final = _rule(
    "provider-resource",
    "a provider's resource or principal",
    _USE_IDENTITY + ", or name a connection if it is data",
    r"(?<![\w-])arn:aws(?:-[a-z-]{2,12})?:[a-z0-9-]{1,40}:",
    r"/subscriptions/[0-9a-f]{8}-[0-9a-f-]{20,30}(?:/resourcegroups/)?",
    r"\.iam\.gserviceaccount\.com(?![\w-])",
    r"(?<![\w-])ocid1\.[a-z]{2,30}\.",
    r"(?<![\w/-])projects/[a-z0-9-]{4,40}/(?:locations|zones|regions|secrets|topics|instances|datasets)/",
)
_ENDPOINT: Final = _rule(
    "cloud-endpoint",
    "the address of a cloud service",
    _USE_CONNECTION,
    r"(?<![\w-])(?:[a-z0-9-]{1,63}\.){1,8}(?:amazonaws\.com(?:\.cn)?|aws\.dev|on\.aws|googleapis\.com|cloudfunctions\.net|run\.app"
    r"|windows\.net|azure\.com|azure\.cn|azurewebsites\.net|azmk8s\.io|azure-api\.net|azureml\.ms|oraclecloud\.com"
    r"|aliyuncs\.com|myhuaweicloud\.com|appdomain\.cloud|cloud\.ibm\.com|databricks\.com|snowflakecomputing\.com)(?![\w-])",
    r"(?<![\d.])169\.254\.(?:169\.254|170\.2)(?![\d.])",
    r"(?<![\w-])metadata\.google\.internal(?![\w-])",
    r"(?<![0-9a-f:])fd00:ec2::254(?![0-9a-f:])",
    r"(?<![\d.])100\.100\.100\.200(?![\d.])",
    r"(?<![\d])2852039166(?![\d])",
)
_PROVIDER_RULES: Final = (_BUCKET, _REGISTRY, _PRINCIPAL, _ENDPOINT, _INSTANCE)
# Whatever a rule finds holds one of these, in lower case: a text without any needs no rule.
_MARKS: Final = (
    "://", ".com", ".io", ".net", ".dev", ".cloud", ".internal", ".app", ".aws", ".cn", ".ms", ".core.", ".storage.",
    "large", ".metal", ".nano", ".micro", ".small", ".medium", "standard_", "basic_", "arn:", "subscriptions/", "ocid1",
    "projects/", "-high", "-mega", "-ultra", "-edge", "-max", "-standard", "-custom", "-micro", "-medium", "-small",
    "-hyper", "pod-", "ct4p", "ct5", "ct6", "tpu7x", "vm.", "bm.", "gpu_", "169.254", "100.100", "fd00:", "2852039166",
    "googleapis", "google.com", "scaleway",
)  # fmt: skip
_SIZED: Final = re.compile(r"x\d[a-z]{0,2}-\d{1,3}x\d")
_INVISIBLE: Final = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2060-\u2064\ufe00-\ufe0f\ufeff]"
)

# Fields where people explain: a reason may name the machine that was measured. Secrets are refused there as well.
_EXPLAINS: Final = frozenset(("description", "reason", "justification"))


def _may_name_provider(text: str) -> bool:
    lower = text.lower()
    return any(mark in lower for mark in _MARKS) or _SIZED.search(lower) is not None


def portability_problems(source: Source, kind: str) -> Iterator[Problem]:
    """Find provider details and credentials anywhere in a document of `kind`.

    Contracts and catalogue entries describe places, so they may name instance types; bindings and secrets have no
    place in them either.
    """
    portable = kind in ("Operation", "Component", "Preset")
    rules = _PROVIDER_RULES if portable else (_BUCKET, _REGISTRY, _PRINCIPAL)
    everything = all_text(source.value)
    if not everything.isascii() or _may_name_provider(everything) or might_hold_credential(everything):
        for item in texts(source.value):
            if not source.is_spoiled(item.path):
                yield from _judge(source, item, rules)
    if portable:
        yield from _variables(source)
        yield from _arguments(source)


def _judge(source: Source, item: Text, rules: tuple[_Rule, ...]) -> Iterator[Problem]:
    plain = _plain(item.text)
    secret = credential_in(item.text) or (credential_in(plain) if plain != item.text else "")
    if secret:
        message = f"{secret} may not be part of a document"
        yield source.problem(item.path, "credential", message, _DROP_CREDENTIAL, at_key=item.is_key)
        return
    if not _may_name_provider(plain) or any(part in _EXPLAINS for part in item.path[-1:]):
        return
    for rule in rules:
        if rule.pattern.search(plain):
            yield source.problem(item.path, rule.code, f"holds {rule.what}", rule.instead, at_key=item.is_key)
            return


def _plain(text: str) -> str:
    """Undo what hides a text from a pattern: percent-encoding, look-alike forms and invisible characters."""
    if "%" in text:
        text = unquote(unquote(text))
    return text if text.isascii() else _INVISIBLE.sub("", normalize("NFKC", text))


def _variables(source: Source) -> Iterator[Problem]:
    for path, variables in _maps_named_env(source.value):
        for name, value in variables.items():
            if isinstance(value, str) and secret_in_variable(name, value) and not credential_in(value):
                message = "a variable of this name carries a secret"
                yield source.problem((*path, name), "credential", message, _DROP_CREDENTIAL)


def _maps_named_env(value: object) -> Iterator[tuple[Path, Mapping[str, object]]]:
    yield ("spec", "env"), map_at(value, "spec", "env")
    yield ("spec", "operation", "env"), map_at(value, "spec", "operation", "env")


def _arguments(source: Source) -> Iterator[Problem]:
    for base in (("spec",), ("spec", "operation")):
        for name in ("command", "args"):
            items = list_at(source.value, *base, name)
            for index in range(1, len(items)):
                flag, value = items[index - 1], items[index]
                if isinstance(flag, str) and isinstance(value, str) and secret_after_flag(flag, value):
                    message = "the value of a password or key flag"
                    yield source.problem((*base, name, index), "credential", message, _DROP_CREDENTIAL)
