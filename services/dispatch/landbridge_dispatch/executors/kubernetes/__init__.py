"""Work as Kubernetes objects: one suspended Job is a slot, starting it is a patch, its annotations are the record."""
