"""Who takes an executor next: the order, who may pass whom and until when, who is woken, and interrupts at each moment
at which Python lets one in. The clock is the test's own, so that nothing depends on how fast threads are."""

import dis
import itertools
import math
import sys
import threading
import time
from collections import deque

import pytest

from loopwright.runtime.turns import AT_ONCE, PATIENCE, Ticket, Turns


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def use(turns, work=lambda thing: None):
    """As the docstring of ``Turns`` says it."""
    thing = None
    try:
        for thing in turns.take:
            return work(thing)
    finally:
        if thing is not None:
            turns.free.append(thing)
            if turns.line:
                turns.call_next()


def wait_until(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(1e-4)


def stand_in_line(turns, served, names):
    """Threads that come one after another, and note their names when they are served."""
    threads = []
    for name in names:
        threads.append(threading.Thread(target=use, args=(turns, lambda thing, name=name: served.append(name))))
        before = len(turns.line)
        threads[-1].start()
        wait_until(lambda before=before: len(turns.line) == before + 1)
    return threads


def test_a_free_thing_is_taken_and_comes_back(clock):
    turns = Turns(["a", "b"], clock)
    assert [use(turns, lambda thing: thing) for _ in range(3)] == ["a", "b", "a"]
    assert sorted(turns.free) == ["a", "b"]


def test_others_pass_the_first_in_line_until_it_has_waited_for_patience(clock):
    turns = Turns(["a"], clock)
    turns.line.append(Ticket(clock.now))  # of a thread that does not get on
    clock.now += 0.999 * PATIENCE
    assert use(turns, lambda thing: thing) == "a"
    clock.now += 0.002 * PATIENCE
    served = []
    (thread,) = stand_in_line(turns, served, ["late"])
    assert not served
    assert turns.line[0].is_rung  # for it is what lies free
    turns.line.popleft()
    turns.call_next()
    thread.join()
    assert served == ["late"]
    assert not turns.line


def test_threads_are_served_in_the_order_in_which_they_came(clock):
    turns = Turns(["a"], clock)
    served = []

    def hold(thing):
        threads = stand_in_line(turns, served, range(6))
        clock.now += 2 * PATIENCE
        return threads

    for thread in use(turns, hold):
        thread.join()
    assert served == list(range(6))


def test_a_thread_gets_what_lies_free_though_no_time_passes(clock):
    turns = Turns(["a"], clock)
    served = []
    (thread,) = use(turns, lambda thing: stand_in_line(turns, served, ["waiting"]))
    thread.join()
    assert served == ["waiting"]


def test_who_comes_back_at_once_is_expected_to_do_so_again(clock):
    turns = Turns(["a"], clock)

    def rings(pause):
        """Whether the first in line is woken by a thread that comes after a pause, and gives back what it took."""
        clock.now += pause
        (waiting,) = turns.line = deque([Ticket(clock.now)])
        use(turns)
        return waiting.is_rung

    turns.line.append(Ticket(clock.now))
    soon, late = AT_ONCE / 2, AT_ONCE * 2
    assert [rings(soon) for _ in range(3)] == [True, False, False]
    assert [rings(late), rings(soon), rings(soon)] == [False, False, False]  # once is no habit
    assert [rings(late), rings(late), rings(late)] == [False, True, True]
    assert [rings(soon), rings(soon)] == [False, False]


def test_the_first_in_line_is_woken_when_it_may_not_be_passed_any_more(clock):
    turns = Turns(["a"], clock)
    turns._pauses = (0.0, 0.0)
    turns.line.append(waiting := Ticket(clock.now))
    use(turns)
    assert not waiting.is_rung
    use(turns, lambda thing: setattr(clock, "now", clock.now + PATIENCE))
    assert waiting.is_rung


def test_what_lies_idle_is_found(clock):
    """The thread that was expected to come back at once does not; and the next one is woken again."""
    turns = Turns(["a"], clock)
    turns._pauses = (0.0, 0.0)
    served = []
    (thread,) = use(turns, lambda thing: stand_in_line(turns, served, ["waiting"]))
    clock.now += 2 * PATIENCE  # not told: it looks by itself
    thread.join()
    assert served == ["waiting"]
    assert min(turns._pauses) > AT_ONCE


class NotedLine(deque):
    """A line that notes how many have been served when a thread comes into it."""

    def __init__(self, served):
        super().__init__()
        self.served = served
        self.came = {}

    def append(self, ticket):
        super().append(ticket)
        self.came[threading.get_ident()] = len(self.served)


def test_threads_that_come_again_and_again_wait_for_their_turns_only():
    """Time is counted in looks at the clock, of which each thread that passes others takes one: so many others at the
    most are served while a thread waits."""
    looks_in_patience, threads = 10, 8
    ticks = itertools.count()
    turns = Turns(["a"], lambda: next(ticks) * PATIENCE / looks_in_patience)
    served, passed, errors = [], [], []
    turns.line = NotedLine(served)

    def note(thing):
        came = turns.line.came.pop(threading.get_ident(), None)
        passed.append(0 if came is None else len(served) - came)
        served.append(thing)

    def come():
        try:
            for _ in range(300):
                use(turns, note)
        except BaseException as error:
            errors.append(error)

    callers = [threading.Thread(target=come) for _ in range(threads)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
    finally:
        sys.setswitchinterval(interval)
    assert not errors
    assert len(served) == threads * 300
    assert max(passed) <= looks_in_patience + 2 * threads  # who stood before, and who had seen just before that it may
    assert list(turns.free) == ["a"]
    assert not turns.line


CALLS = {"CALL", "CALL_FUNCTION_EX", "CALL_KW", "RESUME", "JUMP_BACKWARD"}
"""Behind these Python sees to what interrupts have come, before it does anything else."""


class Interrupting:
    """A trace function that raises KeyboardInterrupt at the ``number``-th moment in which Python would let one in."""

    def __init__(self, number):
        self.left = number
        self.codes = {
            function.__code__: [None, *dis.get_instructions(function)]
            for function in (use, *(getattr(Turns, name) for name in vars(Turns) if callable(getattr(Turns, name))))
            if hasattr(function, "__code__")
        }

    def __call__(self, frame, event, argument):
        if frame.f_code not in self.codes:
            return None
        if event == "call":
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
            sys.settrace(self)  # Python 3.12 looks for frames that want opcodes only now
        if event == "opcode" and self._is_behind_a_call(frame):
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return self

    def _is_behind_a_call(self, frame):
        instructions = self.codes[frame.f_code]
        number = next(k for k, i in enumerate(instructions) if i is not None and i.offset == frame.f_lasti)
        before = instructions[number - 1]
        return before is not None and before.opname in CALLS


def interrupted(run, number):
    """Whether the moment came, and the interrupt came out."""
    trace = Interrupting(number)
    outer = sys.gettrace()
    try:
        sys.settrace(trace)
        run()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(outer)
    assert trace.left > 0, "the interrupt was lost"
    return False


def interrupt_at_each_moment(attempt, least):
    """``attempt(number)`` says whether it was interrupted, at the moment of that number. Without an interrupt before
    each, since Python 3.13 traces no opcodes of a function's first call, nor of the one after an interrupt."""
    for number in itertools.count(1):
        attempt(math.inf)
        if not attempt(number):
            break
    assert number > least


def test_an_interrupt_at_any_moment_leaves_what_is_free_free(clock):
    def attempt(number):
        turns = Turns(["a"], clock)
        came = interrupted(lambda: use(turns), number)
        assert list(turns.free) == ["a"], f"moment {number}"
        assert not turns.line
        return came

    interrupt_at_each_moment(attempt, 3)


def test_an_interrupt_at_any_moment_in_line_leaves_the_line_whole(clock, monkeypatch):
    """The interrupted thread leaves the line, and the one behind it is served."""
    sleep = Ticket.sleep

    def attempt(number):
        turns, served, others = Turns([], clock), [], []

        def give(ticket, now):
            """In the place of its sleep: another thread comes, and then something is given back."""
            if threading.current_thread() is not threading.main_thread():
                return sleep(ticket, now)
            others.extend(stand_in_line(turns, served, ["behind"]))
            turns.free.append("a")
            turns.call_next()
            return True

        monkeypatch.setattr(Ticket, "sleep", give)
        came = interrupted(lambda: use(turns), number)
        if not others:  # it never slept
            turns.free.append("a")
        for other in others:
            other.join()
            assert served == ["behind"]
        assert list(turns.free) == ["a"], f"moment {number}"
        assert not turns.line
        return came

    interrupt_at_each_moment(attempt, 10 if sys.version_info < (3, 13) else 1)  # code that threads share is not traced
