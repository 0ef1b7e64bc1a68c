"""Work goes to nodes that are proven."""

from landbridge_dispatch.executors.kubernetes.probing.where import NAMED_MAX, Proof, affinity


def _terms(*proofs: Proof) -> list[list[tuple[str, str]]]:
    found = affinity(proofs)
    if not found:
        return []
    terms = found["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    return [[(one["operator"], one["values"][0]) for one in term["matchFields"]] for term in terms]


def _proof(proven: set[str], unproven: set[str] = frozenset()) -> Proof:  # type: ignore[assignment]
    return Proof(frozenset(proven), frozenset(unproven), plain=True)


def test_few_nodes_are_named_one_by_one() -> None:
    assert _terms(_proof({"b", "a"}, {"c"})) == [[("In", "a")], [("In", "b")]]


def test_what_any_class_proves_counts() -> None:
    assert _terms(_proof({"a"}, {"b"}), _proof({"b"}, {"c"})) == [[("In", "a")], [("In", "b")]]


def test_of_many_those_that_are_not_proven_are_kept_out() -> None:
    many = {f"node-{number}" for number in range(NAMED_MAX + 1)}
    assert _terms(_proof(many, {"y", "x"})) == [[("NotIn", "x"), ("NotIn", "y")]]
    assert _terms(_proof(many)) == []


def test_without_proofs_nothing_is_kept_out() -> None:
    assert _terms() == _terms(_proof(set(), {"a"})) == []
