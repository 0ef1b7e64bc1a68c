"""What looks like a credential, and how to show a value without ever showing one."""

import re
from base64 import b64decode
from binascii import Error as Base64Error
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from math import log2
from typing import Final


@dataclass(frozen=True, slots=True)
class _Shape:
    """One kind of credential. Its pattern begins with `mark`, literally: that makes searching long texts cheap."""

    kind: str
    mark: str
    pattern: re.Pattern[str]
    inside: bool = False  # whether it may begin inside a word

    def is_in(self, text: str) -> bool:
        """Tell whether `text`, which holds the mark, holds the whole."""
        return any(
            self.inside or match.start() == 0 or not text[match.start() - 1].isalnum()
            for match in self.pattern.finditer(text)
        )


def _shapes(kind: str, rest: str, *marks: str, inside: bool = False) -> list[_Shape]:
    return [_Shape(kind, mark, re.compile(re.escape(mark) + rest), inside) for mark in marks]


_RUN: Final = "[A-Za-z0-9_-]"
_SHAPES: Final = (
    *_shapes("an AWS access key", r"[A-Z0-9]{16}(?![A-Za-z0-9])", "AKIA", "ASIA", "AROA", "AIDA", "ABIA", "ACCA"),
    *_shapes("a private key", r"(?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----", "-----BEGIN ", inside=True),
    *_shapes("a NATS credential", r"(?:NATS USER JWT|USER NKEY SEED)", "-----BEGIN ", inside=True),
    *_shapes("a JSON web token", rf"{_RUN}{{8,4096}}\.eyJ{_RUN}{{8,}}\.", "eyJ"),
    *_shapes("a GitHub token", r"[A-Za-z0-9]{30,}", "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    *_shapes("a GitHub token", r"[A-Za-z0-9_]{40,}", "github_pat_"),
    *_shapes("a GitLab token", rf"{_RUN}{{20,}}", "glpat-", "gldt-", "glrt-", "glcbt-"),
    *_shapes("a Slack token", r"[A-Za-z0-9-]{10,}", *(f"xox{letter}-" for letter in "abeoprs")),
    *_shapes("an API key", rf"{_RUN}{{24,}}", "sk-"),
    *_shapes("an API key", r"[A-Za-z0-9]{16,}", "sk_live_", "sk_test_", "rk_live_", "rk_test_"),
    *_shapes("a model hub token", r"[A-Za-z0-9]{30,}", "hf_"),
    *_shapes("a Google key", rf"{_RUN}{{35}}", "AIza"),
    *_shapes("a Google key", rf"{_RUN}{{20,}}", "ya29.", "GOCSPX-"),
    *_shapes("a package registry token", rf"{_RUN}{{20,}}", "npm_", "pypi-AgE", "dckr_pat_"),
    *_shapes("a mail service key", rf"{_RUN}{{20,100}}\.{_RUN}{{30,}}", "SG."),
    *_shapes("a service token", rf"{_RUN}{{20,}}", "hvs.", "hvb.", "dop_v1_"),
    *_shapes("a storage account key", r"[A-Za-z0-9+/]{40,}", "AccountKey=", "SharedAccessKey="),
    *_shapes(
        "a signed URL", r"[A-Za-z0-9%+/]{20,}", "?sig=", "&sig=", "X-Amz-Signature=", "X-Goog-Signature=", inside=True
    ),
    *_shapes("a URL with a password", r"[^/\s:@]{0,80}:[^/\s:@$]{1,200}@", "://", inside=True),
    *_shapes(
        "an authorization header",
        r"['\"]?\s{0,3}[:=]\s{0,3}['\"]?(?:[Bb]earer|[Bb]asic|[Tt]oken)\s{1,3}[A-Za-z0-9._~+/=-]{8,}",
        "uthorization",
        inside=True,
    ),
)
_MARKS: Final = tuple(sorted({shape.mark for shape in _SHAPES}))  # looked for together, which is quick
_NKEY_SEED: Final = re.compile(r"S[UAOCNX][A-Z2-7]{56}(?![A-Za-z0-9])")
_CAPITALS: Final = re.compile(r"[A-Z2-7]{57}")
_ASSIGNMENT_WORDS: Final = ("pass", "pwd", "secret", "key", "token")

# `password=...`, `--api-key ...` and the like. A reference such as $(NAME) or ${NAME} is not a value.
_ASSIGNED: Final = re.compile(
    r"(?i)(?<![a-z0-9])(?:pass(?:word|wd|phrase)|pwd|secret|(?:api|access|secret|private|account|auth)[_-]?key"
    r"|(?:secret[_-]?access[_-]?key)|(?:access|auth|bearer|session|refresh|api)[_-]?token|client[_-]?secret|token)"
    r"['\"]?\s{0,3}[=:]\s{0,3}['\"]?(?P<value>[^\s'\"]{3,})"
)
_SECRET_FLAG: Final = re.compile(
    r"(?i)--?(?:[a-z0-9-]*-)?(?:pass(?:word|wd|phrase)|pwd|secret|(?:api|access|secret|private|auth)-?key|token)"
)
_REFERENCE: Final = re.compile(
    r"\$\([A-Za-z_][A-Za-z0-9_]*\)|\$\{[A-Za-z_][A-Za-z0-9_]*\}|\$[A-Za-z_][A-Za-z0-9_]*|<[^<>]*>|\*+|x{3,}"
)
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]{24,}={0,2}")
_HEX: Final = re.compile(r"[0-9a-f]+")
_SECRET_WORDS: Final = frozenset((
    "SECRET", "SECRETS", "TOKEN", "PASSWORD", "PASSWD", "PASSPHRASE", "PWD", "APIKEY", "CREDENTIAL", "CREDENTIALS",
    "PAT", "BEARER",
))  # fmt: skip
_KEY_BEFORE: Final = frozenset(
    ("API", "ACCESS", "SECRET", "PRIVATE", "ACCOUNT", "ENCRYPTION", "SIGNING", "AUTH", "SSH")
)
_ALWAYS_SECRET: Final = frozenset((
    "AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN", "AZURE_CLIENT_SECRET", "AZURE_STORAGE_KEY",
    "AZURE_STORAGE_CONNECTION_STRING", "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_API_KEY", "HF_TOKEN",
    "HUGGING_FACE_HUB_TOKEN", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "WANDB_API_KEY", "GITHUB_TOKEN", "GITLAB_TOKEN",
    "PGPASSWORD", "MYSQL_PWD", "REDISCLI_AUTH", "KUBECONFIG", "DOCKER_AUTH_CONFIG", "NPM_TOKEN", "VAULT_TOKEN",
))  # fmt: skip
_HARMLESS: Final = re.compile(r"(?i)|true|false|none|null|[-+]?[0-9.]{1,12}|/[\w./-]*|\.{0,2}/[\w./-]*")
HIDDEN: Final = "(hidden)"
SHOWN_MAX: Final = 48


