"""Write docs/reference/kubernetes-states.md from the executor's tables; `--check` tells whether it is up to date."""

import sys
from pathlib import Path

from landbridge_dispatch.executors.kubernetes import permissions
from landbridge_dispatch.executors.kubernetes.states import ROWS, Row

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
A pod that took the slot and is not there any more: ended, failed, `removed-externally`; after an order to stop it:
cancelled, with the order's reason. A Job that is removed by others: its pods are ended, then the placement is told as
removed externally.

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
    text += PERMISSIONS + "".join(map(_permission, permissions.NAMESPACED))
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
