"""Run as a script, ``run_llvm.py <folder>`` with jobs as JSON on the standard input: compiles each job's LLVM IR by
llvmlite, which reads that of LLVM 19, and calls its function on the arrays in the folder, which are written back.

A script, because LLVM ends the process where it cannot read or select something.
"""

import ctypes
import json
import sys
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np

# LLVM's run-time library has this; a process that was not linked with it may lack it.
RUNTIME = """
define bfloat @__truncsfbf2(float %value) {
  %bits = bitcast float %value to i32
  %shifted = lshr i32 %bits, 16
  %last = and i32 %shifted, 1
  %half = add i32 %last, 32767
  %rounded = add i32 %bits, %half
  %high = lshr i32 %rounded, 16
  %short = trunc i32 %high to i16
  %result = bitcast i16 %short to bfloat
  ret bfloat %result
}
"""


def descriptor(array):
    """A memref as functions of MLIR take it: allocated and aligned address, offset, sizes, strides."""
    address = ctypes.c_void_p(array.ctypes.data)
    strides = [s // array.itemsize for s in array.strides]
    return [address, address, *map(ctypes.c_int64, (0, *array.shape, *strides))]


def run(job, number, folder, machine):
    module = llvm.parse_assembly(Path(job["llvm"]).read_text())
    module.verify()
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    arrays = {k: np.load(folder / f"{number}.{k}.npy") for k, given in enumerate(job["arguments"]) if given is None}
    arguments = []
    for k, given in enumerate(job["arguments"]):
        arguments += [ctypes.c_int64(given)] if given is not None else descriptor(arrays[k])
    with llvm.create_mcjit_compiler(module, machine) as engine:
        engine.add_module(llvm.parse_assembly(RUNTIME))
        engine.finalize_object()
        function = ctypes.CFUNCTYPE(None, *(type(a) for a in arguments))(engine.get_function_address(job["function"]))
        function(*arguments)
    for k, array in arrays.items():
        np.save(folder / f"{number}.{k}.out.npy", array)


def main(folder):
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.load_library_permanently("libm.so.6")
    target = llvm.Target.from_default_triple()
    for number, job in enumerate(json.load(sys.stdin)):
        machine = target.create_target_machine(
            cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=1, jit=True
        )
        sys.stderr.write(f"{job['function']}\n")  # the last one tells where the process ended
        sys.stderr.flush()
        run(job, number, folder, machine)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
