"""`env import-prices`: a section that goes into the contract as it is, and says what stays unknown."""

import shutil
from pathlib import Path

import yaml

from unit.cli.conftest import Run

FILES = Path(__file__).parents[2] / "fixtures" / "prices"
EXAMPLES = Path(__file__).parents[3] / "examples" / "environments"


def test_the_section_is_yaml_with_where_each_price_comes_from(run: Run) -> None:
    ran = run("env", "import-prices", str(FILES / "gpu-cloud.csv"), "--environment", "cloud-b", "--at", "2026-10-01")
    assert (ran.code, ran.err) == (0, "gpu-80gb-spot stays unknown: line 5 says so\n")
    assert yaml.safe_load(ran.out)["cost"]["perHour"] == {
        "gpu-80gb": 2.99,
        "gpu-40gb": 1.22,
        "gpu-24gb": 0,
        "cpu-general": 0.0425,
    }
    assert "gpu-24gb: 0  # paid in advance, line 7, capacity block, invoice 88120" in ran.out
    assert "# gpu-80gb-spot stays unknown: line 5 says so" in ran.out
    assert "# The first of these prices ends with 2026-12-31: import a newer list then." in ran.out
    assert yaml.safe_load(ran.out)["cost"]["ends"]["gpu-80gb"] == "2027-01-01T00:00:00Z", "the last day counts"


def test_put_into_the_contract_it_is_valid(run: Run) -> None:
    contract = yaml.safe_load((EXAMPLES / "cloud-b.yaml").read_text())
    name, classes = contract["metadata"]["name"], list(contract["spec"]["classes"])
    Path("prices.csv").write_text(
        "class,unit,currency,rate,source\n" + f'{classes[0]},hour,EUR,0.5,"list\n# of today"\n'
    )
    ran = run("env", "import-prices", "prices.csv", "--contract", str(EXAMPLES / "cloud-b.yaml"), "--out", "cost.yaml")
    assert ran.code == 0
    assert f"cost section of {name}" in ran.out
    contract["spec"] |= yaml.safe_load(Path("cost.yaml").read_text())
    assert contract["spec"]["cost"] == {"currency": "EUR", "source": "list # of today", "perHour": {classes[0]: 0.5}}
    Path("contract.yaml").write_text(yaml.safe_dump(contract))
    assert run("validate", "contract.yaml").code == 0


def test_all_problems_are_told_and_nothing_is_written(run: Run) -> None:
    shutil.copy(FILES / "broken.csv", "broken.csv")
    ran = run("env", "import-prices", "broken.csv", "--environment", "x", "--out", "cost.yaml")
    assert ran.code == 2
    assert "14 problems found" in ran.err
    assert "broken.csv:9: unit" in ran.err
    assert not Path("cost.yaml").exists()


def test_without_a_price_that_holds_the_section_is_empty(run: Run) -> None:
    Path("old.csv").write_text("class,unit,currency,rate,valid_until,source\ngpu-80gb,hour,EUR,2,2020-12-31,old\n")
    ran = run("env", "import-prices", "old.csv", "--environment", "x")
    assert yaml.safe_load(ran.out) == {"cost": {}}
    assert "gpu-80gb stays unknown: its price ended with 2020-12-31" in ran.err


def test_usage_is_checked(run: Run) -> None:
    Path("list.csv").write_text("class,unit,currency,rate,source\n")
    assert "--environment NAME or --contract FILE" in run("env", "import-prices", "list.csv").err
    other = run("env", "import-prices", "list.csv", "-e", "zz", "--contract", str(EXAMPLES / "cloud-b.yaml"))
    assert "expected the contract of zz, found that of cloud-b" in other.err
    assert "--at: expected a date" in run("env", "import-prices", "list.csv", "-e", "x", "--at", "soon").err
