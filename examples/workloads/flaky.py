"""Fail on the first attempt and succeed on the second, as work on shaky infrastructure does."""

import os
import sys

attempt = int(os.environ["LANDBRIDGE_ATTEMPT"])
print(f"attempt {attempt}", flush=True)
sys.exit(1 if attempt == 1 else 0)
