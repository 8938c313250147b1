"""An editable install as a folder on the path. setuptools alone would make an import hook of it, since the root is the
package; Python follows that, but type checkers and editors look for folders."""

from pathlib import Path

from setuptools.command.editable_wheel import editable_wheel

LINK = Path(__file__).resolve().parents[1] / ".src" / "loopwright"
"""Leads to the root. A source distribution, which has no links, gets it here."""


class EditableInstall(editable_wheel):
    def finalize_options(self) -> None:
        if not LINK.exists():
            LINK.parent.mkdir(exist_ok=True)
            LINK.symlink_to("..")
        self.distribution.package_dir = {"": LINK.parent.name}
        super().finalize_options()