def credential_in(text: str) -> str:
    """Name the kind of credential that `text` holds, plain or in base64; empty for none."""
    return _shape(text) or _assigned(text) or _encoded(text)


def may_hold_credential(text: str) -> bool:
    """Tell quickly whether a long text may hold a credential anywhere; only false is certain."""
    lower = text.lower()
    return (
        any(map(text.__contains__, _MARKS))
        or any(word in lower for word in _ASSIGNMENT_WORDS)
        or _CAPITALS.search(text) is not None
        or any(not _HEX.fullmatch(match[0]) and _encoded(match[0]) for match in _BASE64.finditer(text))
    )


def _shape(text: str) -> str:
    if any(map(text.__contains__, _MARKS)):
        for shape in _SHAPES:
            if shape.mark in text and shape.is_in(text):
                return shape.kind
    return "a NATS credential" if _CAPITALS.search(text) and _NKEY_SEED.search(text) else ""


def _assigned(text: str) -> str:
    lower = text.lower()
    if not any(word in lower for word in _ASSIGNMENT_WORDS):
        return ""
    for match in _ASSIGNED.finditer(text):
        value = match["value"]
        if _REFERENCE.match(value) or _HARMLESS.fullmatch(value):
            continue
        # A tokenizer's `pad_token=[PAD]` is no secret; a password may be any word.
        if "token" not in match[0][: match.start("value") - match.start()].lower() or looks_random(value):
            return "a password or key"
    return ""


