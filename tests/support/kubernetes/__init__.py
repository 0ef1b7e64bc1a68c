"""A Kubernetes API server in this process: `async with fake_cluster() as cluster: cluster.url`.

It is as honest as `tests/contract/kubernetes_api` makes it, which runs against it and against real clusters alike.
"""

from support.kubernetes.access import User
from support.kubernetes.cluster import FakeCluster, fake_cluster
from support.kubernetes.kubelet import Course

__all__ = ["Course", "FakeCluster", "User", "fake_cluster"]
