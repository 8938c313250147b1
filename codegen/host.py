"""Targets from what users write: ``"native"``, an LLVM cpu name, an ``llvm`` line, or what a distribution adds.

``base/target.py`` has the form of the text, ``base/target_kind.py`` what distributions add.
"""

from __future__ import annotations

import difflib
from dataclasses import replace
from functools import cache
from sysconfig import get_config_var

from ..base.errors import TargetError
from ..base.target import LLVM, Target, TargetOptions, parse_target_line
from ..base.target_kind import Provided, find_kind, known_kinds
from .features import FEATURES, check_together, implied_features, is_level, known_names
from .libraries import check_libraries
from .processor import Processor, this_processor

_KEYS = {"x86_64": "x86", "i686": "x86", "aarch64": "arm", "arm64": "arm", "riscv64": "riscv"}
_DEFAULT_CPU = {"x86_64": "x86-64", "riscv64": "generic-rv64"}
_TRIPLES = {"x86_64-linux-gnu": "x86_64-unknown-linux-gnu", "aarch64-linux-gnu": "aarch64-unknown-linux-gnu"}
"""By what Python calls the system that it was built for: LLVM's triples, where it need not be asked for them."""
_NO_CPUS = ("cuda", "gpu", "hip", "metal", "nvptx", "opencl", "rocm", "vulkan", "webgpu")
_DEFAULT_ATTRIBUTES = {"riscv64": ("+m", "+a", "+f", "+d", "+c")}
"""The generic RISC-V cpu has not even multiplication; every Linux distribution asks for these."""


def resolve_target(spec: str | Target | None = None) -> Target:
    """The target that ``spec`` describes; None means the machine at hand.

    A line that names neither triple nor cpu takes the host's; one that names a triple only, a generic cpu of it. A
    name that LLVM has no cpu for is looked up among the targets that installed distributions add. Raises
    ``TargetError`` for a cpu, feature or triple that LLVM does not know, with the closest names, and for a library that
    is unknown or missing.
    """
    if isinstance(spec, Target):
        return spec
    if spec is None:
        return host_target()
    if not isinstance(spec, str):
        raise TargetError(f'a target is a Target or its text, as in "native" or "x86-64-v3", not {spec!r}')
    if spec == "native":
        return host_target()
    options = parse_target_line(spec)
    check_libraries(spec, options.libs)
    provided = _provided(spec, options)
    if provided is not None:
        return _of_kind(provided, options)
    if options.cpu == "native" or (options.cpu is None and options.triple is None):
        return _amend(host_target(), options)
    return _named(options)


def _provided(spec: str, options: TargetOptions) -> Provided | None:
    """What a distribution adds under the name that the text begins with; None where the text is one of ours."""
    if options.kind != LLVM:
        found = find_kind(options.kind)
        if found is None:
            others = ", ".join(known_kinds())
            raise TargetError(
                f'target {spec!r}: options need the form "llvm -mcpu={options.kind} …", or the name of a target '
                f"that an installed distribution adds{f': {others}' if others else ''}"
            )
        return found
    name, triple = spec.strip(), process_triple()
    if options.cpu != name or name == "native" or is_level(triple, name) or name in known_names(triple).cpus:
        return None
    return find_kind(name)


def _of_kind(provided: Provided, options: TargetOptions) -> Target:
    """The target of a kind, with the changes of a target line."""
    kind = provided.kind
    merged = replace(
        options,
        triple=options.triple or kind.triple,
        cpu=kind.cpu if options.kind == LLVM else options.cpu or kind.cpu,
        attributes=kind.attributes + options.attributes,
    )
    try:
        base = _named(merged)
    except TargetError as error:
        raise TargetError(f"target {kind.name} of {provided.provider}: {error}") from None
    return replace(
        base,
        keys=(*kind.keys, *base.keys),
        l1_bytes=kind.l1_bytes or base.l1_bytes,
        l2_bytes=kind.l2_bytes or base.l2_bytes,
        kind=kind.name,
        provider=provided.provider,
    )


