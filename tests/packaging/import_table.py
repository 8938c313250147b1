"""The import-linter contract type behind the table of folders in pyproject.toml.

import-linter's own types state layers, where a folder may import all that lies below. Our table is narrower: it names,
for every folder, the folders that it may import directly; nobody but the root modules and a folder with ``"*"`` imports
the root, and a folder without a row is an error.
"""

from importlinter import Contract, ContractCheck, fields, output

ANYTHING = "*"


class TableField(fields.Field):
    """A TOML table from a folder to the list of folders that it may import."""

    def parse(self, raw_data) -> dict[str, frozenset[str]]:
        return {folder: frozenset(allowed) for folder, allowed in raw_data.items()}


class ImportTable(Contract):
    """Every direct import from one folder into another stands in the table `may_import`."""

    may_import = TableField()

    def check(self, graph, verbose: bool) -> ContractCheck:
        (root,) = self.session_options["root_packages"]
        folders = {
            child
            for child in graph.find_children(root)
            if graph.find_children(child) or _folder(child) in self.may_import
        }
        missing = sorted(folder for folder in folders if _folder(folder) not in self.may_import)
        illegal = [
            (importer, imported)
            for folder in sorted(folders)
            for importer in sorted({folder, *graph.find_descendants(folder)})
            for imported in sorted(graph.find_modules_directly_imported_by(importer))
            if imported.split(".")[0] == root and not self._allows(_folder(folder), _folder(imported))
        ]
        details = [
            detail for link in illegal for detail in graph.get_import_details(importer=link[0], imported=link[1])
        ]
        return ContractCheck(kept=not missing and not illegal, metadata={"missing": missing, "illegal": details})

    def _allows(self, importer: str, imported: str) -> bool:
        allowed = self.may_import.get(importer, frozenset())
        return importer == imported or imported in allowed or ANYTHING in allowed

    def render_broken_contract(self, check: ContractCheck) -> None:
        for folder in check.metadata["missing"]:
            output.print_error(f"{folder} has no row in the table of pyproject.toml: state what it may import.")
        for detail in check.metadata["illegal"]:
            output.print_error(
                f"{detail['importer']}:{detail['line_number']}: {detail['line_contents']}\n"
                f"    imports {detail['imported']}, which the row of {_folder(detail['importer'])!r} does not allow."
            )


def _folder(module: str) -> str:
    """The folder of a module, ``""`` for the root: ``loopwright.ir.expr`` → ``ir``."""
    return module.split(".")[1] if "." in module else ""
