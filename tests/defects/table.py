"""Deliberate defects, each with the smallest test that must fail for it."""

from typing import List, NamedTuple

__all__ = ["DEFECTS", "Defect"]


class Defect(NamedTuple):
    """A change of one line that a test must notice.

    Attributes:
      file: the path of the file in the repository.
      text: what is replaced; the file has it once.
      replacement: what takes its place.
      test: a test file, or one test of it, as pytest takes it.
    """

    file: str
    text: str
    replacement: str
    test: str


_CORE = "tests/shim/core/"
_TF1 = "tests/shim/tf1/"
_KERAS = "tests/shim/keras/"
_SHARDS = "tests/shim/cross_shard/"
_RECORDS = "tests/shim/recording/"
_CHECKPOINTS = "tests/shim/checkpoint/"
_CODEMODS = "tests/codemods/"

SHIM: List[Defect] = [
    Defect(
        "tf_lossscale/_core/update_rules.py",
        "grows = tf.logical_and(finite, counted >= period)",
        "grows = tf.logical_and(finite, counted > period)",
        _TF1 + "test_golden.py",
    ),
    Defect(
        "tf_lossscale/_core/update_rules.py",
        "where(divided < 1.0, tf.ones",
        "where(divided < 2.0, tf.ones",
        _TF1 + "test_golden.py",
    ),
    Defect(
        "tf_lossscale/_core/update_rules.py",
        "tf.logical_and(not_finite, bad_counted >= decr_every)",
        "tf.logical_and(not_finite, bad_counted > decr_every)",
        _TF1 + "test_golden.py",
    ),
    Defect(
        "tf_lossscale/_core/update_rules.py",
        "return where(tf1.is_finite(new), new, old)",
        "return new",
        _TF1 + "test_golden.py",
    ),
    Defect(
        "tf_lossscale/_core/finite.py",
        "return tf1.is_finite(tensor)",
        "return tf.logical_not(tf1.is_nan(tensor))",
        _CORE + "test_finite.py",
    ),
    Defect(
        "tf_lossscale/_core/finite.py",
        "return branch(tf.logical_not(certain), lambda: _by_elements(values))",
        "return certain",
        _CORE + "test_finite.py",
    ),
    Defect(
        "tf_lossscale/_core/scaling.py",
        "loss * tf.cast(loss_scale(), loss.dtype.base_dtype)",
        "loss / tf.cast(loss_scale(), loss.dtype.base_dtype)",
        _CORE + "test_scaling.py",
    ),
    Defect(
        "tf_lossscale/_core/scaling.py",
        "tf.convert_to_tensor(1 / loss_scale)",
        "tf.convert_to_tensor(1.0 * loss_scale)",
        _CORE + "test_scaling.py",
    ),
    Defect(
        "tf_lossscale/_core/optimizer_step.py",
        "if all(gradient is None for gradient, _ in pairs):",
        "if any(gradient is None for gradient, _ in pairs):",
        _TF1 + "test_optimizers.py",
    ),
    Defect(
        "tf_lossscale/_contrib/managers.py",
        "if loss_scale < 1:",
        "if loss_scale < 0:",
        _TF1 + "test_loss_scales.py",
    ),
    Defect(
        "tf_lossscale/_contrib/managers.py",
        "decr_ratio: Any = 0.8,",
        "decr_ratio: Any = 0.5,",
        _TF1 + "test_signatures.py",
    ),
    Defect(
        "tf_lossscale/_v1/loss_scales.py",
        "if loss_scale_value < 1:",
        "if loss_scale_value < 0:",
        _TF1 + "test_loss_scales.py",
    ),
    Defect(
        "tf_lossscale/_v1/identifiers.py",
        'identifier == "dynamic"',
        'identifier == "Dynamic"',
        _TF1 + "test_optimizers.py",
    ),
    Defect(
        "tf_lossscale/_v1/optimizer.py",
        "if self._loss_scale is None:",
        "if False:",
        _TF1 + "test_optimizers.py",
    ),
    Defect(
        "tf_lossscale/_v1/graph_rewrite.py",
        "if mixed_policy_is_set():",
        "if False:",
        _TF1 + "test_graph_rewrite.py",
    ),
    Defect(
        "tf_lossscale/_keras/arguments.py",
        "if int(growth_steps) < 1:",
        "if int(growth_steps) < -9:",
        _KERAS + "test_messages.py",
    ),
    Defect(
        "tf_lossscale/_keras/arguments.py",
        "if not isinstance(dynamic, bool):",
        "if False:",
        _KERAS + "test_final.py",
    ),
    Defect(
        "tf_lossscale/_keras/from_loss_scale.py",
        "if arguments is None:",
        "if False:",
        _KERAS + "test_final.py",
    ),
    Defect(
        "tf_lossscale/_cross_shard/groups.py",
        "if len(set(sizes)) != 1:",
        "if False:",
        _SHARDS + "test_contract.py",
    ),
    Defect(
        "tf_lossscale/_cross_shard/optimizer.py",
        "if reduction not in (_SUM, _MEAN):",
        "if False:",
        _SHARDS + "test_contract.py",
    ),
    Defect(
        "tf_lossscale/_install/fill.py",
        "elif symbol.legacy:",
        "elif not symbol.legacy:",
        "tests/shim/install/test_install.py",
    ),
    Defect(
        "tf_lossscale/_install/synthetic_namespace.py",
        "raise AttributeError(self.refuse(name))",
        "raise AttributeError(name)",
        "tests/shim/install/test_install.py::test_what_is_not_supplied_is_refused_with_what_is",
    ),
    Defect(
        "tf_lossscale/_monitoring/monitor.py",
        "if every < 1:",
        "if every < -9:",
        "tests/shim/monitoring/test_monitor.py",
    ),
    Defect(
        "tf_lossscale/_monitoring/warner.py",
        "values.longest >= self._after_skips",
        "values.longest > self._after_skips",
        "tests/shim/monitoring/test_monitor.py",
    ),
    Defect(
        "tf_lossscale/_recording/comparing.py",
        "if len(old.shapes) != len(new.shapes):",
        "if False:",
        _RECORDS + "test_compare.py",
    ),
    Defect(
        "tf_lossscale/_recording/scale_rules.py",
        "if not same_scale(expected, following):",
        "if False:",
        _RECORDS + "test_scale_rules.py",
    ),
    Defect(
        "tf_lossscale/_recording/record.py",
        '("inf" if value > 0 else "-inf")',
        '"inf"',
        _RECORDS + "test_reading.py",
    ),
    Defect(
        "tf_lossscale/_recorder/refusals.py",
        'raise RecordingError("A step on a TPU cannot be recorded." + ',
        'print("A step on a TPU cannot be recorded." + ',
        _RECORDS + "test_record_refusals.py",
    ),
    Defect(
        "tf_lossscale/_checkpoint/crc32c.py",
        "((checksum >> 15) | (checksum << 17))",
        "((checksum >> 16) | (checksum << 16))",
        _CHECKPOINTS + "test_formats.py",
    ),
    Defect(
        "tf_lossscale/_checkpoint/wire.py",
        "if byte < 0x80:",
        "if byte <= 0x80:",
        _CHECKPOINTS + "test_formats.py",
    ),
    Defect(
        "tf_lossscale/_checkpoint/table.py",
        "if last is not None and key <= last:",
        "if False:",
        _CHECKPOINTS + "test_hostile.py",
    ),
    Defect(
        "tf_lossscale/_cli/process.py",
        'f"{error.strerror.lower()}{where}"',
        'f"{error.strerror}{where}"',
        "tests/shim/cli/test_failing_output.py",
    ),
    Defect(
        "tf_lossscale/_namespace.py",
        "return names, module_getattr, lambda: list(names)",
        "return names, module_getattr, lambda: []",
        "tests/shim/test_namespaces.py",
    ),
    Defect(
        "tf_lossscale/_paths.py",
        '_TPU = ("contrib.tpu", "tpu", "compat.v1.tpu")',
        '_TPU = ("contrib.tpu", "tpu")',
        "tests/package/test_public_api.py",
    ),
    Defect(
        "tf_lossscale/_versions/releases.py",
        '"keras": (3, 0, 0)',
        '"keras": (3, 1, 0)',
        _CODEMODS + "project/test_specifiers.py",
    ),
]