def _named(options: TargetOptions) -> Target:
    triple = options.triple or process_triple()
    arch = triple.split("-", 1)[0]
    cpu = options.cpu or _DEFAULT_CPU.get(arch, "generic")
    attributes = options.attributes
    if options.cpu is None:
        attributes = _DEFAULT_ATTRIBUTES.get(arch, ()) + attributes
    if attributes or not is_level(triple, cpu):
        names = known_names(triple)
        _check("cpu", cpu, names.cpus, triple)
        for attribute in attributes:
            _check("feature", attribute[1:], names.features, triple)
    if options.attributes:
        check_together(triple, cpu, ",".join(attributes))
    return Target(
        triple=triple,
        cpu=cpu,
        features=_features(triple, cpu, attributes),
        threads=options.threads,
        libs=options.libs,
        keys=_keys(triple),
    )


def _features(triple: str, cpu: str, attributes: tuple[str, ...]) -> frozenset[str]:
    """The features that matter and are on, and whatever else was asked for by name."""
    probed = implied_features(triple, cpu, ",".join(attributes))
    listed = FEATURES.get(triple.split("-", 1)[0], ())
    asked = {a[1:] for a in attributes if a[0] == "+" and a[1:] not in listed}
    refused = {a[1:] for a in attributes if a[0] == "-"}
    return (probed | asked) - refused


def _amend(target: Target, options: TargetOptions) -> Target:
    """The host's target with the changes of a target line."""
    if not options.attributes:
        kept = target.features
    else:
        names = known_names(target.triple)
        for attribute in options.attributes:
            _check("feature", attribute[1:], names.features, target.triple)
        base = tuple(f"+{name}" for name in sorted(target.features))
        check_together(target.triple, target.cpu, ",".join((*base, *options.attributes)))
        kept = _features(target.triple, target.cpu, (*base, *options.attributes))
    amended = Target(
        triple=target.triple,
        cpu=target.cpu,
        features=kept,
        threads=options.threads,
        libs=options.libs,
        keys=target.keys,
        l1_bytes=target.l1_bytes,
        l2_bytes=target.l2_bytes,
    )
    return replace(amended, fma_per_cycle=fma_per_cycle(amended, this_processor().path_bits))


def _check(what: str, name: str, known: tuple[str, ...], triple: str) -> None:
    if name in known:
        return
    if what == "cpu" and name.lower() in _NO_CPUS:
        raise TargetError(f'loopwright compiles for CPUs, not for {name}: write "native", or the name of a CPU')
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    advice = f"did you mean {', '.join(close)}?" if close else f"there are {len(known)}, {known[0]} … {known[-1]}"
    raise TargetError(f"LLVM knows no {what} {name!r} for {triple}: {advice}")


def _keys(triple: str) -> tuple[str, ...]:
    key = _KEYS.get(triple.split("-", 1)[0])
    return (key, "cpu", "generic") if key else ("cpu", "generic")


def process_triple() -> str:
    """The triple of this process: where code that is compiled here can run."""
    known = _TRIPLES.get(get_config_var("MULTIARCH") or "")
    if known is not None:
        return known
    import llvmlite.binding as llvm

    return str(llvm.get_process_triple())


def host_target() -> Target:
    """The machine at hand: its cpu, the features that its operating system lets it use, its cache sizes, and how many
    vectors it multiplies in a cycle."""
    return _target_of(this_processor())


@cache
def _target_of(processor: Processor) -> Target:
    triple = process_triple()
    target = Target(
        triple=triple,
        cpu=processor.cpu,
        features=_features(triple, processor.cpu, processor.attributes),
        keys=_keys(triple),
        l1_bytes=processor.l1_bytes,
        l2_bytes=processor.l2_bytes,
    )
    return replace(target, fma_per_cycle=fma_per_cycle(target, processor.path_bits))


def fma_per_cycle(target: Target, path_bits: int | None) -> int:
    """How many vectors of a target a core multiplies and adds in a cycle: it has two units, which take two cycles where
    the path of ``path_bits`` through them is half as wide as a vector (AMD's of Zen 4, of AVX-512)."""
    path = path_bits if target.arch == "x86_64" else None
    return max(1, 2 * min(path or target.vector_bits, target.vector_bits) // target.vector_bits)
