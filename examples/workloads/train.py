"""Train a churn model: logistic regression by gradient descent, with checkpoints and a metric.

Reads every CSV file of the input `events`, keeps the last fifth of the rows for validation, seals a checkpoint
every few epochs and resumes from the newest one after an interruption.
"""

import argparse
import os
import time
from pathlib import Path

import numpy as np

from landbridge.client import workload


def load(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """All rows as (features, label), features standardised."""
    rows = np.concatenate([np.loadtxt(f, delimiter=",", skiprows=1) for f in sorted(folder.glob("*.csv"))])
    features, label = rows[:, :-1], rows[:, -1]
    features = (features - features.mean(axis=0)) / (features.std(axis=0) + 1e-9)
    return np.hstack([features, np.ones((len(features), 1))]), label


def auc(score: np.ndarray, label: np.ndarray) -> float:
    """Area under the ROC curve by the rank-sum formula."""
    order = score.argsort()
    ranks = np.empty(len(score))
    ranks[order] = np.arange(1, len(score) + 1)
    positive = label == 1
    count = positive.sum()
    return float((ranks[positive].sum() - count * (count + 1) / 2) / (count * (len(label) - count)))


def resume(width: int) -> tuple[np.ndarray, int]:
    """Weights and epoch to go on from: the sealed checkpoint, else zeros."""
    source = os.environ.get("LANDBRIDGE_RESUME_FROM", "")
    if source and (Path(source) / "weights.npz").exists():
        saved = np.load(Path(source) / "weights.npz")
        print(f"resuming after epoch {int(saved['epoch'])}", flush=True)
        return saved["weights"], int(saved["epoch"])
    return np.zeros(width), 0


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--lr", type=float, default=0.1)
    options.add_argument("--epochs", type=int, default=60)
    options.add_argument("--pause", type=float, default=0.02, help="seconds of waiting per epoch, to look like work")
    args = options.parse_args()

    features, label = load(Path(os.environ["LANDBRIDGE_INPUT_EVENTS"]))
    split = len(label) * 4 // 5
    weights, done = resume(features.shape[1])
    checkpoints = Path(os.environ["LANDBRIDGE_CHECKPOINT_DIR"]) if "LANDBRIDGE_CHECKPOINT_DIR" in os.environ else None
    for epoch in range(done + 1, args.epochs + 1):
        probability = 1 / (1 + np.exp(-features[:split] @ weights))
        weights = weights - args.lr * features[:split].T @ (probability - label[:split]) / split
        if epoch % 20 == 0:
            score = auc(features[split:] @ weights, label[split:])
            workload.log_metric("auc", score, step=epoch)
            print(f"epoch {epoch}: auc {score:.4f}", flush=True)
            if checkpoints is not None:
                np.savez(checkpoints / "weights.npz", weights=weights, epoch=epoch)
                workload.seal_checkpoint(["weights.npz"], step=epoch)
        time.sleep(args.pause)
    output = Path(os.environ["LANDBRIDGE_OUTPUT_MODEL"])
    output.mkdir(parents=True, exist_ok=True)
    np.savez(output / "model.npz", weights=weights)
    print("model written", flush=True)


if __name__ == "__main__":
    main()
