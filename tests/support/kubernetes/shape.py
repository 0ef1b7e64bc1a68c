"""What the schemas say about lists and maps: which are merged by keys, which are sets, which are one value."""

Names = tuple[str, ...]
"""Field names from the root; positions in lists do not count."""

_BY_KEYS: dict[str, Names] = {
    **dict.fromkeys(("containers", "initContainers", "ephemeralContainers", "env", "volumes"), ("name",)),
    **dict.fromkeys(("imagePullSecrets", "resourceClaims", "claims", "secrets"), ("name",)),
    "volumeMounts": ("mountPath",),
    "volumeDevices": ("devicePath",),
    "conditions": ("type",),
    "ownerReferences": ("uid",),
    "hostAliases": ("ip",),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
}
_ATOMIC = frozenset(
    [
        "selector",
        "nodeSelector",
        "labelSelector",
        "podSelector",
        "namespaceSelector",
        "matchLabels",
        "secretKeyRef",
        "configMapKeyRef",
        "fieldRef",
        "resourceFieldRef",
        "objectRef",
        "roleRef",
        "scopeSelector",
    ]
)
SET = ("",)
_DEFAULTS = {"protocol": "TCP"}


def list_keys(names: Names, *, custom: bool = False) -> Names:
    """Keys by which items are merged; SET for a set of plain values; empty for a list that is one value."""
    if names[-1:] == ("finalizers",) and names[:1] == ("metadata",):
        return SET
    if names == ("metadata", "ownerReferences"):
        return ("uid",)
    if custom or not names:
        return ()
    if names[-1] == "ports":
        if len(names) > 1 and names[-2].lower().endswith("containers"):
            return ("containerPort", "protocol")
        return ("port", "protocol") if names == ("spec", "ports") else ()
    return _BY_KEYS.get(names[-1], ())


def is_atomic_map(names: Names, *, custom: bool = False) -> bool:
    return not custom and names[-1:] != () and names[-1] in _ATOMIC


def key_of(item: dict[str, object], keys: Names) -> dict[str, object]:
    return {key: item.get(key, _DEFAULTS.get(key)) for key in keys}
