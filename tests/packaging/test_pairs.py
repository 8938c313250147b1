"""Of tests over many combinations, those that always run hold each pair of values."""

from itertools import combinations, product

import pytest
from pairs import covering, each_pair


@pytest.mark.parametrize("counts", [(3, 4), (17, 4, 2, 3), (2, 2, 2, 2, 2), (1, 5, 1)], ids=str)
def test_each_pair_of_values_is_covered(counts):
    chosen = covering(counts)
    for a, b in combinations(range(len(counts)), 2):
        assert {(each[a], each[b]) for each in chosen} == set(product(range(counts[a]), range(counts[b])))


def test_few_combinations_cover_many():
    assert len(covering((17, 4, 2, 3))) <= 17 * 4 + 3


def test_what_is_left_out_is_slow_and_has_a_name_of_its_own():
    made = each_pair(a=["x", "y"], b={"p": 1, "q": 2}, c=[(1, 2), (3, 4)]).args
    assert made[0] == ["a", "b", "c"]
    assert len({case.id for case in made[1]}) == 8
    assert {case.id for case in made[1] if not case.marks} >= {"x-p-1-2"}
    assert sum(bool(case.marks) for case in made[1]) == 4
