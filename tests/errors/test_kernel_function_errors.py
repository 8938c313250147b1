"""What is wrong with a kernel function or a call of it is told with its name and the argument."""

import re

import numpy as np
import pytest

import loopwright as lw
from loopwright import te

X, Y = np.ones((3, 4), np.float32), np.ones(4, np.float32)
OTHER = te.placeholder((4,), name="Z")


@lw.kernel
def scaled(x, y):
    return np.exp(x) * y + 1


@lw.kernel
def pair(x, y):
    return x + y, x - y


def returning(value):
    def given(x):
        return value(x)

    return lw.kernel(given)


def refused(kind, message):
    return pytest.raises(kind, match=re.escape(message))


ARGUMENTS = {
    "argument x of kernel scaled is of type list, no array and no constant: numpy.asarray makes an array": (
        lambda: scaled([1.0], Y)
    ),
    "argument y of kernel scaled is of type tuple, no array": lambda: scaled(X, (Y, Y)),
    "argument y of kernel scaled is of type object, no array and no constant: pass an array or a number": (
        lambda: scaled(X, object())
    ),
    "argument x of kernel scaled has dtype complex64, which tensors cannot have": lambda: scaled(X.astype("c8"), Y),
    "argument x of kernel scaled has dtype object": lambda: scaled(np.array([None]), Y),
    "argument x of kernel scaled is a masked array": lambda: scaled(np.ma.masked_array(X), Y),
    "kernel scaled(x, y): missing a required argument: 'y'": lambda: scaled(X),
    "kernel scaled(x, y): got an unexpected keyword argument 'z'": lambda: scaled(X, Y, z=1),
    "kernel scaled: out should be an array float32[3, 4], found float64[3, 4]": lambda: scaled(
        X, Y, out=np.ones((3, 4))
    ),
    "kernel scaled: out should be an array float32[3, 4], found a value of type list": lambda: scaled(X, Y, out=[1]),
    "kernel pair: out should be 2 arrays, found 1": lambda: pair(X, Y, out=X.copy()),
    "scaled: argument 3 (add) is written, but shares memory with argument 1 (x)": lambda: scaled(X, Y, out=X),
    "kernel scaled: there is no out for tensors, which have no memory": lambda: scaled(OTHER, OTHER, out=X),
    "kernel: schedule is a function that schedules, found 3": lambda: lw.kernel(schedule=3),
    "kernel takes a function of Python, found 3": lambda: lw.kernel(3),
    "a parameter is called out, by which calls name the arrays to write: rename it": (
        lambda: lw.kernel(lambda x, out: x + out)
    ),
}


@pytest.mark.parametrize(("message", "call"), ARGUMENTS.items())
def test_arguments_that_do_not_fit_are_told_by_their_names(message, call):
    with refused(lw.RuntimeArgumentError, message):
        call()


COMPUTED = {
    "kernel scaled(x: float32[3, 4], y: float32[3]): np.multiply of exp: float32[3, 4], y: float32[3]: extents 4 of "
    "exp and 3 of y do not broadcast": lambda: scaled(X, Y[:3]),
    "kernel scaled(x: float32[3, 4], y: float64[4]): np.multiply: exp: float32[3, 4] and y: float64[4] do not": (
        lambda: scaled(X, Y.astype(np.float64))
    ),
    "kernel given(x: float32[3, 4]) returned nothing: return a tensor": lambda: returning(lambda x: None)(X),
    "kernel given(x: float32[3, 4]) returned a value of type int": lambda: returning(lambda x: 3)(X),
    "kernel given(x: float32[3, 4]) returned a value of type TensorRead": lambda: returning(lambda x: x[0, 0])(X),
    "kernel given(x: float32[3, 4]) returned nothing: return a tensor, or a tuple": lambda: returning(lambda x: ())(X),
    "kernel given(x: float32[3, 4]) reads Z: float32[4], which is none of its arguments": (
        lambda: returning(lambda x: x + OTHER)(X)
    ),
    "kernel given(x: float32[3, 4]): the truth of greater: bool[3, 4] is not known": (
        lambda: returning(lambda x: x if x > 0 else -x)(X)
    ),
}


@pytest.mark.parametrize(("message", "call"), COMPUTED.items())
def test_what_a_function_computes_wrongly_is_told_with_the_kernel_and_its_arguments(message, call):
    with refused(lw.ExpressionError, message):
        call()


def test_operators_that_do_not_fit_are_told_with_the_kernel():
    with refused(lw.TypeInferenceError, "kernel given(x: float32[3, 4]): np.matmul: nn.matmul(a: float32[3, 4]"):
        returning(lambda x: x @ x)(X)


def test_a_schedule_that_is_refused_is_told_with_the_kernel():
    with refused(lw.ScheduleError, "kernel given(x: float32[3, 4]): the schedule has no stage 'C'; there are x, add"):
        lw.kernel(schedule=lambda s: s["C"])(returning(lambda x: x + 1).__wrapped__)(X)
    with refused(lw.ScheduleError, "the function that schedules it gave 3: it changes the schedule that it is given"):
        lw.kernel(schedule=lambda s: 3)(returning(lambda x: x + 1).__wrapped__)(X)


def test_a_mistake_of_the_function_itself_is_told_as_it_is():
    with pytest.raises(ZeroDivisionError):
        returning(lambda x: x / (1 // 0))(X)


def test_a_kernel_that_calls_itself_on_such_arrays_is_refused():
    @lw.kernel
    def endless(x):
        return endless(Y)

    with refused(lw.RuntimeArgumentError, "kernel endless calls itself with arrays like those that it is made for"):
        endless(Y)


def test_an_unknown_target_is_refused_when_the_kernel_is_declared():
    with refused(lw.TargetError, "LLVM knows no cpu 'nope'"):
        lw.kernel(target="nope")
