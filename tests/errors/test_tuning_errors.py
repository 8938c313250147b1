"""Arguments of ``lw.tune`` and ``lw.tasks`` that do not fit are refused before anything is measured."""

import pytest

import loopwright as lw

A, B = lw.var("a", (8, 16)), lw.var("b", (16, 8))
MODEL = lw.Function([A, B], lw.nn.matmul(A, B))


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"minutes": 0}, r"minutes should be a positive number, found 0"),
        ({"minutes": "long"}, r"minutes should be a positive number, found 'long'"),
        ({"timeout": float("nan")}, r"timeout should be a positive number, found nan"),
        ({"seed": 1.5}, r"seed should be a whole number, found 1.5"),
        ({"jobs": 0}, r"jobs should be a whole number of at least 1, found 0"),
        ({"threads": 0}, r"threads should be a whole number from 1 to 1024, found 0"),
        ({"threads": 1000}, r"runs of 1000 threads are measured with as many cpus free, and \d+ are granted here"),
        ({"workers": 3}, r"workers should be an object with the submit of concurrent.futures"),
        ({"searcher": "luck"}, r"searcher should be 'evolution', 'random', 'grid', or a function"),
        ({"only": "nn.matmul"}, r"only should be a list of names of operators, found 'nn.matmul'"),
        ({"only": ["nn.conv3d2"]}, r"only: there is no operator 'nn.conv3d2'; did you mean 'nn.conv\dd'\?"),
        ({"only": ["?"]}, r"only: there is no operator '\?'$"),
        (
            {"target": "llvm -mcpu=atom"},
            r"what is for atom is measured on one, and this cpu is [\w-]+: give workers= that have it",
        ),
        ({"target": "llvm -mtriple=aarch64-linux-gnu"}, r"this machine is \w+: give workers= that have it"),
    ],
    ids=lambda given: next(iter(given)) if isinstance(given, dict) else "",
)
def test_what_does_not_fit_is_refused(tmp_path, arguments, problem):
    with pytest.raises(lw.RuntimeArgumentError, match=problem):
        lw.tune(MODEL, tmp_path / "t.jsonl", **{"threads": 1, **arguments})


def test_a_file_that_cannot_be_written_is_told_before_anything_is_measured(tmp_path):
    refused, missing = tmp_path / "model.onnx", tmp_path / "none" / "t.jsonl"
    refused.write_bytes(b"\x08\x08\x12\x06weight\nnot a record")
    before = refused.read_bytes()
    for path, problem in (
        (tmp_path, "Is a directory"),
        (missing, f"there is no folder {missing.parent}"),
        (refused, "the file holds something else; give another"),
    ):
        with pytest.raises(lw.RecordError, match=rf"the tuning records {path} cannot be written: {problem}"):
            lw.tune(MODEL, path, threads=1)
    assert refused.read_bytes() == before


def test_a_file_that_may_not_be_written_is_told_before_anything_is_measured(tmp_path, monkeypatch):
    """Whoever runs the tests may write anywhere, so that the answer is made up."""
    monkeypatch.setattr("os.access", lambda path, mode: False)
    with pytest.raises(lw.RecordError, match=rf"t.jsonl cannot be written: {tmp_path} may not be written"):
        lw.tune(MODEL, tmp_path / "t.jsonl", threads=1)


def test_records_are_kept_in_a_file():
    with pytest.raises(lw.RecordError, match=r"records should be the path of a file to keep them in, found None"):
        lw.tune(MODEL, None, threads=1)


def test_a_searcher_that_gives_none_is_told(tmp_path):
    with pytest.raises(lw.RuntimeArgumentError, match=r"the searcher should have propose and observe, found 3"):
        lw.tune(MODEL, tmp_path / "t.jsonl", threads=1, searcher=lambda space, rng: 3)
