"""A stand-in for making keys: a broker without authentication."""

import os

from landbridge_embedded.layout import DataDirectory
from landbridge_embedded.process import write_private


def main() -> int:
    write_private(DataDirectory.locate(os.environ["LANDBRIDGE_DATA"]).broker_accounts, "")
    return 0
