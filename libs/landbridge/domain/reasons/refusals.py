"""Every code that a refused document may carry. The message names what was expected and found, at path and line."""

from typing import Final

from landbridge.domain.reasons.base import Told

_READING: Final = (
    Told("not-utf-8", "the text is not UTF-8", "save the file as UTF-8"),
    Told(
        "too-large",
        "a document, value or rendered operation is above its limit",
        "keep data in a connection and name it under inputs",
    ),
    Told("too-deep", "values are nested deeper than is read", "flatten the document"),
    Told("too-many-nodes", "there are more values than are read", "split the document"),
    Told("too-many-documents", "there are more documents in the text than are read", "send them in parts"),
    Told("too-many-problems", "more is wrong than is told at once", "correct what is told, then send it again"),
    Told("several-documents", "one document was expected", "send them one by one, or in bulk"),
    Told("yaml-syntax", "the text is not readable as YAML", "correct it at the line that is named"),
    Told("json-syntax", "the text is not readable as JSON", "correct it at the line that is named"),
    Told("directive", "YAML directives (%…) are not read", "remove the line"),
    Told(
        "ambiguous-scalar",
        "a value reads differently in other readers of YAML (yes, 010, 1e3)",
        "put it in quotes, or write it as the suggestion does",
    ),
    Told("duplicate-key", "a key stands twice in one map", "keep one of them"),
    Told("key-type", "a key is no plain text", "put it in quotes"),
    Told("number-range", "a number cannot be read exactly", "write it as text in quotes"),
    Told("control-character", "a control character is in the text", "remove it"),
    Told("bidi-control", "a character turns the direction of the text, which hides what it says", "remove it"),
    Told(
        "not-a-document",
        "a map with apiVersion, kind, metadata and spec was expected",
        "begin with one of the examples",
    ),
)
_SHAPE: Final = (
    Told("unknown-kind", "there is no such kind of document", "use the kind that is suggested"),
    Told("wrong-kind", "another kind of document belongs here", "operations are submitted, all others applied"),
    Told(
        "unknown-version",
        "there is no such apiVersion, preset version or component version",
        "use a version that is named",
    ),
    Told("unknown-field", "there is no such field here", "use the field that is suggested, or remove it"),
    Told("missing-field", "a field is required", "add it, as the example in the suggestion does"),
    Told("wrong-type", "a value has another type", "write it as the suggestion does"),
    Told("wrong-form", "a text has another form", "write it as the message describes"),
    Told(
        "wrong-unit",
        "a quantity or duration has no unit that is known",
        "write it as the suggestion does, such as 4Gi, 500m, 30s",
    ),
    Told("wrong-value", "a value cannot be used here", "choose another"),
    Told(
        "not-allowed",
        "a value is none of those that are allowed",
        "use the one that is suggested, or one that is listed",
    ),
    Told(
        "out-of-range", "a number, length or duration is too small or too large", "stay within the bound that is named"
    ),
    Told("not-used", "a field has no effect with the others here", "remove it, or change what it depends on"),
    Told("status-refused", "status is written by the verifier only", "remove it; spec is what you claim"),
    Told("bad-name", "a name is no DNS label", "use a-z, 0-9 and '-', as suggested"),
    Told("bad-label", "a label or annotation has another form", "write it as the message describes"),
    Told("bad-reference", "a name or name@version was expected", "write it so"),
    Told("bad-digest", "a digest was expected: sha256: and 64 hexadecimal digits", "copy the whole digest"),
    Told(
        "bad-commit",
        "a full commit id of 40 hexadecimal digits was expected",
        "copy the whole id: branches and tags move",
    ),
    Told("bad-variable", "a variable's name was expected", "use letters, digits and '_'"),
    Told("bad-repository", "an image repository has another form", "use lower-case letters, digits and '/'"),
    Told("bad-pattern", "a parameter's pattern is no regular expression that can be used", "correct it"),
    Told("bad-expression", "a rule's expression is no condition that can be used", "correct it at the place told"),
    Told("bad-parameter", "a parameter's value does not fit its type, pattern or choices", "give one that fits"),
    Told(
        "bad-criterion",
        "an acceptance criterion is incomplete, or is several",
        "write one criterion an entry, with its bound",
    ),
)
_MEANING: Final = (
    Told(
        "nothing-to-run",
        "there is neither an image nor a command, or an empty one",
        "add command, or image with its digest",
    ),
    Told("image-without-digest", "an image is pinned by its digest", "add digest: sha256:…"),
    Told("image-tag", "a tag can move", "remove the tag and give spec.image.digest"),
    Told("image-reference", "a repository has a digest in it", "put the digest into spec.image.digest"),
    Told("registry-host", "the host of a registry is in it", "name a registry connection in spec.image.registry"),
    Told("provider-instance", "the name of a provider's instance type is in it", "ask for a capability class"),
    Told(
        "provider-resource",
        "a provider's resource or principal is in it",
        "name a logical role in spec.identity, or a connection",
    ),
    Told("bucket-url", "the URL of a bucket is in it", "name a connection and the path below it"),
    Told("cloud-endpoint", "the address of a cloud service is in it", "name a connection"),
    Told(
        "credential",
        "a credential is in it; its value is never repeated",
        "remove it, and revoke it: it has been sent. Workloads get their credentials at the destination",
    ),
    Told(
        "reserved-variable", "this variable is set for the workload, or changes which code runs", "choose another name"
    ),
    Told(
        "unsafe-path", "a path leads out of its connection, or over files of the system", "write a plain relative path"
    ),
    Told("same-path", "two outputs, or two mounts, share a path", "give each its own"),
    Told("unknown-reference", "a name refers to nothing in the document", "use the name that is suggested"),
    Told("zero-resource", "an amount is nothing", "remove it to get the default"),
    Told("zero-accelerators", "a count is nothing", "remove accelerator if none is wanted"),
    Told("zero-duration", "a duration is nothing", "remove it for the default"),
    Told(
        "timeout-too-short", "the timeout is below the expected duration", "raise the timeout, or lower the expectation"
    ),
    Told(
        "long-without-checkpoints",
        "long work has neither checkpoints nor recovery: never",
        "add spec.checkpoints, or say that it starts over",
    ),
    Told(
        "gang-must-finish",
        "members of a gang that stays together may have to be stopped, and must-finish work cannot be",
        "use another policy, or gang.afterStart: apart",
    ),
    Told(
        "checkpoints-missing",
        "a policy needs checkpoints that are not declared",
        "add spec.checkpoints with a connection",
    ),
)
_CATALOGUE: Final = (
    Told("unknown-project", "there is no such project", "use the one that is suggested, or apply a Project"),
    Told("unknown-queue", "there is no such queue, or it is not open to the project", "use a queue that is named"),
    Told(
        "unknown-preset",
        "there is no such preset or version, or it is not open to the project",
        "use one that is named",
    ),
    Told(
        "unknown-component",
        "there is no such component or version, or it is not open to the project",
        "use one that is named",
    ),
    Told("unknown-parameter", "the component has no such parameter", "use the one that is suggested"),
    Told("missing-parameter", "the component needs this parameter", "add it to spec.parameters"),
    Told("unknown-priority", "the queue has no such priority class", "use a class that is named"),
    Told("unknown-identity", "the project does not allow this role", "use a role that is named"),
    Told(
        "version-conflict", "this version exists with other content", "a version never changes: write the next number"
    ),
    Told(
        "version-is-over",
        "this contract version is retiring or retired",
        "register the next version",
    ),
    Told(
        "version-is-no-draft",
        "a contract version that is a canary or active already was sent as a draft",
        "write the change as the next version, and send that with --draft",
    ),
    Told("version-is-fixed", "this contract version exists with other content", "register the next version"),
    Told("version-too-low", "a contract version is not above those that are known", "register the next version"),
    Told(
        "canary-failed", "the suite of a canary version did not pass", "repair what is named and register a new version"
    ),
    Told("unknown-environment", "no such environment is registered", "landbridge get environments lists them"),
    Told("unknown-action", "there is no such action of an environment", "use one that is named"),
)
_SENDING: Final = (
    Told(
        "key-conflict",
        "the idempotency key names an operation with other content",
        "use a new key for new work, or send the first document again",
    ),
    Told("bad-key", "the idempotency key is empty, too long or not printable", "send another one, such as a UUID"),
    Told("wrong-project", "the document names another project than it was sent to", "correct one of them"),
    Told(
        "too-many-queued",
        "the project has as many operations waiting for their first place as limits.queued allows",
        "send it again once some were placed, or have limits.queued raised",
    ),
    Told(
        "gang-conflict",
        "the gang was declared otherwise by the member that came first",
        "declare all members alike, or name another gang",
    ),
    Told("gang-full", "the gang has all of its members", "name another gang: a name is used once in a project"),
    Told("not-a-list", "a bulk submission has items", "send a map with items, YAML documents or NDJSON"),
    Told("not-a-cloud-event", "an event is no CloudEvent 1.0", "add what is named"),
    Told(
        "not-a-submission",
        "a message on the subject cannot be read as a submission",
        "send it with CloudEvents headers",
    ),
    Told("not-handled", "it could not be handled; the reason is in intake's log", "tell an operator"),
)
REFUSALS: Final[tuple[tuple[str, tuple[Told, ...]], ...]] = (
    ("Reading the text", _READING),
    ("Shape", _SHAPE),
    ("Meaning, portability and safety", _MEANING),
    ("What it refers to", _CATALOGUE),
    ("Sending", _SENDING),
)
