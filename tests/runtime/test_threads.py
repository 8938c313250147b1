"""How many threads are used by default: environment, affinity, cgroup quota."""

import inspect
import os

import pytest

from loopwright.base.errors import RuntimeArgumentError
from loopwright.runtime.threads import default_threads as module
from loopwright.runtime.threads.default_threads import cgroup_quota, check_threads, default_threads


@pytest.fixture(autouse=True)
def no_variables(monkeypatch):
    monkeypatch.delenv("LOOPWRIGHT_NUM_THREADS", raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)


def test_own_variable_comes_before_the_one_of_openmp(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    assert default_threads() == 5
    monkeypatch.setenv("LOOPWRIGHT_NUM_THREADS", " 3 ")
    assert default_threads() == 3


def test_openmp_levels_and_empty_variables(monkeypatch):
    monkeypatch.setenv("LOOPWRIGHT_NUM_THREADS", "")
    monkeypatch.setenv("OMP_NUM_THREADS", "4,2")
    assert default_threads() == 4


@pytest.mark.parametrize("value", ["0", "-1", "two", "1.5", "2,2", "99999"])
def test_an_invalid_variable_is_an_error(monkeypatch, value):
    monkeypatch.setenv("LOOPWRIGHT_NUM_THREADS", value)
    with pytest.raises(RuntimeArgumentError, match=f"LOOPWRIGHT_NUM_THREADS .* from 1 to 1024, found '{value}'"):
        default_threads()


@pytest.mark.parametrize("value", [0, -3, 1.0, True, "2", 5000])
def test_an_invalid_number_of_threads_is_an_error(value):
    with pytest.raises(RuntimeArgumentError, match="threads should be a whole number from 1 to 1024, found"):
        check_threads(value)


@pytest.fixture
def own_affinity(monkeypatch):
    """The affinity mask is asked for, also where the tests describe another machine than the one at hand."""
    monkeypatch.setattr(module, "granted_cpus", inspect.unwrap(module.granted_cpus))


@pytest.mark.usefixtures("own_affinity")
@pytest.mark.parametrize(("quota", "expected"), [(None, 3), (2.9, 2), (0.5, 1), (64.0, 3)])
def test_affinity_and_quota_bound_each_other(monkeypatch, quota, expected):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 4, 5}, raising=False)
    monkeypatch.setattr(module, "cgroup_quota", lambda: quota)
    assert default_threads() == expected


@pytest.mark.usefixtures("own_affinity")
def test_an_affinity_that_changes_is_noticed(monkeypatch):
    monkeypatch.setattr(module, "cgroup_quota", lambda: None)
    for cpus in ({0, 1, 2}, {1}):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, cpus=cpus: cpus, raising=False)
        assert default_threads() == len(cpus)


def write(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_quota_of_cgroup_v2_is_the_least_of_its_ancestors(tmp_path):
    write(
        tmp_path,
        {
            "proc/self/cgroup": "0::/machine/job\n",
            "sys/fs/cgroup/machine/job/cpu.max": "max 100000\n",
            "sys/fs/cgroup/machine/cpu.max": "250000 100000\n",
        },
    )
    assert cgroup_quota(tmp_path) == 2.5


def test_quota_of_cgroup_v2_in_a_container(tmp_path):
    write(tmp_path, {"proc/self/cgroup": "0::/../elsewhere\n", "sys/fs/cgroup/cpu.max": "50000 100000\n"})
    assert cgroup_quota(tmp_path) == 0.5


def test_quota_of_cgroup_v1(tmp_path):
    write(
        tmp_path,
        {
            "proc/self/cgroup": "5:cpuset:/x\n4:cpu,cpuacct:/job\n1:name=systemd:/\n",
            "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us": "300000\n",
            "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1\n",
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
        },
    )
    assert cgroup_quota(tmp_path) == 3.0


def test_no_quota_without_cgroups(tmp_path):
    assert cgroup_quota(tmp_path) is None
    write(tmp_path, {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "not a quota"})
    assert cgroup_quota(tmp_path) is None
