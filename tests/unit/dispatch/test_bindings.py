"""The site's bindings: what is wrong is said at once, and nothing leads out of a connection."""

import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contract.executors.harness import a_work
from landbridge_dispatch.executors.bindings import Bindings, BindingsError, load_bindings
from landbridge_dispatch.executors.protocol import RefusalCode, RefusedError
from landbridge_dispatch.executors.resolution import resolve


def a_site(home: Path, **changes: Any) -> Bindings:
    (home / "data/events").mkdir(parents=True, exist_ok=True)
    (home / "data/models").mkdir(parents=True, exist_ok=True)
    value = {
        "executor": "process",
        "connections": {
            "events": {"directory": "data/events"},
            "models": {"directory": "data/models", "access": "read-write"},
        },
        **changes,
    }
    path = home / "bindings.yaml"
    path.write_text(yaml.safe_dump(value))
    return load_bindings(path)


def refusal(bindings: Bindings, **spec: Any) -> RefusedError:
    with pytest.raises(RefusedError) as caught:
        resolve(bindings, a_work(["true"], **spec))
    return caught.value


def test_every_problem_is_told_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "bindings.yaml"
    path.write_text(
        "executor: cobol\nconection: {}\nconnections: {a: {directry: x}, b: {access: all}}\n"
        "simulation: {failureRate: 7}\n"
    )
    with pytest.raises(BindingsError) as caught:
        load_bindings(path)
    lines = str(caught.value).splitlines()
    assert [line.partition("bindings.yaml: ")[2].partition(":")[0] for line in lines] == [
        "executor",
        "connections.a",
        "connections.b",
        "simulation",
        "conection",
    ]


def test_an_input_is_resolved_below_its_connection(tmp_path: Path) -> None:
    site = a_site(tmp_path)
    (tmp_path / "data/events/2026").mkdir()
    found = resolve(site, a_work(["true"], inputs={"events": {"connection": "events", "path": "2026"}}))
    assert found.inputs == {"events": tmp_path / "data/events/2026"}
    assert found.locations == {"events": (tmp_path / "data/events").as_uri()}


@pytest.mark.parametrize(
    ("spec", "code"),
    [
        ({"inputs": {"a": {"connection": "nowhere"}}}, RefusalCode.CONNECTION_MISSING),
        ({"inputs": {"a": {"connection": "events", "path": "absent"}}}, RefusalCode.CONNECTION_UNAVAILABLE),
        ({"inputs": {"a": {"connection": "events", "path": "../models"}}}, RefusalCode.PATH),
        ({"inputs": {"a": {"connection": "events", "path": "/etc"}}}, RefusalCode.PATH),
        ({"inputs": {"a": {"connection": "events", "path": "x\0y"}}}, RefusalCode.PATH),
        ({"outputs": {"a": {"connection": "events"}}}, RefusalCode.CONNECTION_READ_ONLY),
        ({"checkpoints": {"connection": "events"}}, RefusalCode.CONNECTION_READ_ONLY),
    ],
)
def test_what_is_missing_or_not_allowed_is_refused_by_kind(
    tmp_path: Path, spec: dict[str, Any], code: RefusalCode
) -> None:
    assert refusal(a_site(tmp_path), **spec).code is code


def test_a_link_that_leads_out_is_refused(tmp_path: Path) -> None:
    site = a_site(tmp_path)
    (tmp_path / "data/events/out").symlink_to("/etc")
    assert refusal(site, inputs={"a": {"connection": "events", "path": "out"}}).code is RefusalCode.PATH
    (tmp_path / "data/models/out").symlink_to("/tmp")
    assert refusal(site, outputs={"a": {"connection": "models", "path": "out"}}).code is RefusalCode.PATH


def test_refusals_name_nothing_physical(tmp_path: Path) -> None:
    site = a_site(tmp_path, identities={"trainer": {"user": "no-such-user"}})
    for spec in (
        {"inputs": {"a": {"connection": "events", "path": "absent"}}},
        {"outputs": {"a": {"connection": "events"}}},
        {"identity": "trainer"},
        {"identity": "stranger"},
    ):
        assert str(tmp_path) not in str(refusal(site, **spec))
        assert "no-such-user" not in str(refusal(site, **spec))


@pytest.mark.parametrize(
    ("accepts", "code"),
    [
        ({"projects": ["search"]}, RefusalCode.PROJECT),
        ({"identities": ["analyst"]}, RefusalCode.IDENTITY),
        ({"connections": ["models"]}, RefusalCode.CONNECTION_FORBIDDEN),
    ],
)
def test_the_sites_own_policy_has_the_last_word(tmp_path: Path, accepts: dict[str, Any], code: RefusalCode) -> None:
    site = a_site(tmp_path, accepts=accepts)
    assert refusal(site, identity="trainer", inputs={"a": {"connection": "events"}}).code is code