def _encoded(text: str) -> str:
    """Look into the base64 runs of a text, at most a handful: credentials are short."""
    if len(text) < 24:
        return ""
    for number, match in enumerate(_BASE64.finditer(text)):
        if number >= 64:
            break
        if _HEX.fullmatch(match[0]):
            continue
        run = match[0].rstrip("=")[:4096].replace("-", "+").replace("_", "/")
        try:
            plain = b64decode(run + "=" * (-len(run) % 4), validate=True).decode("ascii")
        except (Base64Error, ValueError, UnicodeDecodeError):
            continue
        found = _shape(plain) or _assigned(plain)
        if found:
            return f"{found} in base64"
    return ""


def names_a_secret(name: str) -> bool:
    """Tell whether a variable's name says that its value is secret: `DB_PASSWORD`, `API_KEY`; not `TOKENIZER`."""
    words = re.split(r"[^A-Za-z0-9]+", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name))
    upper = [word.upper() for word in words]
    if upper[-1:] in (["FILE"], ["PATH"], ["DIR"], ["URL"], ["NAME"], ["LIMIT"], ["TYPE"]):
        return False
    if any(word in _SECRET_WORDS for word in upper):
        return True
    return any(word == "KEY" and before in _KEY_BEFORE for before, word in pairwise(upper))


def secret_in_variable(name: str, value: str) -> bool:
    """Tell whether an environment variable carries a secret value rather than a reference, a number or a path."""
    if _REFERENCE.fullmatch(value) or not value:
        return False
    if name.upper() in _ALWAYS_SECRET:
        return True
    if not names_a_secret(name) or _HARMLESS.fullmatch(value):
        return False
    password = any(word in name.upper() for word in ("PASS", "PWD", "SECRET", "CREDENTIAL"))
    return password or looks_random(value)


def looks_random(value: str) -> bool:
    """Tell whether a value is long and mixed enough to have been drawn rather than named."""
    mixed = any(c.isdigit() for c in value) and any(c.isalpha() for c in value)
    return len(value) >= 12 and mixed and entropy_bits(value) >= 2.5


def secret_after_flag(flag: str, value: str) -> bool:
    """Tell whether `value` is the secret of a flag such as `--password` that stands before it."""
    if not _SECRET_FLAG.fullmatch(flag) or value.startswith("-"):
        return False
    if _REFERENCE.match(value) or _HARMLESS.fullmatch(value):
        return False
    return "token" not in flag.lower() or looks_random(value)


def entropy_bits(text: str) -> float:
    """Return the Shannon entropy of a text in bits a character: 0 for `aaaa`, about 4 for random base64."""
    size = len(text)
    return -sum(count / size * log2(count / size) for count in Counter(text).values()) if size else 0.0


def shown(value: object) -> str:
    """Write a value for a message: short, quoted, and `(hidden)` where it may be a secret."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return "a map"
    if isinstance(value, list):
        return "a list"
    if not isinstance(value, str):
        return str(value)[:SHOWN_MAX]
    text = value if len(value) <= SHOWN_MAX else value[: SHOWN_MAX - 1] + "…"
    if credential_in(value[:4096]) or (len(value) >= 20 and entropy_bits(value) > 4.0):
        return HIDDEN
    return '"' + "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text) + '"'


def shown_key(key: str) -> str:
    """Write a key for a message."""
    return shown(key)
