"""NATS, Postgres, Redis and every service on one machine."""