def test_a_connection_may_be_kept_to_projects(tmp_path: Path) -> None:
    site = a_site(tmp_path, connections={"events": {"directory": "data/events", "projects": ["search"]}})
    assert refusal(site, inputs={"a": {"connection": "events"}}).code is RefusalCode.CONNECTION_FORBIDDEN


def test_a_secret_that_is_not_there_is_refused_before_anything_starts(tmp_path: Path) -> None:
    for secret in ({"file": "absent"}, {"env": "LANDBRIDGE_TEST_ABSENT"}):
        binding = {"directory": "data/events", "secrets": {"KEY": secret}}
        site = a_site(tmp_path, connections={"events": binding})
        assert refusal(site, inputs={"a": {"connection": "events"}}).code is RefusalCode.SECRET


def test_outputs_of_two_attempts_never_share_a_place(tmp_path: Path) -> None:
    site = a_site(tmp_path)
    first = a_work(["true"], outputs={"model": {"connection": "models", "path": "best"}})
    second = a_work(
        ["true"], operation=first.operation, counter=2, outputs={"model": {"connection": "models", "path": "best"}}
    )
    places = [resolve(site, work).outputs["model"] for work in (first, second)]
    assert [place.path for place in places] == [
        f"best/{first.operation}/e1-1/model",
        f"best/{first.operation}/e1-2/model",
    ]


def test_only_a_complete_checkpoint_is_resumed_from(tmp_path: Path) -> None:
    site = a_site(tmp_path)
    sealed = tmp_path / "data/models/op/e1-1/sealed-1"
    sealed.mkdir(parents=True)
    (sealed / "manifest.json").write_text('{"files": {"w": {"bytes": 3}}}')
    work = a_work(["true"], checkpoints={"connection": "models"})
    resumed = replace(work, "op/e1-1/sealed-1/manifest.json")
    with pytest.raises(RefusedError, match="cannot be read"):
        resolve(site, resumed)
    (sealed / "w").write_text("12")
    with pytest.raises(RefusedError, match="not complete"):
        resolve(site, resumed)
    (sealed / "w").write_text("123")
    assert resolve(site, resumed).resume_from == sealed


def seal(attempt: Path, name: str, *, sealed_ns: int) -> Path:
    made = attempt / f"sealed-{name}"
    made.mkdir(parents=True)
    (made / "w").write_text("123")
    (made / "manifest.json").write_text('{"files": {"w": {"bytes": 3}}}')
    os.utime(made / "manifest.json", ns=(sealed_ns, sealed_ns))
    return made


def test_what_was_sealed_without_the_centre_is_gone_on_from(tmp_path: Path) -> None:
    site = a_site(tmp_path)
    work = a_work(["true"], operation="op", counter=3, checkpoints={"connection": "models", "path": "run"})
    place = tmp_path / "data/models/run/op"
    assert resolve(site, work).resume_from is None

    heard_of = seal(place / "e1-1", "1", sealed_ns=10)
    named = replace(work, "run/op/e1-1/sealed-1/manifest.json")
    assert resolve(site, named).resume_from == heard_of

    unheard = seal(place / "e1-1", "2", sealed_ns=20)
    assert resolve(site, named).resume_from == unheard
    assert resolve(site, work).resume_from == unheard

    later = seal(place / "e1-2", "1", sealed_ns=5)  # a later attempt counts more than its clock
    seal(place / "e1-2", "2", sealed_ns=30).joinpath("w").unlink()  # not complete
    seal(place / "e1-3", "1", sealed_ns=40)  # this attempt's own
    outside = seal(tmp_path / "elsewhere", "9", sealed_ns=50)
    (place / "e1-2" / "sealed-9").symlink_to(outside)  # leads out of the connection
    assert resolve(site, named).resume_from == later


def replace(work: Any, resume_from: str) -> Any:
    from msgspec.structs import replace as changed

    return changed(work, resume_from=resume_from)


@given(path=st.text(max_size=40) | st.lists(st.sampled_from(["..", ".", "a", "", "/", "b\\", "~"])).map("/".join))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_path_leaves_its_connection(tmp_path: Path, path: str) -> None:
    site = a_site(tmp_path)
    root = tmp_path / "data/models"
    try:
        place = site.place("models", path, write=True)
    except RefusedError:
        return
    except (OSError, ValueError) as error:
        raise AssertionError(f"{path!r} is neither placed nor refused") from error
    assert Path(os.path.realpath(place)).is_relative_to(root)