CODEMODS: List[Defect] = [
    Defect(
        "codemods/model.py",
        "return not (self.ignore and code.startswith(self.ignore))",
        "return True",
        _CODEMODS + "engine/test_suppressions.py",
    ),
    Defect(
        "codemods/model.py",
        "if self.select and not code.startswith(self.select):",
        "if False:",
        _CODEMODS + "engine/test_suppressions.py",
    ),
    Defect(
        "codemods/files/patterns.py",
        "return not (self._negated >> (matched.bit_length() - 1)) & 1",
        "return True",
        _CODEMODS + "files/test_gitignore.py",
    ),
    Defect(
        "codemods/files/atomic_write.py",
        "if status.st_nlink > 1:",
        "if False:",
        _CODEMODS + "files/test_atomic_write.py",
    ),
    Defect(
        "codemods/files/atomic_write.py",
        "if _read(directory, name) != old or not",
        "if not",
        _CODEMODS + "files/test_atomic_write.py",
    ),
    Defect(
        "codemods/files/printable.py",
        "if not text.isprintable():",
        "if False:",
        _CODEMODS + "reports/test_reports.py",
    ),
    Defect(
        "codemods/project/specifiers.py",
        'if operator == "<=":',
        'if operator == "<>":',
        _CODEMODS + "project/test_specifiers.py",
    ),
    Defect(
        "codemods/project/specifiers.py",
        'return re.sub(r"[-_.]+", "-", name).lower()',
        "return name.lower()",
        _CODEMODS + "project/test_pins.py",
    ),
    Defect(
        "codemods/project/choice.py",
        "if two and three:",
        "if False:",
        _CODEMODS + "cli/test_keras_target.py",
    ),
    Defect(
        "codemods/resolve/scopes.py",
        '(scope is self or scope.kind != "class")',
        "True",
        _CODEMODS + "resolve/test_scopes.py",
    ),
    Defect(
        "codemods/resolve/legacy_symbols.py",
        'self.family is Family.V1 and self.name.endswith("LossScale")',
        "False",
        _CODEMODS + "rules/test_rules.py",
    ),
    Defect(
        "codemods/rewrite/constants.py",
        "if base.bit_length() * exponent > _MOST_BITS:",
        "if False:",
        _CODEMODS + "engine/test_untrusted_work.py",
    ),
    Defect(
        "codemods/rewrite/remove_statement.py",
        "if len(body) == 1:",
        "if False:",
        _CODEMODS + "rewrite/test_imports.py",
    ),
    Defect(
        "codemods/engine/suppressions.py",
        "if code.startswith(prefix):",
        "if code == prefix:",
        _CODEMODS + "engine/test_suppressions.py",
    ),
    Defect(
        "codemods/engine/prefilter.py",
        'b"get_unscaled_gradients",',
        'b"get_unscaled_gradientz",',
        _CODEMODS + "engine/test_transform.py",
    ),
    Defect(
        "codemods/engine/nesting.py",
        "if found.brackets > MOST_BRACKETS:",
        "if False:",
        _CODEMODS + "engine/test_torture.py",
    ),
    Defect(
        "codemods/engine/parse.py",
        "if given_back == source:",
        "if True:",
        _CODEMODS + "engine/test_torture.py",
    ),
    Defect(
        "codemods/engine/todo_comments.py",
        'if f"# TODO({code}):" not in present',
        "if True",
        _CODEMODS + "engine/test_transform.py",
    ),
    Defect(
        "codemods/notebooks/transform.py",
        'if language not in ("", "python", "ipython"):',
        "if False:",
        _CODEMODS + "notebooks/test_notebook.py",
    ),
    Defect(
        "codemods/notebooks/magics.py",
        "if magic is not None and magic[1] not in _PYTHON_CELLS:",
        "if False:",
        _CODEMODS + "notebooks/test_magics.py",
    ),
    Defect(
        "codemods/reports/github.py",
        'text.replace("%", "%25")',
        "text",
        _CODEMODS + "reports/test_reports.py",
    ),
    Defect(
        "codemods/reports/text.py",
        "{'needs' if summary.manual == 1 else 'need'} you",
        "need you",
        _CODEMODS + "reports/test_reports.py",
    ),
    Defect(
        "codemods/workers/pool.py",
        "elif -exit_code == signal.SIGSEGV:",
        "elif False:",
        _CODEMODS + "workers/test_statuses.py",
    ),
    Defect(
        "codemods/cli/command.py",
        "if arguments.write and (arguments.check or",
        "if arguments.write and (False or",
        _CODEMODS + "cli/test_command.py",
    ),
    Defect(
        "codemods/cli/settings.py",
        "if report.file is not None:",
        "if False:",
        _CODEMODS + "cli/test_untrusted_settings.py",
    ),
]

DEFECTS: List[Defect] = [*SHIM, *CODEMODS]
