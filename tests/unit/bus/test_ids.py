from uuid import UUID

from landbridge.bus.ids import new_event_id, new_event_ids


def test_event_ids_are_uuid_version_7() -> None:
    for text in new_event_ids(50):
        found = UUID(text)
        assert (found.version, str(found)) == (7, text)
        assert found.variant == "specified in RFC 4122"


def test_event_ids_ascend_within_a_process_even_beyond_a_millisecond_of_counter() -> None:
    ids = [*new_event_ids(10_000), new_event_id(), *new_event_ids(10)]
    assert ids == sorted(ids)
    assert len(set(ids)) == len(ids)
