"""Fixtures that every test may ask for."""

pytest_plugins = ["fixtures.postgres", "fixtures.redis", "fixtures.nats", "fixtures.bus", "fixtures.instance"]
