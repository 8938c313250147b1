"""What is built is the package, the whole package, and nothing but the package."""

import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import packaging.metadata
import pytest

import loopwright

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["packages"]
PACKAGE_FOLDERS = {Path(*package.split(".")[1:]) for package in PACKAGES}
NO_PACKAGES = {"tests", "examples", "benchmarks", "docs"}
ROOT_MODULES = {"__init__.py", "__main__.py", "onnx_backend.py"}
IMPORT_ALL = """
import importlib, pkgutil, sys
sys.path.insert(0, sys.argv[1])
import loopwright
for module in pkgutil.walk_packages(loopwright.__path__, "loopwright."):
    importlib.import_module(module.name)
print(loopwright.__version__, loopwright.__file__)
"""

pytestmark = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="asks git which files belong to the project")


def project_files() -> list[Path]:
    """The files under version control, and those about to be, relative to the root."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    return [Path(name) for name in sorted(set(names)) if (ROOT / name).is_file()]


def package_files() -> set[Path]:
    """Modules, the LLVM IR that the runtime is partly written in, what pages are made of, the public names, and
    the mark of a typed package."""
    files = project_files()
    sources = {file for file in files if file.suffix in (".py", ".ll") and file.parent in PACKAGE_FOLDERS}
    assets = {file for file in files if file.parent == Path("explorer", "assets")}
    return sources | assets | {Path("py.typed"), Path("__init__.pyi")}


@pytest.fixture(scope="module")
def sources(tmp_path_factory) -> Path:
    """A copy of the project: a build leaves files in its folder, and picks up what an earlier one left."""
    copy = tmp_path_factory.mktemp("sources")
    for file in project_files():
        (copy / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, copy / file)
    return copy


@pytest.fixture(scope="module")
def dist(sources, tmp_path_factory) -> Path:
    """A folder with the sdist, and the wheel built out of that sdist."""
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(sources)]
    build = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    assert build.returncode == 0, build.stdout + build.stderr
    return out


@pytest.fixture(scope="module")
def wheel(dist) -> Path:
    (path,) = dist.glob("*.whl")
    return path


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        shipped = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert shipped == {f"loopwright/{file.as_posix()}" for file in package_files()}


def test_the_sdist_holds_the_project_with_its_tests_and_documentation(dist):
    (path,) = dist.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        shipped = {Path(*Path(member.name).parts[1:]) for member in archive.getmembers() if member.isfile()}
    made = {Path("PKG-INFO"), Path("setup.cfg")}
    ours = {file for file in shipped - made if file.parts[0] != "loopwright.egg-info"}
    assert ours == {file for file in project_files() if not file.parts[0].startswith(".")}


def test_the_metadata_is_valid_and_says_who_made_the_package(wheel):
    metadata = metadata_of(wheel)
    assert metadata.author == "The loopwright maintainers"
    assert metadata.license_expression == "Apache-2.0"
    assert metadata.description_content_type == "text/markdown"
    assert metadata.description == (ROOT / "README.md").read_text(encoding="utf-8")
    assert {"Source", "Documentation", "Issues", "Changelog"} <= metadata.project_urls.keys()
    assert all(url.startswith(metadata.project_urls["Source"]) for url in metadata.project_urls.values())


def test_the_classifiers_name_the_pythons_that_are_supported(wheel):
    metadata = metadata_of(wheel)
    tags = [name.removeprefix("Programming Language :: Python :: ") for name in metadata.classifiers]
    assert [tag for tag in tags if tag.startswith("3.")] == ["3.11", "3.12", "3.13"]
    assert all(version in metadata.requires_python for version in ("3.11", "3.12", "3.13"))
    assert "3.10" not in metadata.requires_python


def metadata_of(wheel):
    """What the wheel says of itself, checked by the rules of package indexes; raises for what breaks one."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return packaging.metadata.Metadata.from_email(archive.read(name))


def test_every_module_imports_out_of_the_wheel(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    command = [sys.executable, "-c", IMPORT_ALL, str(tmp_path)]
    run = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == f"{loopwright.__version__} {tmp_path / 'loopwright' / '__init__.py'}"


def test_an_editable_install_is_a_folder_on_the_path(sources, wheel, tmp_path):
    """After the builds of `dist`, which the link that it makes is not to disturb."""
    program = f"from setuptools.build_meta import build_editable; print(build_editable({str(tmp_path)!r}))"
    run = subprocess.run([sys.executable, "-c", program], cwd=sources, check=False, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    with zipfile.ZipFile(tmp_path / run.stdout.splitlines()[-1]) as archive:
        installed = [name for name in archive.namelist() if ".dist-info/" not in name]
        (folder,) = (archive.read(name).decode().strip() for name in installed)
    assert installed[0].endswith(".pth")
    assert (Path(folder) / "loopwright").resolve() == sources


def test_no_stray_module_stands_at_the_root():
    stray = {file.name for file in project_files() if file.suffix == ".py" and len(file.parts) == 1} - ROOT_MODULES
    assert not stray, f"{sorted(stray)} would be shipped: move into a folder"


def test_the_listed_packages_are_the_folders_with_an_init():
    with_init = {
        file.parent for file in project_files() if file.name == "__init__.py" and file.parts[0] not in NO_PACKAGES
    }
    assert with_init == PACKAGE_FOLDERS, "keep `packages` in pyproject.toml in step with the folders"
