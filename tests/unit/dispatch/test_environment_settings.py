"""What presets set for one environment holds there, and needs a dispatcher that knows it."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from landbridge.domain.classify import classify
from landbridge.domain.documents import Document, Rendered, read_document, render
from landbridge.domain.features import ENVIRONMENT_SETTINGS, PROCESS_FEATURES, needed_features
from landbridge_dispatch.coordinator.declared import declare
from landbridge_dispatch.specification import read_operation
from unit.documents.documents import a_document, as_json
from unit.documents.test_render import a_catalogue

VARIABLES = st.dictionaries(st.sampled_from(("A", "B", "C")), st.sampled_from(("1", "2", "3")))


def rendered(own: dict[str, str], everywhere: dict[str, str], local: dict[str, dict[str, str]]) -> dict[str, Any]:
    """Return the effective operation under a preset that sets variables everywhere and for single environments."""
    environments = {name: {"env": variables} for name, variables in local.items()}
    spec = {"patch": {"env": everywhere}, "environments": environments}
    preset = read_document(as_json(a_document("preset", {"spec": spec})))
    operation = read_document(as_json(a_document(put={"spec.env": own, "spec.presets": ["overnight"]})))
    assert isinstance(preset, Document)
    assert isinstance(operation, Document)
    found = render(operation, a_catalogue(presets={"overnight": {2: preset.value}}))
    assert isinstance(found, Rendered)
    return dict(found.value)


@given(VARIABLES, VARIABLES, st.dictionaries(st.sampled_from(("here", "there")), VARIABLES))
def test_the_operation_wins_then_the_setting_for_the_environment_then_the_one_for_all(
    own: dict[str, str], everywhere: dict[str, str], local: dict[str, dict[str, str]]
) -> None:
    view = read_operation(json.dumps(rendered(own, everywhere, local)).encode())

    assert dict(view.placed_in("here").spec.env) == {**everywhere, **local.get("here", {}), **own}
    assert dict(view.placed_in("elsewhere").spec.env) == {**everywhere, **own}


def test_a_dispatcher_that_would_ignore_the_settings_is_not_asked() -> None:
    document = rendered({}, {}, {"here": {"A": "1"}})
    plain = rendered({"A": "mine"}, {}, {"here": {"A": "1"}})

    for value, needed in ((document, True), (plain, False)):
        body = json.dumps(value).encode()
        named = {tuple(declare(body).features), tuple(classify(body).requirements.features), needed_features(value)}
        assert len(named) == 1, "coordinator, eligibility and the domain agree"
        assert (ENVIRONMENT_SETTINGS in named.pop()) is needed
    assert ENVIRONMENT_SETTINGS in PROCESS_FEATURES
