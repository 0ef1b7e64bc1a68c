"""Names and paths that cannot be mistaken, smuggled or climbed out of."""

import re
from typing import Final
from unicodedata import combining, normalize
from unicodedata import name as character_name
from urllib.parse import unquote

NAME_MAX: Final = 63

_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_LABEL_KEY: Final = re.compile(
    r"(?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
)
_OWN_PREFIX: Final = re.compile(r"(?:[a-z0-9.-]+\.)?landbridge(?:\.[a-z0-9.-]+)?/")
_REPOSITORY: Final = re.compile(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*")
_HOST: Final = re.compile(r"[a-z0-9.-]+\.[a-z]{2,}|localhost|[^/]+:[0-9]+", re.IGNORECASE)

# Letters of other scripts that look like Latin ones (a part of Unicode TR39 that covers what people have tried).
_LOOK_ALIKES: Final = str.maketrans(
    "авеіјкмнорсԁѕтухԛԝһӏьгпсуΑΒΕΖΗΙΚΜΝΟΡΤΥΧανορτυχικγωβ",
    "abeijkmhopcdstyxqwhlbrncyabezhikmnoptyxavoptuxikywb",
)

# Variables that change which code runs, and those that Landbridge and Kubernetes set themselves.
_REFUSED_VARIABLES: Final = frozenset((
    "PATH", "IFS", "ENV", "BASH_ENV", "SHELLOPTS", "BASHOPTS", "PS4", "PROMPT_COMMAND", "CDPATH", "GLOBIGNORE",
    "GCONV_PATH", "HOSTALIASES", "LOCALDOMAIN", "RES_OPTIONS", "NLSPATH", "GLIBC_TUNABLES", "PYTHONSTARTUP",
    "PYTHONHOME", "PYTHONINSPECT", "PYTHONBREAKPOINT", "PERL5OPT", "PERL5LIB", "PERL5DB", "RUBYOPT", "RUBYLIB",
    "NODE_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "TRACEPARENT", "TRACESTATE",
))  # fmt: skip
_REFUSED_PREFIXES: Final = ("LD_", "DYLD_", "BASH_FUNC_", "LANDBRIDGE_", "KUBERNETES_")

_SYSTEM_DIRECTORIES: Final = (
    "/proc", "/sys", "/dev", "/etc", "/boot", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr", "/run",
    "/var/run", "/root",
)  # fmt: skip


def suggest_name(text: str) -> str:
    """Return the name closest to `text` that is allowed, or an empty string."""
    plain = normalize("NFKD", normalize("NFKC", text)).translate(_LOOK_ALIKES).lower().translate(_LOOK_ALIKES)
    plain = "".join(c for c in plain if not combining(c))
    plain = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:NAME_MAX].strip("-")
    return plain if _NAME.fullmatch(plain) else ""


def explain_name(text: str) -> tuple[str, str]:
    """Say why `text` is no name, and what would be one. Empty texts if it is a name."""
    if _NAME.fullmatch(text):
        return "", ""
    found = suggest_name(text)
    suggestion = f'write "{found}"' if found else ""
    strange = next((c for c in text if not c.isascii()), "")
    if strange:
        called = character_name(strange, "a character without a name")
        return f"a name has only a-z, 0-9 and '-', found U+{ord(strange):04X} ({called})", suggestion
    if not text:
        return "a name must not be empty", ""
    if len(text) > NAME_MAX:
        return f"a name has at most {NAME_MAX} characters, found {len(text)}", suggestion
    return "a name has only a-z, 0-9 and '-', and begins and ends with a letter or digit", suggestion


def is_name(text: str) -> bool:
    """Tell whether a text is a DNS label, the form of all names."""
    return _NAME.fullmatch(text) is not None


def variable_refusal(variable: str) -> str:
    """Say why an environment variable may not be set, or an empty string."""
    upper = variable.upper()
    if upper.startswith(("LANDBRIDGE_", "KUBERNETES_")) or upper in ("TRACEPARENT", "TRACESTATE"):
        return "this variable is set for the workload, not by it"
    if upper in _REFUSED_VARIABLES or upper.startswith(_REFUSED_PREFIXES):
        return "this variable changes which code runs"
    return ""


def connection_path_refusal(text: str) -> tuple[str, str]:
    """Say why a path below a connection is refused, and what to write; empty texts if it is fine."""
    plain = unquote(unquote(text))
    told, suggestion = _climbs(plain)
    if told:
        return told, suggestion
    if plain != text:
        return "a path is written plainly, not percent-encoded", ""
    if "://" in text:
        return "a path below a connection is not a URL", "write only the part below the connection"
    if text.startswith("~"):
        return "a path below a connection does not begin with ~", "write only the part below the connection"
    if text != normalize("NFC", text):
        return (
            "a path is written in Unicode's composed form (NFC), so that it names one thing",
            "type its letters again",
        )
    if "//" in text or text != text.strip() or any(part == "." for part in text.split("/")):
        return "a path has no empty parts, no '.' parts and no spaces at its ends", ""
    return "", ""


def _climbs(path: str) -> tuple[str, str]:
    slashed = path.replace("\\", "/")
    if any(part.strip() == ".." for part in slashed.split("/")):
        return "a path must not climb with '..'", "write the path from the connection's own root"
    if "\\" in path:
        return "a path is separated with '/'", ""
    if slashed.startswith("/") or re.match(r"[A-Za-z]:/", slashed):
        return "a path below a connection is relative", f'write "{slashed.lstrip("/")}"' if slashed.lstrip("/") else ""
    return "", ""


def mount_path_refusal(text: str) -> tuple[str, str]:
    """Say why a directory inside the workload is refused, and what to write; empty texts if it is fine."""
    if not text.startswith("/"):
        return "expected an absolute path such as /data", f'write "/{text.lstrip("./")}"' if text.strip("./") else ""
    parts = text.split("/")[1:]
    if any(part in ("", ".", "..") for part in (parts[:-1] if text.endswith("/") and len(parts) > 1 else parts)):
        return "a path has no empty parts, no '.' and no '..'", ""
    plain = text.rstrip("/") or "/"
    if plain == "/" or any(plain == system or plain.startswith(system + "/") for system in _SYSTEM_DIRECTORIES):
        return "this directory belongs to the system of the workload", "choose another one, such as /data"
    return "", ""


def label_refusal(key: str, value: str) -> tuple[str, str]:
    """Say why a label is refused, and what to do; empty texts if it is fine."""
    if not _LABEL_KEY.fullmatch(key):
        return "a label's key has letters, digits, '.', '_' and '-', and may have a DNS prefix with '/'", ""
    if _OWN_PREFIX.match(key):
        return "labels with this prefix are Landbridge's own", "choose another prefix"
    if len(value) > 253 or "\n" in value:
        return "a label's value is one line of at most 253 characters", "use an annotation for longer notes"
    return "", ""


def repository_refusal(text: str) -> tuple[str, str, str]:
    """Say why an image's repository is refused: code, message and what to write; empty texts if it is fine."""
    if "@" in text:
        return "image-reference", "a repository has no digest in it", "put the digest into spec.image.digest"
    first, _, rest = text.partition("/")
    if rest and _HOST.fullmatch(first):
        return "registry-host", "a repository has no host in it", "name a registry connection in spec.image.registry"
    if ":" in text:
        return "image-tag", "a tag can move; an image is pinned by digest", "remove the tag and give spec.image.digest"
    if not _REPOSITORY.fullmatch(text):
        return "bad-repository", "a repository has lower-case letters, digits, '.', '_', '-' and '/'", ""
    return "", "", ""
