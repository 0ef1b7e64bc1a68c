"""Sum a Parquet file of sales by country and write the result as Parquet."""

import os
from pathlib import Path

from pyarrow import parquet

from landbridge.client import workload


def main() -> None:
    table = parquet.read_table(os.environ["LANDBRIDGE_INPUT_SALES"])
    by_country = table.group_by("country").aggregate([("amount", "sum"), ("amount", "count")])
    output = Path(os.environ["LANDBRIDGE_OUTPUT_SUMMARY"])
    output.mkdir(parents=True, exist_ok=True)
    parquet.write_table(by_country, output / "by-country.parquet")
    workload.log_metric("rows", table.num_rows)
    print(f"{table.num_rows} rows, {by_country.num_rows} countries", flush=True)


if __name__ == "__main__":
    main()
