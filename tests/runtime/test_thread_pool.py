"""The thread pool under stress, each scenario in a process of its own, so that a hang or a crash is one failed test."""

import subprocess
import sys
from pathlib import Path

import pytest
from llvmlite import binding as llvm

from loopwright.base.errors import TargetError
from loopwright.runtime.threads.thread_pool import thread_pool_ir, thread_pool_symbols

PROGRAM = Path(__file__).with_name("pool_scenarios.py")

SCENARIOS = [
    "every_iteration_once",
    "chunks_are_even",
    "empty_extent",
    "launches",
    "grows_to_what_is_asked",
    "meets_after_sleep",
    "nested",
    "concurrent_callers",
    "errors",
    "caller_sleeps_until_the_last_has_left",
    "forked_child_has_a_pool_of_its_own",
    "fork_while_a_job_runs",
    "workers_leave_signals_alone",
    "keyboard_interrupt",
    "idle_workers_sleep",
    "no_thread_to_be_had",
    "workers_keep_off_the_cpu_of_their_caller",
    "more_workers_than_other_cpus_go_anywhere",
    "masks_that_somebody_else_set_stay",
]


def run(scenario):
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", str(PROGRAM), scenario],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stderr}"


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_pool(scenario):
    run(scenario)


@pytest.mark.parametrize("scenario", ["exits_at_once", "exits_under_a_daemon"])
def test_process_exits_without_hang_or_crash(scenario):
    for _ in range(5):
        run(scenario)


def test_a_process_loads_the_pool_that_another_compiled(tmp_path, monkeypatch):
    monkeypatch.setenv("LOOPWRIGHT_CACHE_DIR", str(tmp_path))
    for _ in range(2):
        run("exits_at_once")
    assert any(path.is_file() for path in tmp_path.rglob("*")), "nothing was cached, so nothing was tested"


def test_one_pool_per_process():
    assert thread_pool_symbols() == thread_pool_symbols()


@pytest.mark.parametrize(
    "triple", ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu", "aarch64-linux-android", "arm64-apple-darwin"]
)
def test_pool_compiles_for_other_targets_without_thread_local_storage(triple):
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(triple).create_target_machine(reloc="pic", codemodel="small")
    module = llvm.parse_assembly(thread_pool_ir(triple))
    module.data_layout = str(machine.target_data)
    module.verify()
    assembly = machine.emit_assembly(module)
    assert "lw_parallel_for" in assembly
    assert "thread_local" not in thread_pool_ir(triple)
    assert "__emutls" not in assembly
    assert ("pthread_setaffinity_np" in assembly) == triple.endswith("gnu"), "neither Android nor macOS has it"


def test_a_machine_without_pthreads_is_refused(monkeypatch):
    monkeypatch.setattr(llvm, "get_process_triple", lambda: "x86_64-pc-windows-msvc")
    with pytest.raises(TargetError, match="needs pthreads"):
        thread_pool_symbols()
