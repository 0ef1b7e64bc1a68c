"""Write docs/reference/kubernetes-states.md from the executor's tables; `--check` tells whether it is up to date."""

import sys
from pathlib import Path

from landbridge_dispatch.executors.kubernetes import permissions
from landbridge_dispatch.executors.kubernetes.states import ROWS, Row
from landbridge_dispatch.executors.kubernetes.vouching import MARGIN_S

TARGET = Path(__file__).parents[1] / "docs" / "reference" / "kubernetes-states.md"
INTRODUCTION = """# Kubernetes: states and permissions

<!-- Written by tools/generate_kubernetes_states.py from the executor's tables; do not edit. -->

## What a pod's state means

Read from top to bottom; the first row that fits counts. *Before the start* means before the pod has taken its slot. The
cluster's own words are kept beside what is told.

| state | seen in the cluster | what follows | outcome, reason | counts | text |
|---|---|---|---|---|---|
"""
PERMISSIONS = """
### When a pod that took the slot has ended

A slot is given back only when it is sure that nothing of it runs on. That is the word of the pod's node: its container
is `terminated`. A phase is not: controllers and administrators write `Failed` for pods that they cannot see, and a node
that has such a pod says again that it runs. Where its node has not said it, a pod that counts as `Failed`, or is not
there any more, counts as running, and what is shown of the work says why, until

| the node | then |
|---|---|
| says that the container has ended | as the table says |
| is gone: no Node of that name, or not ready and tainted `node.kubernetes.io/out-of-service` | after the pod's grace \
and {margin} s: failed, `node-lost` |
| is ready for the pod's grace and {margin} s, and the pod is gone, or the node tells of no container of it | failed, \
`removed-externally` or `node-lost`; after an order to stop it: cancelled, with the order's reason |
| is not heard of, or cannot be read | nothing follows, however long it takes |

Removing a Node, or giving it that taint, is the word of whoever owns the machine that it is off: do so only then. The
{margin} s are longer than a cluster calls a node ready that it does not hear of (`--node-monitor-grace-period`, 50 s);
where yours is longer, a pod that somebody removed by force from a node that is cut off may count as ended too early.

An operator's word that a gang has succeeded, or that a RayJob is over, counts for pods that are gone. A Job that is
removed by others: its pods are ended, then the placement is told as removed externally.

## What the executor may do

In the namespaces of the work:

| group | resource | verbs | why |
|---|---|---|---|
"""
OPERATOR = """
There, where the bindings offer the operator `{name}`:

| group | resource | verbs | why |
|---|---|---|---|
"""
ROUTE = """
There, where the bindings offer a way to services from outside, one of:

| group | resource | verbs | why |
|---|---|---|---|
"""
CLUSTER = """
In the cluster, since the resource belongs to no namespace:

| group | resource | verbs | why |
|---|---|---|---|
"""


def main() -> int:
    """Write or compare; return the exit code."""
    text = INTRODUCTION + "".join(map(_row, ROWS))
    text += PERMISSIONS.format(margin=f"{MARGIN_S:g}") + "".join(map(_permission, permissions.NAMESPACED))
    for name, lines in permissions.OPERATORS.items():
        text += OPERATOR.format(name=name) + "".join(map(_permission, lines))
    text += ROUTE + "".join(_permission(line) for lines in permissions.ROUTES.values() for line in lines)
    text += CLUSTER + "".join(map(_permission, permissions.CLUSTER))
    if "--check" in sys.argv[1:]:
        if not TARGET.exists() or TARGET.read_text() != text:
            print("docs/reference/kubernetes-states.md is not what the tables say; run: make schema")
            return 1
        return 0
    TARGET.write_text(text)
    return 0


def _row(row: Row) -> str:
    told = ", ".join(part for part in (row.outcome, f"`{row.reason}`" if row.reason else "") if part)
    return f"| {row.code} | {row.sign} | {row.meaning} | {told} | {row.patience} | {row.text} |\n"


def _permission(rule: permissions.Permission) -> str:
    return f"| {rule.api_group or 'core'} | {rule.resource} | {', '.join(rule.verbs)} | {rule.why} |\n"


if __name__ == "__main__":
    sys.exit(main())
