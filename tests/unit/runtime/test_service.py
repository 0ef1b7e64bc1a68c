"""What a service says of itself without anything around it."""

from landbridge.runtime.service import Service
from landbridge.runtime.settings import Settings


class Plain(Service):
    """Neither Postgres nor streams: it only shows what others know."""

    name = "dashboard"
    uses_postgres = False


class ConnectedBus:
    def healthy(self) -> bool:
        return True


async def test_a_service_without_loops_and_postgres_is_alive() -> None:
    service = Plain(Settings())
    service.bus = ConnectedBus()  # type: ignore[assignment]
    service.health.add_live("loops", service._stuck_loops)
    report = await service.health.livez()
    assert report.healthy, report.text(verbose=True)
