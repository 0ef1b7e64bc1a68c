"""What looks like a credential, and how to show a value without ever showing one."""

import re
from base64 import b64decode
from binascii import Error as Base64Error
from collections import Counter
from itertools import pairwise
from math import log2
from typing import Final
from urllib.parse import unquote

_SHAPES: Final = re.compile(
    "|".join((
        r"(?P<aws_key>\b(?:AKIA|ASIA|AROA|AIDA|ABIA|ACCA)[A-Z0-9]{16}\b)",
        r"(?P<private_key>-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----)",
        r"(?P<jwt>\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*)",
        r"(?P<nats_creds>-----BEGIN (?:NATS USER JWT|USER NKEY SEED)-----|\bS[UAOCNX][A-Z2-7]{56}\b)",
        r"(?P<github_token>\bgh[pousr]_[A-Za-z0-9]{30,}|\bgithub_pat_[A-Za-z0-9_]{40,})",
        r"(?P<gitlab_token>\bgl(?:pat|dt|rt|cbt)-[A-Za-z0-9_-]{20,})",
        r"(?P<slack_token>\bxox[abeoprs]-[A-Za-z0-9-]{10,})",
        r"(?P<api_key>\bsk-(?:ant-|proj-|live-)?[A-Za-z0-9_-]{20,}|\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,})",
        r"(?P<hub_token>\bhf_[A-Za-z0-9]{30,})",
        r"(?P<google_key>\bAIza[0-9A-Za-z_-]{35}|\bya29\.[0-9A-Za-z_-]{20,}|\bGOCSPX-[0-9A-Za-z_-]{20,})",
        r"(?P<package_token>\bnpm_[A-Za-z0-9]{36}|\bpypi-AgE[A-Za-z0-9_-]{20,}|\bdckr_pat_[A-Za-z0-9_-]{20,})",
        r"(?P<mail_token>\bSG\.[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{30,})",
        r"(?P<vault_token>\bhv[sb]\.[A-Za-z0-9_-]{20,}|\bdop_v1_[a-f0-9]{60,})",
        r"(?P<storage_key>\b(?:AccountKey|SharedAccessKey)=[A-Za-z0-9+/]{40,}=*)",
        r"(?P<signed_url>[?&](?:sig|X-Amz-Signature|X-Goog-Signature)=[A-Za-z0-9%+/]{20,})",
        r"(?P<url_password>\b[a-z][a-z0-9+.-]{1,20}://[^/\s:@]{0,80}:[^/\s:@$]{1,200}@)",
        r"(?P<authorization>\b[Aa]uthorization['\"]?\s{0,3}[:=]\s{0,3}['\"]?(?:[Bb]earer|[Bb]asic|[Tt]oken)\s{1,3}[A-Za-z0-9._~+/=-]{8,})",
    ))
)  # fmt: skip
_KIND: Final = {
    "aws_key": "an AWS access key", "private_key": "a private key", "jwt": "a JSON web token",
    "nats_creds": "a NATS credential", "github_token": "a GitHub token", "gitlab_token": "a GitLab token",
    "slack_token": "a Slack token", "api_key": "an API key", "hub_token": "a model hub token",
    "google_key": "a Google key", "package_token": "a package registry token", "mail_token": "a mail service key",
    "vault_token": "a service token", "storage_key": "a storage account key", "signed_url": "a signed URL",
    "url_password": "a URL with a password", "authorization": "an authorization header",
}  # fmt: skip

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
# Whatever `_SHAPES` finds holds one of these, or a long run of capitals.
_SHAPE_MARKS: Final = (
    "AKIA", "ASIA", "AROA", "AIDA", "ABIA", "ACCA", "-----BEGIN", "eyJ", "ghp_", "gho_", "ghu_", "ghs_", "ghr_",
    "github_pat_", "glpat-", "gldt-", "glrt-", "glcbt-", "xox", "sk-", "sk_", "rk_", "hf_", "AIza", "ya29.", "GOCSPX",
    "npm_", "pypi-", "dckr_", "SG.", "hvs.", "hvb.", "dop_", "Key=", "sig=", "Signature=", "://", "uthorization",
)  # fmt: skip
_CAPITALS: Final = re.compile(r"[A-Z2-7]{57}")
_HEX: Final = re.compile(r"[0-9a-f]+")
_PERCENT: Final = re.compile(r"%[0-9A-Fa-f]{2}")
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
    """Name the kind of credential that `text` holds, plain, percent-encoded or base64; empty for none."""
    found = _shape(text) or _assigned(text)
    if found:
        return found
    if "%" in text and _PERCENT.search(text):
        found = _shape(unquote(text)) or _assigned(unquote(text))
    return found or _encoded(text)


def might_hold_credential(text: str) -> bool:
    """Tell quickly whether a long text may hold a credential anywhere; only false is certain."""
    if _may_have_shape(text) or _ASSIGNED.search(text) or _PERCENT.search(text):
        return True
    return any(not _HEX.fullmatch(match[0]) and _encoded(match[0]) for match in _BASE64.finditer(text))


def _may_have_shape(text: str) -> bool:
    return any(mark in text for mark in _SHAPE_MARKS) or _CAPITALS.search(text) is not None


def _shape(text: str) -> str:
    if not _may_have_shape(text):
        return ""
    match = _SHAPES.search(text)
    return "" if match is None or match.lastgroup is None else _KIND[match.lastgroup]


def _assigned(text: str) -> str:
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
