"""Whole models beside onnxruntime and OpenVINO, at batch 1 in float32: ``python benchmarks/models.py``.

The nine light models of the onnx package with seeded weights, and a ViT, a BERT and a MobileNetV2. All of them take
about 20 minutes; ``--only``, ``--json``, ``--resume`` and ``--minutes`` do it in parts. Beside what is compiled by
default stand direct arithmetic, strict precision, choices blind to the batch, of models that hold for several, and open
dimensions.
Beside times: how long it takes to compile from nothing and to load, and the most memory, each in a process of its own;
``--no-costs`` leaves that out.
"""

from __future__ import annotations

import functools
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import costs
import model_graphs
import onnx
from cases import Bar, Work, work_of
from cases.case import write
from comparison import HERE, compare, option_parser
from report import print_costs
from results import BESIDE, Record

sys.path.append(str(HERE.parent / "examples"))
from support import light_models

PEERS = ("onnxruntime", "openvino")
BARS: Mapping[str, float] = {"vgg19": 2.2}
"""How much faster than the best peer; of the others each 1.0, and all of them in the geometric mean ``MEAN``."""


@dataclass(frozen=True)
class Model:
    """A case that is a whole model. Its files are written once, in a folder that outlives the measurement."""

    name: str
    make: Callable[[], onnx.ModelProto] = field(compare=False)
    group: str = "model"
    overhead: str | None = None
    against: str | None = None

    @property
    def full_name(self) -> str:
        return f"{self.group} {self.name}"

    @property
    def bar(self) -> Bar:
        return Bar(BARS.get(self.name, 1.0))

    def write(self, folder: Path) -> Work:
        model = self.make()
        drop_weights_from_inputs(model)
        write(folder, model, model_graphs.feeds(model))
        return work_of(onnx.shape_inference.infer_shapes(model))


def drop_weights_from_inputs(model: onnx.ModelProto) -> None:
    """Old models list weights as inputs too, which a caller may replace: no runtime could fold or pack them."""
    stored = {initializer.name for initializer in model.graph.initializer}
    for info in [i for i in model.graph.input if i.name in stored]:
        model.graph.input.remove(info)
    model.ir_version = max(model.ir_version, 4)  # the first whose weights need not be inputs


def all_models() -> list[Model]:
    """The light ones give the tensor before the softmax."""
    random = functools.partial(light_models.with_random_weights, intermediates=0)
    light = (Model(name, functools.partial(random, name)) for name in light_models.names())
    built = (Model(make.__name__, make) for make in (model_graphs.vit, model_graphs.bert, model_graphs.mobilenet_v2))
    return [*light, *built]


def measure_costs(models: Sequence[Model], record: Record, resume: bool) -> None:
    """Each in a process of its own, ours with an empty cache."""
    for model in models:
        if resume and model.name in record.costs:
            continue
        with tempfile.TemporaryDirectory() as folder:
            model.write(Path(folder))
            found = {kind: costs.measured(kind, Path(folder)) for kind in costs.KINDS}
        record.note_costs(model.name, {kind: cost for kind, cost in found.items() if cost})
        print(
            f"{model.name}: " + ", ".join(f"{kind} {c['seconds']:.2f} s" for kind, c in found.items() if c), flush=True
        )


def main() -> None:
    parser = option_parser(__doc__.splitlines()[0])
    parser.add_argument("--no-costs", action="store_true", help="leave out compile time, load time and memory")
    parser.add_argument("--costs", action="store_true", help="measure these alone")
    options = parser.parse_args()
    models = [m for m in all_models() if not options.only or any(part in m.full_name for part in options.only)]
    if options.list:
        print(*(model.full_name for model in models), sep="\n")
        return
    if options.costs:
        options.threads = []
    record = compare(options, models, [*PEERS, *BESIDE], "models")
    if not options.no_costs:
        measure_costs(models, record, options.resume)
        print_costs(record.costs)


if __name__ == "__main__":
    main()
