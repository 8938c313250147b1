"""What callers of an exported model give at each run: all inputs, outputs and dimensions but those of its states."""

from __future__ import annotations

from ...artifact.extents import dimensions_in, evaluate
from ...artifact.model import CompiledModel
from ...base.errors import ModelError
from ...base.state import State
from ..stage_memory import plan_stage


def given_inputs(model: CompiledModel) -> list[int]:
    """The positions of the inputs that callers give."""
    states = {state.input for state in model.states}
    return [number for number in range(len(model.inputs)) if number not in states]


def given_outputs(model: CompiledModel) -> list[int]:
    """The positions of the outputs that callers get."""
    states = {state.output for state in model.states}
    return [number for number in range(len(model.outputs)) if number not in states]


def arena_bytes(model: CompiledModel) -> int | None:
    """The bytes that a context takes when it is made, so that no run asks for more: where dimensions are known, or have
    bounds. None where only runs tell."""
    if model.is_staged:
        return None
    size, largest = plan_stage(model.first_stage).size, model.largest_dims
    if isinstance(size, int):
        return size
    return None if largest is None else evaluate(size, largest)


def grown_axis(state: State) -> int | None:
    """The axis, in the order of native code, along which a state grows."""
    return 0 if state.in_place and state.axis is not None else state.axis


def dims_of_states(model: CompiledModel) -> dict[str, tuple[int, int]]:
    """The dimensions that states tell, and no other input: of which state, and on which axis there."""
    told = _told(model)
    found: dict[str, tuple[int, int]] = {}
    for number, state in enumerate(model.states):
        for axis, extent in enumerate(model.inputs[state.input].shape):
            if isinstance(extent, str) and extent not in told:
                found.setdefault(extent, (number, axis))
    return found


def check_states(model: CompiledModel) -> None:
    """Raise ``ModelError`` for states that an export cannot keep: of which nobody says how large they are at first, and
    whose size only a run knows."""
    told = _told(model)
    late = {output.number for stage in model.body.stages for output in stage.outputs}
    for state in model.states:
        spec, grows = model.inputs[state.input], grown_axis(state)
        for axis, extent in enumerate(spec.shape):
            unknown = [name for name in dimensions_in(extent) if name not in told]
            if unknown and not (axis == grows and extent == unknown[0]):
                raise ModelError(_refusal(model, f"no input tells the extent {unknown[0]} of the state {spec.name}"))
        if state.output in late:
            raise ModelError(_refusal(model, f"only a run knows the size of the state {spec.name}"))


def _told(model: CompiledModel) -> set[str]:
    """The dimensions that are extents of what callers give."""
    shapes = [model.inputs[number].shape for number in given_inputs(model)]
    return {extent for shape in shapes for extent in shape if isinstance(extent, str)}


def _refusal(model: CompiledModel, reason: str) -> str:
    return (
        f"{model.name} cannot be exported with its states, since {reason}: compile it without state=, so that callers "
        "hand the states on"
    )
