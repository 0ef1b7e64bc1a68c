"""A stand-in for the preparation of Postgres and NATS."""


def main() -> int:
    print("nothing to prepare", flush=True)
    return 0
