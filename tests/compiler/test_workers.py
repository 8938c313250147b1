"""Processes that compile: how they end, and what they leave to their parent."""

import signal

import loopwright as lw
from loopwright.codegen.options import CodegenOptions
from loopwright.compiler.closed_function import as_function
from loopwright.compiler.function_cache import function_key
from loopwright.compiler.partition import partition
from loopwright.compiler.workers import Job, _Worker


def test_an_interrupt_ends_a_worker_without_a_traceback(capfd):
    x = lw.var("x", (3,))
    (group,) = partition(lw.Function((x,), lw.nn.relu(x)))
    worker = _Worker()
    try:
        target, options = lw.resolve_target("native"), CodegenOptions(cache=False)
        function = as_function(group)
        made = worker.compile(function_key(function, target, options), Job(function), target, options)
        assert made.object
        worker._process.send_signal(signal.SIGINT)
        assert worker._process.wait(20) == -signal.SIGINT
    finally:
        worker.close()
    assert capfd.readouterr().err == ""
