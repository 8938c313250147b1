"""Engines run compiled models: init, set_input, run, get_output; or all four in one call.

Mutable: an engine loads its code and makes its executors once, under a lock; these serve one call each at a time.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, NoReturn

from ..base.brief import one_line
from ..base.errors import RuntimeArgumentError
from ..base.memory import memory_errors, memory_limit
from ..base.quantities import count_text
from ..base.weak_method import weak_method, while_alive
from .arrays import Array
from .bound_engine import BoundEngine
from .executor import Executor, Place, context_of
from .executor_config import ExecutorConfig, executor_configs
from .executor_set import ExecutorSet, Result
from .held_memory import HeldMemory
from .library import Library
from .make_executors import make_executors
from .memory_budget import MemoryBudget
from .memory_use import Loading, MemoryUse, memory_use
from .outputs import RunOutputs
from .request import Request
from .session import Session
from .signature import Signature, Values
from .tactics.choice import ChosenTactics, Select, TacticChoice
from .tactics.tactic import TacticRegistry, tactics
from .tensor_specs import TensorSpecs
from .threads.default_threads import check_threads
from .threads.fork_lock import ForkLock
from .tiered import PlainExecutors, TieredLibrary

if TYPE_CHECKING:
    from .measure.compare import Comparison, SteppedRun
    from .measure.onnx_reference import Reference
    from .measure.profile import Profile


class Engine:
    """Runs a library. ``engine({"x": x})`` gives the outputs as new arrays; several threads may call it. Inputs are a
    mapping by name, or a list or tuple in order; an array by itself is the input of a model that has one only. An input
    or output that is a sequence is a list of arrays, one that is absent None. Outputs are a list that answers names
    too, as ``outputs["logits"]``; ``inputs`` and ``outputs`` tell what there is.

    The four phases, for callers that set inputs one by one: ``init`` loads the code and allocates the arena,
    ``set_input`` names an input by name or position, ``run`` computes, ``get_output`` gives an array. They act on the
    engine's own request; threads that want phases have a ``request()`` each.

    Inputs are numpy or DLPack arrays of exactly the dtype and shape that ``inputs`` states, where a symbolic dimension
    may be any number that is the same wherever the dimension stands; others are a ``RuntimeArgumentError``. Strings
    are numpy arrays of ``object``, ``str`` or ``StringDType``, and come as arrays of ``object``. They are read
    where they are, and never written. ``out`` are buffers for the outputs, by name or in order; without it outputs
    are new arrays.

    ``executors`` is how many calls run at once, each with an arena and threads of its own, or a list of their
    ``ExecutorConfig``; further calls wait. ``threads`` is the most that a run uses, of the engine or of a call; without
    it, an equal part of what the environment says, else of the cpus granted. An arena grows to the largest shapes met;
    the plans of the last sets of shapes are kept. ``tactics`` may serve calls instead of compiled code: see
    ``init``. A library for another machine is a ``TargetError`` there.

    ``memory`` is how many bytes weights, arenas, outputs and kernels of all executors may take together; what would
    take more is an ``OutOfMemoryError`` before anything is allocated. Without it, ``LOOPWRIGHT_MEMORY_LIMIT`` says so
    (``"24G"``), else it is 80 % of what the cgroup grants, or the machine has. An arena of which none of the last 1,000
    calls used a quarter is given back, and ``trim`` gives back all that no run uses.
    """

    def __init__(
        self,
        library: Library,
        *,
        executors: int | Sequence[ExecutorConfig] = 1,
        threads: int | None = None,
        tactics: TacticRegistry = tactics,
        memory: int | None = None,
    ) -> None:
        if not isinstance(library, Library):
            raise RuntimeArgumentError(
                f"an engine runs what lw.compile or lw.load gives, not a {type(library).__name__}"
            )
        self.library = library
        self._configs = executor_configs(executors, threads)
        self._budget = MemoryBudget(library.shown.name, memory_limit(memory))
        self._signature = Signature(library.shown)
        self._registry = tactics
        self._keeps_state = bool(library.shown.states)
        self._sessions: weakref.WeakSet[Session] = weakref.WeakSet()
        self._lock = ForkLock()
        self._executors: ExecutorSet | None = None
        self._tactics: list[ChosenTactics] = []
        self._request = Request(self._signature, weak_method(self._run_phase))
        self._plain: PlainExecutors | None = None
        self._may_run = False
        plain = library.plain if isinstance(library, TieredLibrary) else None
        if plain is not None:
            self._plain = PlainExecutors(plain, self._signature, weak_method(self._ready))

    def __repr__(self) -> str:
        made = self._executors
        state = one_line("; ".join(map(str, made.executors)), 130) if made is not None else "not loaded"
        return f"<Engine {one_line(self._signature.name, 40)}, {count_text(len(self._configs), 'executor')}: {state}>"

    def _repr_html_(self) -> str | None:
        if self._is_plain:
            return None  # what shows it takes its `repr`
        executors = () if self._executors is None else self._executors.executors
        from .engine_html import engine_html  # it knows engines

        return engine_html(self.library, self._configs, executors, self.tactics)

    def __reduce__(self) -> NoReturn:
        raise RuntimeArgumentError(
            "an engine holds code, memory and threads of this process, and is neither pickled nor copied: pickle "
            "engine.library, or library.save(path) and lw.load(path), and make an engine of the library there"
        )

    def init(self, select: Select | None = None, records: str | os.PathLike[str] | None = None) -> Engine:
        """Load the machine code, allocate the arenas, and choose the tactics. A call of the engine does it by itself
        where it is missing.

        A call of an operator for which ``tactics`` has others than the compiled code gets the one that the executor
        prefers, else the cheapest by the file of ``records``, else the one of highest priority. ``select="measure"``
        measures those that have no record first, and adds that to the file. While a library is being compiled that
        plain code serves, only a choice of tactics waits for that.
        """
        self._may_run = True
        if select is None and records is None and self._is_plain:
            return self
        return self._load(select, records)

    @property
    def _is_plain(self) -> bool:
        """Whether plain code serves calls: until the library is compiled, and for ever if that fails."""
        return self._plain is not None and self._executors is None and not self.library.is_compiled

    def _load(self, select: Select | None = None, records: str | os.PathLike[str] | None = None) -> Engine:
        with self._lock.held:
            if self._executors is None:
                with memory_errors(f"loading {self.library.model.name}"):
                    choice = TacticChoice(self.library.model, self._registry, select, records)
                    executors = make_executors(self.library.model, self._signature, self._configs, choice, self._budget)
                self._tactics = [chosen for _, chosen in executors]
                self._executors = ExecutorSet([executor for executor, _ in executors], self.library.model.name)
                self._plain = None  # its weights are needed no longer
                self._budget.reclaim = while_alive(self._executors.trim)
            elif select is not None or records is not None:
                raise RuntimeArgumentError(f"{self.library.model.name} is initialised: its tactics are chosen already")
        return self

    @property
    def inputs(self) -> TensorSpecs:
        """Name, dtype and shape of each input, in order and by name; dimensions that are open have names."""
        return self._signature.inputs

    @property
    def outputs(self) -> TensorSpecs:
        """Name, dtype and shape of each output, in order and by name."""
        return self._signature.outputs

    @property
    def tactics(self) -> Mapping[str, str]:
        """The names of the tactics that the first executor has for functions of which several serve, by the symbols of
        these; empty before ``init``."""
        return dict(self._tactics[0].names) if self._tactics else {}

    def request(self) -> Request:
        """Inputs and outputs for one thread, with the phases ``set_input``, ``run`` and ``get_output``; of a model that
        keeps states, with states of its own."""
        return Request(self._signature, self.session().run_arrays if self._keeps_state else self._run_phase)

    def session(self) -> Session:
        """Runs one after the other of a model that was compiled with ``state=``, which keep its states in memory."""
        if not self._keeps_state:
            raise RuntimeArgumentError(
                f"{self._signature.name} keeps no state: compile it with state=, as in "
                "lw.compile(…, state={'present': 'past'})"
            )
        self._ready()
        session = Session(self.library.model, self._signature, self._run_placed, self._budget)
        self._sessions.add(session)
        return session

    @property
    def states(self) -> TensorSpecs:
        """Name, dtype and shape of each state that sessions keep, by the names of the inputs; none of most models."""
        return self.library.states

    def set_input(self, key: str | int, value: object) -> None:
        """Give an input. The array is read when the engine runs, not copied here; it must be contiguous."""
        self._request.set_input(key, value)

    def run(self, out: Values | None = None, threads: int | None = None) -> None:
        """Compute the outputs from the inputs that were set. Raises ``RuntimeArgumentError`` before ``init``, and if an
        input is missing."""
        self._request.run(out, threads)

    def get_output(self, key: str | int = 0) -> Array:
        """An output of the last run, by name or position. Raises ``RuntimeArgumentError`` if there is none."""
        return self._request.get_output(key)

    def __call__(self, inputs: Values, out: Values | None = None, threads: int | None = None) -> RunOutputs:
        """The outputs for inputs given by name, in order, or, of a model that has one, by itself. What ``set_input``
        and ``run`` did stays."""
        if self._keeps_state:
            raise self._needs_session()
        arrays = self._signature.input_arrays(inputs)
        context = None if threads is None else context_of(check_threads(threads))
        return (self._executors or self._serving()).run(arrays, out, context)

    def submit(self, inputs: Values, out: Values | None = None, threads: int | None = None) -> Future[RunOutputs]:
        """Run it on a thread of the engine's, as soon as an executor is free. Inputs that do not fit raise here."""
        arrays = self._input_arrays(inputs)
        context = None if threads is None else context_of(check_threads(threads))
        return self._serving().submit(arrays, out, context)

    async def run_async(self, inputs: Values, out: Values | None = None, threads: int | None = None) -> RunOutputs:
        """The outputs, for coroutines: others go on meanwhile."""
        import asyncio  # takes longer to import than some models to load

        return await asyncio.wrap_future(self.submit(inputs, out, threads))

    def bind(self, inputs: Values) -> BoundEngine:
        """The engine with its inputs checked once, and kept: calling the result runs it on them again and again, and
        gives the same output arrays, written anew. The inputs must not be resized in place, and have the extents that
        the code takes: none is repeated, as a call does with one that is 1 long where another input has a number."""
        arrays = self._input_arrays(inputs, repeat=False)
        executors = self._ready()
        strings = self._signature.gives_strings
        outputs = None if strings else executors.use(lambda executor: executor.new_outputs(arrays))
        runs = {executor: executor.bind(arrays, outputs) for executor in executors.executors}
        return BoundEngine(self._signature, executors, runs, outputs)

    def memory(self) -> HeldMemory:
        """The bytes that the engine holds now, what of that is used, and the most that it claimed at once."""
        executors = () if self._executors is None else self._executors.executors
        weights = self._budget.weights if executors else 0
        sessions = list(self._sessions)
        held = weights + sum(each.held_bytes for each in executors) + sum(each.nbytes for each in sessions)
        used = weights + sum(each.used_bytes for each in executors) + sum(each.used_bytes for each in sessions)
        return HeldMemory(held, used, self._budget.largest if executors else 0, self._budget.limit)

    def trim(self) -> None:
        """Give back the memory for intermediates of all executors that are free; weights stay, and so do outputs and
        the states of sessions. The next call has it anew."""
        if self._executors is not None:
            self._executors.trim()

    def planned_memory(self, shapes: Mapping[str, Sequence[int]] | None = None) -> MemoryUse:
        """The bytes of weights, arenas, code and outputs, and of what kernels take, known before the engine runs;
        ``shapes`` are those of the inputs, for models that leave dimensions open; where all of these have largest
        values, those are the default. From ``init`` on it is of the
        compiled code that was chosen, before of the model's own."""
        codes = [chosen.codes for chosen in self._tactics] or [{}] * len(self._configs)
        loadings = [
            Loading(number if config.has_own_pool else config.cores, config.threads or 1, code)
            for number, (config, code) in enumerate(zip(self._configs, codes, strict=True))
        ]
        return memory_use(self.library.model, loadings, shapes)

    def time_steps(self, inputs: Values) -> tuple[float, ...]:
        """Seconds that each of ``library.model.steps`` takes, its kernel called by itself: the least of some runs."""
        arrays = self._input_arrays(inputs)
        return self._ready().use(lambda executor: executor.time_steps(arrays))

    def profile(self, inputs: Values) -> Profile:
        """Where the time of a call goes: each fused function beside the machine's peak and bandwidth of these seconds,
        and what the call takes around them. Takes about a second, and some hundred calls of the model, all on the first
        executor."""
        from .measure.measure_profile import measure_profile

        arrays = self._input_arrays(inputs)
        model = self.library.model

        def measure(executor: Executor) -> Profile:
            alone = ExecutorSet([executor], model.name)

            def call() -> float:
                return executor.seconds_in_code(lambda: alone.run(self._signature.input_arrays(inputs), None, None))

            return executor.by_steps(
                arrays,
                lambda steps, slots: measure_profile(
                    model, executor.config.threads or 1, model.dims_in(slots), self.tactics, call, steps
                ),
            )

        profile = self._ready().use_first(measure)
        self.library.shares = {function.symbol: function.share for function in profile.functions}
        return profile

    def compare(self, inputs: Values, reference: Reference = "onnx", tolerance: float | None = None) -> Comparison:
        """Where the model leaves a reference: its fused functions run one by one, and each value that they leave, and
        that the reference has by that name, is compared. ``print`` it; ``first`` is the first one beyond ``tolerance``,
        which is relative to the largest magnitude in the reference's value (default: 1e-4, 3e-2 for floats of 16 bits).

        ``reference`` is an ONNX model, a path or ``ModelProto``, evaluated by onnxruntime where it is installed, else
        by the onnx package; ``"onnx"`` is the file that the library was compiled from. Or it is another library of the
        same model, or a function from inputs by name to values by name.
        Raises ``ModelError`` where it cannot be evaluated, or has no value in common with the model.
        """
        from .measure.compare import compare_steps

        arrays = self._input_arrays(inputs)
        named = self._signature.named(arrays)
        if isinstance(reference, Library):
            known: Mapping[str, Array] = Engine(reference).values(named)
        else:
            from .measure.onnx_reference import reference_values  # engines run without onnx

            known = reference_values(reference, named, self.library)
        return self._look(arrays, lambda steps: compare_steps(steps, known, tolerance))

    def values(self, inputs: Values) -> dict[str, Array]:
        """Copies of the values of the imported model, by name, that fused functions leave in memory."""
        from .measure.compare import collect_steps

        return self._look(self._input_arrays(inputs), collect_steps)

    def _input_arrays(self, inputs: Values, repeat: bool = True) -> list[Array]:
        if self._keeps_state:
            raise self._needs_session()
        return self._signature.input_arrays(inputs, repeat)

    def _needs_session(self) -> RuntimeArgumentError:
        names = ", ".join(self.states.names)
        return RuntimeArgumentError(
            f"{self._signature.name} keeps the state {names} from run to run, so runs belong to a session: "
            "session = engine.session(), then session(inputs) as often as you like"
        )

    def _run_placed(self, inputs: Sequence[Array], place: Place, threads: int | None) -> list[Array]:
        context = None if threads is None else context_of(check_threads(threads))
        return self._ready().use(lambda executor: executor.run_placed(inputs, place, context))

    def _look(self, arrays: Sequence[Array], look: Callable[[SteppedRun], Result]) -> Result:
        """What ``look`` gives for the steps of a run on these inputs."""
        from .measure.compare import SteppedRun

        def run(executor: Executor) -> Result:
            return executor.by_steps(arrays, lambda calls, slots: look(SteppedRun(self.library.model, calls, slots)))

        return self._ready().use(run)

    def _run_phase(self, inputs: Sequence[Array], out: Values | None, threads: int | None) -> RunOutputs:
        if self._keeps_state:
            raise self._needs_session()
        if self._executors is None and not self._may_run:
            raise RuntimeArgumentError(
                f"{self._signature.name} is not initialised: call engine.init() before run, which loads the code "
                "and allocates the arena"
            )
        return self._serving().run(inputs, out, None if threads is None else context_of(check_threads(threads)))

    def _serving(self) -> ExecutorSet | PlainExecutors:
        """What runs a call now."""
        plain = self._plain
        return plain if plain is not None and self._is_plain else self._ready()

    def _ready(self) -> ExecutorSet:
        """The executors of the compiled code, which is waited for."""
        if self._executors is None:
            self._load()
        assert self._executors is not None
        return self._executors
