"""Deliberate defects, each with the smallest test that must fail for it."""

from typing import List, NamedTuple

__all__ = ["DEFECTS", "Defect"]


class Defect(NamedTuple):
    """A change of one line that a test must notice.

    Attributes:
      folder: the folder whose modules are searched, so that a module may move within it.
      text: what is replaced; the modules have it once.
      replacement: what takes its place.
      test: a test file, or one test of it, as pytest takes it.
    """

    folder: str
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
        "tf_lossscale",
        "grows = tf.logical_and(finite, counted >= period)",
        "grows = tf.logical_and(finite, counted > period)",
        _TF1 + "test_golden.py",
    ),
    Defect(
        "tf_lossscale",
        "where(divided < 1.0, tf.ones",
        "where(divided < 2.0, tf.ones",
        _TF1 + "test_golden.py",
    ),
    Defect(
        "tf_lossscale",
        "tf.logical_and(not_finite, bad_counted >= manager._decr_every_n_nan_or_inf)",
        "tf.logical_and(not_finite, bad_counted > manager._decr_every_n_nan_or_inf)",
        _TF1 + "test_golden.py",
    ),
    Defect(
        "tf_lossscale",
        "return where(tf1.is_finite(new), new, old)",
        "return new",
        _TF1 + "test_golden.py",
    ),
    Defect(
        "tf_lossscale",
        "return tf1.is_finite(tensor)",
        "return tf.logical_not(tf1.is_nan(tensor))",
        _CORE + "test_finite.py",
    ),
    Defect(
        "tf_lossscale",
        "return branch(tf.logical_not(certain), lambda: _by_elements(values), only_tests=True)",
        "return certain",
        _CORE + "test_finite.py",
    ),
    Defect(
        "tf_lossscale",
        "loss * tf.cast(loss_scale(), loss.dtype.base_dtype)",
        "loss / tf.cast(loss_scale(), loss.dtype.base_dtype)",
        _KERAS + "test_final.py",
    ),
    Defect(
        "tf_lossscale",
        "tf.convert_to_tensor(1 / loss_scale)",
        "tf.convert_to_tensor(1.0 * loss_scale)",
        _CORE + "test_scaling.py",
    ),
    Defect(
        "tf_lossscale",
        "if all(gradient is None for gradient, _ in pairs):",
        "if any(gradient is None for gradient, _ in pairs):",
        _KERAS + "test_final.py",
    ),
    Defect(
        "tf_lossscale",
        "if loss_scale < 1:",
        "if loss_scale < 0:",
        _TF1 + "test_loss_scales.py",
    ),
    Defect(
        "tf_lossscale",
        "decr_ratio: Any = 0.8,",
        "decr_ratio: Any = 0.5,",
        _TF1 + "test_signatures.py",
    ),
    Defect(
        "tf_lossscale",
        "if loss_scale_value < 1:",
        "if loss_scale_value < 0:",
        _TF1 + "test_defects.py",
    ),
    Defect(
        "tf_lossscale",
        'identifier == "dynamic"',
        'identifier == "Dynamic"',
        _TF1 + "test_defects.py",
    ),
    Defect(
        "tf_lossscale",
        "if self._loss_scale is None:",
        "if False:",
        _TF1 + "test_defects.py",
    ),
    Defect(
        "tf_lossscale",
        "if mixed_policy_is_set():",
        "if False:",
        _TF1 + "test_graph_rewrite.py",
    ),
    Defect(
        "tf_lossscale",
        'elif overrides(self._family, self.inner_optimizer, "apply_gradients"):',
        "elif False:",
        _KERAS + "test_hooks.py::test_an_override_for_keras_2_is_called_once_by_each_step",
    ),
    Defect(
        "tf_lossscale",
        "if int(growth_steps) < 1:",
        "if int(growth_steps) < -9:",
        _KERAS + "test_final.py",
    ),
    Defect(
        "tf_lossscale",
        "if not isinstance(dynamic, bool):",
        "if False:",
        _KERAS + "test_final.py",
    ),
    Defect(
        "tf_lossscale",
        "if isinstance(loss_scale, (int, float)) and not isinstance(loss_scale, bool):",
        "if isinstance(loss_scale, int) and not isinstance(loss_scale, bool):",
        _KERAS + "test_experimental.py",
    ),
    Defect(
        "tf_lossscale",
        "if len(set(sizes)) != 1:",
        "if False:",
        _SHARDS + "test_contract.py",
    ),
    Defect(
        "tf_lossscale",
        "if reduction not in (_SUM, _MEAN):",
        "if False:",
        _SHARDS + "test_contract.py",
    ),
    Defect(
        "tf_lossscale",
        "elif symbol.legacy:",
        "elif not symbol.legacy:",
        "tests/shim/install/test_install.py",
    ),
    Defect(
        "tf_lossscale",
        "raise AttributeError(self.refuse(name))",
        "raise AttributeError(name)",
        "tests/shim/install/test_install.py::test_what_is_not_supplied_is_refused_with_what_is",
    ),
    Defect(
        "tf_lossscale",
        "if every < 1:",
        "if every < -9:",
        "tests/shim/monitoring/test_monitor.py",
    ),
    Defect(
        "tf_lossscale",
        "self._at_minimum and scale <= _MINIMUM",
        "self._at_minimum and scale < _MINIMUM",
        "tests/shim/monitoring/test_monitor.py",
    ),
    Defect(
        "tf_lossscale",
        "if not same_scale(scale, following):",
        "if False:",
        _RECORDS + "test_scale_rules.py",
    ),
    Defect(
        "tf_lossscale",
        "if not same_scale(expected, following):",
        "if False:",
        _RECORDS + "test_scale_rules.py",
    ),
    Defect(
        "tf_lossscale",
        'isinstance(value, float) and not math.isfinite(value):\n        return "nan"',
        'False:\n        return "nan"',
        "tests/shim/recording/test_record_keras.py",
    ),
    Defect(
        "tf_lossscale",
        "if settings and verdict is not Verdict.IDENTICAL:",
        "if False:",
        _RECORDS + "test_optimizer_settings.py",
    ),
    Defect(
        "tf_lossscale",
        "        if before:\n            return Verdict.UNDECIDED",
        "        if False:\n            return Verdict.UNDECIDED",
        _RECORDS + "test_parting.py",
    ),
    Defect(
        "tf_lossscale",
        'raise refusal("A step on a TPU", ',
        'print("A step on a TPU", ',
        _RECORDS + "test_record_refusals.py",
    ),
    Defect(
        "tf_lossscale",
        "if state.layout.family != to:",
        "if False:",
        _CHECKPOINTS + "test_convert_names.py",
    ),
    Defect(
        "tf_lossscale",
        "if _files(destination) and not force:",
        "if False:",
        _CHECKPOINTS + "test_convert_files.py",
    ),
    Defect(
        "tf_lossscale",
        "raise CheckpointError(_not_found(path))",
        "print(_not_found(path))",
        _CHECKPOINTS + "test_inspect.py",
    ),
    Defect(
        "tf_lossscale",
        'f"{error.strerror.lower()}{where}"',
        'f"{error.strerror}{where}"',
        "tests/shim/cli/test_failing_output.py",
    ),
    Defect(
        "tf_lossscale",
        "return names, module_getattr, lambda: list(names)",
        "return names, module_getattr, lambda: []",
        "tests/shim/test_namespaces.py",
    ),
    Defect(
        "tf_lossscale",
        '_TPU = ("contrib.tpu", "tpu", "compat.v1.tpu")',
        '_TPU = ("contrib.tpu", "tpu")',
        "tests/package/test_public_api.py",
    ),
    Defect(
        "tf_lossscale",
        '"keras": (3, 0, 0)',
        '"keras": (3, 1, 0)',
        _CODEMODS + "project/test_pins.py",
    ),
]

