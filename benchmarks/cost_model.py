"""Tells how well learned cost models rank schedules: ``python benchmarks/cost_model.py rows.jsonl``.

The rows are those of ``cost_data.py``. Two ways of learning are compared with the analytic model alone:

- before anything of a compute is measured, from random computes; the named ones of ``te_computes.py`` are held out, and
  so is, in turn, each target;
- while tuning, from half of a compute's schedules; the other half is held out.

Told of each are the share of ``pairs`` of schedules, of times that differ by a tenth, that are put in order; Spearman's
``rank`` correlation of predicted and measured times, the mean of computes; and the ``loss``: how many times as long as
the fastest the first choice takes, the geometric mean, and the largest. ``--learner lightgbm`` learns by LightGBM.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from loopwright.schedules.auto.learned.boosted_trees import BoostedTrees, BoostingOptions
from loopwright.schedules.auto.learned.cost_correction import FEW, training_values

Floats = npt.NDArray[np.float64]
Predict = Callable[[Floats], Floats]
SURE = 1.1
"""Times that differ by less are no pair."""
OPTIONS, LEAST_HALF = BoostingOptions(), 5


@dataclass(frozen=True)
class Group:
    """The schedules of a compute on a target."""

    compute: str
    target: str
    features: Floats
    cycles: Floats
    seconds: Floats


def read(path: Path) -> list[Group]:
    """The groups of a file that have something to rank."""
    text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()
    found: dict[tuple[str, str], list[dict]] = {}
    for line in text.splitlines():
        row = json.loads(line)
        found.setdefault((row["compute"], row["target"]), []).append(row)
    return [
        Group(
            *key,
            np.array([row["features"] for row in rows]),
            np.array([row["cycles"] for row in rows]),
            np.maximum([row["seconds"] for row in rows], 1e-8),
        )
        for key, rows in found.items()
        if len(rows) > 2
    ]


def training_rows(groups: Sequence[Group]) -> tuple[Floats, Floats, Floats]:
    """Features, what is learned, and weights."""
    learned = [training_values(group.seconds, group.cycles) for group in groups]
    return (
        np.concatenate([group.features for group in groups]),
        np.concatenate([values for values, _ in learned]),
        np.concatenate([weights for _, weights in learned]),
    )


def trees(groups: Sequence[Group]) -> Predict:
    return BoostedTrees.fit(*training_rows(groups), OPTIONS).predict


def trees_of_few(group: Group) -> Predict:
    """Trees as they grow while tuning."""
    return BoostedTrees.fit(*training_rows([group]), FEW).predict


def lightgbm(groups: Sequence[Group]) -> Predict:
    return _lightgbm(groups, 300, num_leaves=15, learning_rate=0.05, min_data_in_leaf=8, feature_fraction=0.5)


def lightgbm_of_few(group: Group) -> Predict:
    """LightGBM with the options of ``trees_of_few``."""
    few = {"min_data_in_leaf": 2, "min_data_in_bin": 1, "lambda_l2": FEW.shrink, "feature_fraction": FEW.columns}
    return _lightgbm([group], FEW.trees, num_leaves=2**FEW.depth, learning_rate=FEW.rate, **few)


def _lightgbm(groups: Sequence[Group], trees: int, **options: float) -> Predict:
    import lightgbm

    rows, values, weights = training_rows(groups)
    more = {"objective": "regression", "verbose": -1, "num_threads": 1, "deterministic": True}
    return lightgbm.train({**options, **more}, lightgbm.Dataset(rows, values, weight=weights), trees).predict


def analytic(groups: Sequence[Group]) -> Predict:
    return lambda rows: np.zeros(len(rows))


def told(label: str, predict: Predict, groups: Sequence[Group]) -> None:
    found = [(group, np.log2(group.cycles) + predict(group.features)) for group in groups]
    print(f"{label:58} {summary(found)}")


def summary(found: Sequence[tuple[Group, Floats]]) -> str:
    """How well predictions rank the schedules of groups."""
    pairs, ranks, losses = [], [], []
    for group, predicted in found:
        slower = group.seconds[:, None] > SURE * group.seconds[None]
        if slower.any():
            pairs.append(float((predicted[:, None] > predicted[None])[slower].mean()))
        ranks.append(np.corrcoef(_ranks(predicted), _ranks(group.seconds))[0, 1])
        losses.append(group.seconds[predicted.argmin()] / group.seconds.min())
    return (
        f"{len(found):4} groups: pairs {np.mean(pairs):.3f}, rank {np.nanmean(ranks):.3f}, "
        f"loss {np.exp(np.log(losses).mean()):.3f}, at most {max(losses):.2f}"
    )


def _ranks(values: Floats) -> npt.NDArray[np.int64]:
    return np.argsort(np.argsort(values))


def told_of_halves(learn: Callable[[Group], Predict], groups: Sequence[Group], label: str) -> None:
    """Learn from half of each compute's schedules, and rank the other half."""
    rng, halves = np.random.default_rng(0), []
    for group in groups:
        order = rng.permutation(len(group.seconds))
        middle = len(order) // 2
        if middle >= LEAST_HALF:
            halves.append((part(group, order[:middle]), part(group, order[middle:])))
    for name, predict in (("analytic", lambda known: lambda rows: np.zeros(len(rows))), (label, learn)):
        found = [(other, np.log2(other.cycles) + predict(known)(other.features)) for known, other in halves]
        print(f"{f'half of the schedules, {name}':58} {summary(found)}")


def part(group: Group, at: npt.NDArray[np.int64]) -> Group:
    return Group(group.compute, group.target, group.features[at], group.cycles[at], group.seconds[at])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", type=Path)
    parser.add_argument("--learner", choices=["trees", "lightgbm"], default="trees")
    options = parser.parse_args()
    groups = read(options.rows)
    random_ones = [group for group in groups if group.compute.startswith("random ")]
    named = [group for group in groups if group not in random_ones]
    learn = {"trees": trees, "lightgbm": lightgbm}[options.learner]
    learn_few = {"trees": trees_of_few, "lightgbm": lightgbm_of_few}
    learned = learn(random_ones)
    for target in sorted({group.target for group in groups}):
        own = [group for group in named if group.target == target]
        others = learn([group for group in random_ones if group.target != target])
        told(f"{target}, named computes, analytic", analytic(groups), own)
        told(f"{target}, named computes, {options.learner}", learned, own)
        told(f"{target}, named computes, {options.learner} of other targets", others, own)
    told("all targets, named computes, analytic", analytic(groups), named)
    told(f"all targets, named computes, {options.learner}", learned, named)
    told_of_halves(learn_few[options.learner], groups, options.learner)


if __name__ == "__main__":
    main()
