import numpy as np
import pytest

from loopwright.base.aligned import MANY_PAGES, PAGE_BYTES, aligned


@pytest.mark.parametrize("shape", [(), (0, 3), (5,), (4, 7)])
def test_an_array_anywhere_is_given_on_a_cache_line(shape):
    rng = np.random.default_rng(0)
    for offset in range(0, 64, 4):
        memory = np.zeros(1024, np.uint8)[offset:]
        array = memory[: int(np.prod(shape)) * 4].view(np.float32).reshape(shape)
        array[...] = rng.random(shape)
        found = aligned(array)
        assert found.ctypes.data % 64 == 0
        assert found.shape == shape
        assert np.array_equal(found, array)


def test_a_large_array_is_copied_to_whole_pages():
    array = np.arange(MANY_PAGES // 4 + 1, dtype=np.float32)[1:]
    found = aligned(array)
    assert found.ctypes.data % PAGE_BYTES == 0
    assert np.array_equal(found, array)


def test_an_aligned_array_is_not_copied():
    array = aligned(np.ones((3, 4), np.float32))
    assert np.shares_memory(aligned(array), array)


def test_a_view_with_gaps_becomes_contiguous():
    array = np.arange(64, dtype=np.int16).reshape(8, 8)[:, ::2]
    found = aligned(array)
    assert found.flags.c_contiguous
    assert found.ctypes.data % 64 == 0
    assert np.array_equal(found, array)
