"""How providers' instance types, buckets, registries, principals and endpoints look in a text.

Each pattern begins with something literal and looks back from there, so that a long text costs little. Texts are
given in lower case.
"""

import re
from dataclasses import dataclass, field
from typing import Final

_USE_CLASS: Final = "ask for a capability class under spec.resources.accelerator.class, such as gpu-80gb"
_USE_CONNECTION: Final = (
    "name a connection under spec.inputs or spec.outputs; each environment binds it to its own store"
)
_USE_REGISTRY: Final = "name a registry connection in spec.image.registry and the repository in spec.image.name"
_USE_IDENTITY: Final = "name a logical role in spec.identity; each environment maps it to its own principal"
_LOOK_BACK: Final = 40


@dataclass(frozen=True, slots=True)
class Pattern:
    """What is looked for: `mark` is literal, `after` follows it, `before` ends where it begins.

    `back` is how many characters `before` is looked for in.
    """

    mark: str
    after: re.Pattern[str]
    before: re.Pattern[str] | None = None
    back: int = _LOOK_BACK

    def is_in(self, text: str) -> bool:
        """Tell whether `text`, in lower case, holds the pattern."""
        start = text.find(self.mark)
        while start >= 0:
            if self.after.match(text, start + len(self.mark)) and (
                self.before is None or self.before.search(text[max(0, start - self.back) : start])
            ):
                return True
            start = text.find(self.mark, start + 1)
        return False


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of provider detail and what to write instead."""

    code: str
    what: str
    instead: str
    patterns: tuple[Pattern, ...]
    marks: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "marks", tuple(pattern.mark for pattern in self.patterns))

    def is_in(self, text: str) -> bool:
        """Tell whether `text`, in lower case, holds such a detail."""
        # Nearly every text holds no mark at all: that is found out without a step of Python for each.
        return any(map(text.__contains__, self.marks)) and any(pattern.is_in(text) for pattern in self.patterns)


def _patterns(before: str, after: str, *marks: str, back: int = _LOOK_BACK) -> list[Pattern]:
    ending = re.compile(f"(?:{before})\\Z") if before else None
    return [Pattern(mark, re.compile(after), ending, back) for mark in marks]


_WORD_ENDS: Final = r"(?![\w-])"
_AWS_FAMILY: Final = r"(?<![\w.-])(?:(?:ml|db|cache)\.)?[a-z]{1,3}\d{1,2}[a-z]{0,4}(?:-[a-z0-9]{2,6})?"
_GOOGLE_FAMILY: Final = (
    r"(?<![\w-])(?:a2|a3|a4|a4x|g2|g4|n1|n2|n2d|n4|c2|c2d|c3|c3d|c4|c4a|c4d|e2|m1|m2|m3|m4|h3|h4d|t2a|t2d|x4|z3)"
)
_AZURE_SIZE: Final = r"[a-z]{1,3}\d{1,3}[a-z0-9]{0,6}(?:-\d{1,3})?(?:_[a-z0-9]{1,12}){0,4}(?!\w)"
_IBM_SIZE: Final = r"[a-z]{0,2}-\d{1,3}x\d{1,5}(?:x\d{1,2}[a-z0-9]{1,8})?(?!\w)"
_GOOGLE_SIZES: Final = (
    "-highgpu", "-megagpu", "-ultragpu", "-edgegpu", "-maxgpu", "-standard", "-highmem", "-highcpu", "-hypermem",
    "-megamem", "-ultramem", "-custom", "-micro", "-medium", "-small",
)  # fmt: skip
_CLOUDS: Final = (
    ".amazonaws.com", ".amazonaws.com.cn", ".aws.dev", ".on.aws", ".googleapis.com", ".cloudfunctions.net", ".run.app",
    ".windows.net", ".azure.com", ".azure.cn", ".azurewebsites.net", ".azmk8s.io", ".azure-api.net", ".azureml.ms",
    ".oraclecloud.com", ".aliyuncs.com", ".myhuaweicloud.com", ".appdomain.cloud", ".cloud.ibm.com", ".databricks.com",
    ".snowflakecomputing.com",
)  # fmt: skip
_STORES: Final = (
    ".r2.cloudflarestorage", ".digitaloceanspaces", ".backblazeb2", ".wasabisys", ".linodeobjects", ".scw.cloud",
)  # fmt: skip
_SCHEMES: Final = (
    r"(?<![a-z0-9])(?:s3[an]?|gs|gcs|abfss?|wasbs?|az|adl|oss|oci|cosn?|obs|swift|r2|b2|minio|hdfs|viewfs|dbfs|tos)"
)

INSTANCE: Final = Rule(
    "provider-instance",
    "the name of a provider's instance type",
    _USE_CLASS,
    (
        *_patterns(_AWS_FAMILY, _WORD_ENDS, ".nano", ".micro", ".small", ".medium", ".large", ".xlarge"),
        *_patterns(_AWS_FAMILY + r"\.\d{1,3}", _WORD_ENDS, "xlarge"),
        *_patterns(_AWS_FAMILY, rf"(?:-\d{{1,2}}xl)?{_WORD_ENDS}", ".metal"),
        *_patterns(r"(?<!\w)", _AZURE_SIZE, "standard_", "basic_"),
        *_patterns(_GOOGLE_FAMILY, r"(?:-[0-9a-z]{1,8}){0,3}(?!\w)", *_GOOGLE_SIZES),
        *_patterns(r"(?<![\w-])", r"[a-z0-9-]{1,20}", "v5litepod-", "ct4p-", "ct5lp-", "ct5p-", "ct6e-", "tpu7x-"),
        *_patterns(r"(?<![\w.])(?:vm|bm)", r"[a-z0-9.]{0,30}", ".standard", ".gpu", ".denseio", ".hpc", ".optimized"),
        *_patterns(r"(?<![\w-])[bcgmuv]", _IBM_SIZE, *(f"x{digit}" for digit in range(1, 10))),
        *_patterns(r"(?<![\w.])", rf"[a-z0-9-]{{2,20}}\.(?:\d{{0,3}}x?large|small){_WORD_ENDS}", "ecs."),
        *_patterns(r"(?<![\w-])", r"\d{1,2}x_[a-z0-9_]{2,20}(?!\w)", "gpu_"),
    ),
)
BUCKET: Final = Rule(
    "bucket-url",
    "the URL of a bucket or object store",
    _USE_CONNECTION,
    (
        *_patterns(_SCHEMES, "", "://", back=8),  # texts may hold thousands; the longest scheme has six letters
        *_patterns(r"\.(?:blob|dfs|file|queue|table)", "", ".core.", ".storage."),
        *_patterns(r"(?<![\w-])s3(?:[.-][a-z0-9-]{2,30}){0,3}", "", ".amazonaws.com"),
        *_patterns(r"(?<![\w-])storage(?:\.cloud|\.mtls)?", rf"\.com{_WORD_ENDS}", ".google", ".googleapis"),
        *_patterns("", rf"(?:\.com|\.cloud)?{_WORD_ENDS}", *_STORES),
        *_patterns(r"(?<![\w-])oss-[a-z0-9-]{3,30}", "", ".aliyuncs.com"),
        *_patterns(r"(?<![\w-])objectstorage\.[a-z0-9-]{3,30}", "", ".oraclecloud.com"),
    ),
)
REGISTRY: Final = Rule(
    "registry-host",
    "the host of a provider's image registry",
    _USE_REGISTRY,
    (
        *_patterns(r"(?<![\w-])\d{12}", "", ".dkr.ecr."),
        *_patterns(r"(?<![\w-])public", "", ".ecr.aws"),
        *_patterns("", _WORD_ENDS, ".azurecr.io", ".ocir.io", "-docker.pkg.dev", ".gcr.io"),
        *_patterns(r"(?<![\w.-])", _WORD_ENDS, "gcr.io"),
    ),
)
PRINCIPAL: Final = Rule(
    "provider-resource",
    "a provider's resource or principal",
    _USE_IDENTITY + ", or name a connection if it is data",
    (
        *_patterns(r"(?<![\w-])", r"(?:-[a-z-]{2,12})?:[a-z0-9-]{1,40}:", "arn:aws"),
        *_patterns("", r"[0-9a-f]{8}-[0-9a-f-]{20,30}", "/subscriptions/"),
        *_patterns("", _WORD_ENDS, ".iam.gserviceaccount.com"),
        *_patterns(r"(?<![\w-])", r"[a-z]{2,30}\.", "ocid1."),
        *_patterns(
            r"(?<![\w/-])",
            r"[a-z0-9-]{4,40}/(?:locations|zones|regions|secrets|topics|instances|datasets)/",
            "projects/",
        ),
    ),
)
ENDPOINT: Final = Rule(
    "cloud-endpoint",
    "the address of a cloud service",
    _USE_CONNECTION,
    (
        *_patterns("[a-z0-9-]", _WORD_ENDS, *_CLOUDS),
        *_patterns(r"(?<![\d.])", r"(?![\d.])", "169.254.169.254", "169.254.170.2", "100.100.100.200"),
        *_patterns(r"(?<![\w-])metadata", _WORD_ENDS, ".google.internal"),
        *_patterns("(?<![0-9a-f:])", "(?![0-9a-f:])", "fd00:ec2::254"),
        *_patterns(r"(?<!\d)", r"(?!\d)", "2852039166", "0xa9fea9fe"),
    ),
)
EVERYWHERE: Final = (BUCKET, REGISTRY, PRINCIPAL)
PORTABLE: Final = (*EVERYWHERE, ENDPOINT, INSTANCE)
