r"""The rules as a LibCST codemod command.

    python -m libcst.tool codemod \
      tf_lossscale_codemods.cli.libcst_command.MigrateCommand --to shim FILE

LibCST's tool then reads and writes the files. Only `tf-lossscale migrate` guarantees that bytes
outside the edits stay the same, keeps file modes, writes reports, and handles notebooks.
"""

from __future__ import annotations

import argparse
from typing import Optional

import libcst as cst
from libcst.codemod import CodemodCommand, CodemodContext, SkipFile

from ..engine.prefilter import may_concern
from ..engine.transform import transform
from ..model import Options, Target

__all__ = ["MigrateCommand"]


class MigrateCommand(CodemodCommand):
    """Migrates one module away from TensorFlow's retired loss-scale classes."""

    DESCRIPTION = (
        "Migrates code away from TensorFlow's retired loss-scale and cross-shard optimizers."
    )

    def __init__(
        self,
        context: CodemodContext,
        to: str = "final",
        keras: Optional[int] = None,
        unsafe: bool = False,
    ) -> None:
        super().__init__(context)
        self._options = Options(target=Target(to), keras=keras, unsafe=unsafe)

    @staticmethod
    def add_args(parser: argparse.ArgumentParser) -> None:
        """Adds the options `--to`, `--keras` and `--unsafe`.

        Without `--keras`, the result runs on both versions: LibCST shows one file at a time, not
        the project.
        """
        parser.add_argument("--to", choices=[target.value for target in Target], default="final")
        parser.add_argument("--keras", type=int, choices=[2, 3])
        parser.add_argument("--unsafe", action="store_true")

    def transform_module_impl(self, tree: cst.Module) -> cst.Module:
        """Returns the migrated module, and warns about findings that were not applied.

        Raises:
          SkipFile: if the module cannot be migrated.
        """
        if not may_concern(tree.bytes):
            return tree
        result = transform(tree.bytes, self._options, self.context.filename or "<module>")
        if result.error is not None:
            raise SkipFile(f"line {result.error.line}: {result.error.message}")
        for finding in result.findings:
            if not finding.applied:
                self.warn(f"line {finding.line}: {finding.code} {finding.message}")
        return cst.parse_module(result.source)
