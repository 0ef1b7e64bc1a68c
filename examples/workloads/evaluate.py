"""Evaluate the newest published churn model on the validation rows."""

import os
import sys
from pathlib import Path

import numpy as np
from train import auc, load

from landbridge.client import workload


def main() -> int:
    folder = Path(os.environ["LANDBRIDGE_INPUT_MODEL"])
    found = sorted(folder.rglob("model.npz"), key=lambda file: file.stat().st_mtime)
    if not found:
        print(f"no model.npz below {folder.name}: has churn-train completed here?", file=sys.stderr)
        return 3
    weights = np.load(found[-1])["weights"]
    features, label = load(Path(os.environ["LANDBRIDGE_INPUT_EVENTS"]))
    split = len(label) * 4 // 5
    score = auc(features[split:] @ weights, label[split:])
    workload.log_metric("auc", score)
    report = Path(os.environ["LANDBRIDGE_OUTPUT_REPORT"])
    report.mkdir(parents=True, exist_ok=True)
    (report / "evaluation.txt").write_text(f"auc {score:.4f} on {len(label) - split} rows\n")
    print(f"auc {score:.4f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