CODEMODS: List[Defect] = [
    Defect(
        "codemods",
        "return not (self.ignore and code.startswith(self.ignore))",
        "return True",
        _CODEMODS + "engine/test_comments.py",
    ),
    Defect(
        "codemods",
        "if self.select and not code.startswith(self.select):",
        "if False:",
        _CODEMODS + "cli/test_command.py",
    ),
    Defect(
        "codemods",
        "if plain and not _COMMAND.match(path):",
        "if False:",
        _CODEMODS + "reports/test_reports.py",
    ),
    Defect(
        "codemods",
        "if status.st_nlink > 1:",
        "if False:",
        _CODEMODS + "files/test_untrusted_links.py",
    ),
    Defect(
        "codemods",
        'raise ReadOnlyFileError(0, "read-only", path)',
        "pass",
        _CODEMODS + "files/test_atomic_write.py",
    ),
    Defect(
        "codemods",
        "if not text.isprintable():",
        "if False:",
        _CODEMODS + "reports/test_reports.py",
    ),
    Defect(
        "codemods",
        'if operator == "<=":',
        'if operator == "<>":',
        _CODEMODS + "project/test_pins.py",
    ),
    Defect(
        "codemods",
        'name = re.sub("[-_.]", "-", name).lower()',
        "name = name.lower()",
        _CODEMODS + "project/test_pins.py",
    ),
    Defect(
        "codemods",
        "if two and three:",
        "if False:",
        _CODEMODS + "cli/test_keras_target.py",
    ),
    Defect(
        "codemods",
        '(scope is self or scope.kind != "class")',
        "True",
        _CODEMODS + "resolve/test_scopes.py",
    ),
    Defect(
        "codemods",
        'return not self.name.endswith("LossScale")',
        "return True",
        _CODEMODS + "resolve/test_legacy_symbols.py",
    ),
    Defect(
        "codemods",
        'return f"{SHIM}.{namespace}.{legacy.name}"',
        'return f"{SHIM}.{legacy.name}"',
        _CODEMODS + "rules/test_rules.py",
    ),
    Defect(
        "codemods",
        'namespace = "compat.v1." + namespace',
        'namespace = "compat.v2." + namespace',
        _CODEMODS + "rules/test_rules.py",
    ),
    Defect(
        "codemods",
        "if code.startswith(prefix)\n",
        "if code == prefix\n",
        _CODEMODS + "engine/test_comments.py",
    ),
    Defect(
        "codemods",
        'b"lossscale:",',
        'b"lossscale;",',
        _CODEMODS + "engine/test_comments.py",
    ),
    Defect(
        "codemods",
        "if given_back == source:",
        "if True:",
        _CODEMODS + "engine/test_torture.py",
    ),
    Defect(
        "codemods",
        "for mark in marks if mark not in present]",
        "for mark in marks]",
        _CODEMODS + "engine/test_transform.py",
    ),
    Defect(
        "codemods",
        'if language in ("", "python", "ipython"):',
        "if True:",
        _CODEMODS + "engine/test_notebook.py",
    ),
    Defect(
        "codemods",
        "if magic is not None and magic[1] not in _PYTHON_CELLS:",
        "if False:",
        _CODEMODS + "engine/test_magics.py",
    ),
    Defect(
        "codemods",
        'text.replace("%", "%25")',
        "text",
        _CODEMODS + "reports/test_reports.py",
    ),
    Defect(
        "codemods",
        "{'needs' if summary.manual == 1 else 'need'} you",
        "need you",
        _CODEMODS + "reports/test_reports.py",
    ),
    Defect(
        "codemods",
        "elif -exit_code == signal.SIGSEGV:",
        "elif False:",
        _CODEMODS + "cli/test_command.py",
    ),
    Defect(
        "codemods",
        "if request.write and (request.check or",
        "if request.write and (False or",
        _CODEMODS + "cli/test_command.py",
    ),
    Defect(
        "codemods",
        'if key == "report" and any(',
        "if False and any(",
        _CODEMODS + "cli/test_untrusted_settings.py",
    ),
]

DEFECTS: List[Defect] = [*SHIM, *CODEMODS]
