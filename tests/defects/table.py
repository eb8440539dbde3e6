"""Deliberate defects, each with the smallest test that must fail for it."""

import re
import textwrap
from typing import Dict, Iterator, List, NamedTuple

__all__ = ["COMPLETE", "DEFECTS", "WITHOUT_DEFECT", "Defect"]


class Defect(NamedTuple):
    """A change that a test must notice.

    Attributes:
      place: the folder whose modules are searched, so that a module may move within it; one module
        if others have the same text.
      text: what is replaced; the modules have it once.
      replacement: what takes its place.
      test: a test file, or one test of it, as pytest takes it.
    """

    place: str
    text: str
    replacement: str
    test: str


def defects(place: str, table: str) -> Iterator[Defect]:
    """Below each test, what it must notice: the lines with `-` are replaced by those with `+`."""
    for section in re.split(r"^# ", textwrap.dedent(table), flags=re.MULTILINE)[1:]:
        test, _, changes = section.partition("\n")
        for pair in re.findall(r"((?:^- .*\n)+)((?:^\+ .*\n)+)", changes, re.MULTILINE):
            text, replacement = (
                re.sub("^..", "", lines, flags=re.MULTILINE)[:-1] for lines in pair
            )
            yield Defect(place, text, replacement, f"tests/{test}")


SHIM = r"""
    # shim/tf1/test_golden.py
    - changes = tf.logical_or(counted >= period, tf.logical_not(finite))
    + changes = tf.logical_or(counted > period, tf.logical_not(finite))
    - where(divided < minimum, tf.fill
    + where(divided < 2.0 * minimum, tf.fill
    - tf.logical_and(not_finite, bad >= manager._decr_every_n_nan_or_inf)
    + tf.logical_and(not_finite, bad > manager._decr_every_n_nan_or_inf)
    - return where(tf1.is_finite(new), new, old)
    + return new

    # shim/workers/test_asynchronous.py::test_threads_share_an_optimizer
    - return branch_of_state(changes, change, lambda: add(good_steps, 1))
    + return assign_all((scale, where(finite, read(scale), read(scale) / multiplier)))

    # shim/keras/test_step_style.py
    - if here.has(Call.READ_DYNAMIC_SCALE):
    + if False:
    - is_mixed = here.has_after(scaled_at, *_OF_KERAS_2)
    + is_mixed = False
    - self.begin()  # what was called before, such as by a validation, is no part of `fit`
    + pass
    - key = graph.name if function is None else weakref.ref(function)
    + key = graph.name
    - for traced in self._traced.pending(reversed(_traced_functions())):
    + for traced in []:
    - if other is not self and other._may_have_scaled(gradients, place, here):
    + if False:

    # shim/keras/test_hooks.py::test_the_inner_optimizers_methods_are_called
    - if is_needed or optimizer_v2.has_own_aggregation(wrapper._family, inner):
    + if is_needed:

    # shim/core/test_finite.py
    - return tf1.is_finite(tensor)
    + return tf.logical_not(tf1.is_nan(tensor))
    - return branch(tf.logical_not(certain), lambda: _by_elements(values), only_tests=True)
    + return certain

    # shim/keras/test_final.py
    - loss * tf.cast(loss_scale(), loss.dtype.base_dtype)
    + loss / tf.cast(loss_scale(), loss.dtype.base_dtype)
    - if all(gradient is None for gradient, _ in pairs):
    + if any(gradient is None for gradient, _ in pairs):
    - if int(growth_steps) < 1:
    + if int(growth_steps) < -9:
    - if not isinstance(dynamic, bool):
    + if False:

    # shim/core/test_scaling.py
    - tf.convert_to_tensor(1 / loss_scale)
    + tf.convert_to_tensor(1.0 * loss_scale)

    # shim/tf1/test_loss_scales.py
    - if loss_scale < 1:
    + if loss_scale < 0:

    # shim/tf1/test_signatures.py
    - decr_ratio: float = 0.8,
    + decr_ratio: float = 0.5,

    # shim/tf1/test_defects.py
    - if loss_scale_value < 1:
    + if loss_scale_value < 0:
    - identifier == "dynamic"
    + identifier == "Dynamic"
    - if self._loss_scale is None:
    + if False:

    # shim/tf1/test_graph_rewrite.py
    - if graphs.mixed_policy_is_set():
    + if False:

    # shim/keras/test_hooks.py::test_an_override_for_keras_2_is_called_once_by_each_step
    - elif gradients and keras_optimizers.overrides(self._family, inner, "apply_gradients"):
    + elif False:

    # shim/keras/test_experimental.py
    - if isinstance(loss_scale, (int, float)) and not isinstance(loss_scale, bool):
    + if isinstance(loss_scale, int) and not isinstance(loss_scale, bool):

    # shim/cross_shard/test_contract.py
    - if len(set(sizes)) != 1:
    + if False:
    - if reduction not in (_SUM, _MEAN):
    + if False:

    # shim/install/test_install.py
    - if is_replaced or (symbol.legacy and name not in present):
    + if is_replaced or (not symbol.legacy and name not in present):

    # shim/install/test_install.py::test_what_is_not_supplied_is_refused_with_what_is
    - raise AttributeError(name if name.startswith("__") else self.refuse(name))
    + raise AttributeError(name)

    # shim/monitoring/test_monitor.py
    - if every < 1:
    + if every < -9:
    - minimum is not None and reading.scale <= minimum
    + minimum is not None and reading.scale < minimum

    # shim/monitoring/test_layers.py
    - is_around = list(layers) == list(self._layers[: len(layers)])
    + is_around = False

    # shim/monitoring/test_explain.py
    - self._is_explained = True
    + pass

    # shim/monitoring/test_clipping.py
    - if len(rows) < 2 or most_factors <= own_factors:
    + if True:

    # shim/recording/test_scale_rules.py
    - if not same_scale(scale, following):
    + if False:
    - if not same_scale(expected, following):
    + if False:

    # shim/recording/test_record_keras.py
    - isinstance(value, float) and not math.isfinite(value):
    + False:

    # shim/recording/test_compare.py
    - if len(shape) >= _MATRIX and
    + if False and
    - if measure.largest.ratio > largest_ratio(runs):
    + if False:
    - return has_average and measure.on_average > limits.LEAVES_ON_AVERAGE.value
    + return False

    # shim/recording/test_record_gaps.py
    - self.refuse("A step on a TPU",
    + print("A step on a TPU",

    # shim/checkpoint/test_convert_names.py
    - if state.layout.family != to], to)
    + if False], to)

    # shim/checkpoint/test_convert_files.py
    - if _files(destination) and not force:
    + if False:

    # shim/checkpoint/test_inspect.py
    - raise CheckpointError(_nothing_there(path))
    + print(_nothing_there(path))

    # shim/cli/test_failing_output.py
    - f"{error.strerror.lower()}{where}"
    + f"{error.strerror}{where}"

    # shim/test_namespaces.py
    - return names, module_getattr, names.copy
    + return names, module_getattr, lambda: []

    # package/test_public_api.py
    - _TPU = ("contrib.tpu", "tpu", "compat.v1.tpu")
    + _TPU = ("contrib.tpu", "tpu")

    # codemods/project/test_pins.py
    - "keras": (3, 0, 0)
    + "keras": (3, 1, 0)

    # shim/install/test_untouched.py::test_nothing_is_changed_outside_the_scopes
    - setattr(self.cls, self.name, self._original)
    + pass
    - # What somebody has replaced since is left alone.
    -         self._replacements.undo()
    + pass
    - def undo(self) -> None:
    -         self._replacements.undo()
    + def undo(self) -> None:
    +         pass
    - finally:
    -         replacements.undo()
    + finally:
    +         pass
    - undo_read()
    + pass
    - self._undo()
    -         self._eager.close()
    + self._undo()

    # shim/install/test_untouched.py::test_two_replacements_of_one_method_end_in_any_order
    - later.earlier = entry.earlier
    + pass
    - setattr(owner, entry.name, entry.earlier)
    + pass

    # shim/install/test_untouched.py::test_an_inherited_method_is_inherited_again
    - delattr(owner, entry.name)
    + pass

    # shim/recording/test_record_sessions.py::test_a_recording_keeps_no_graph_alive
    - self._rings_of_graphs = weakref.WeakKeyDictionary()
    + self._rings_of_graphs = {}
    - return [rings[i] for i in known[key]]
    + known[key, "rings"] = [rings[i] for i in known[key]]
    +         return known[key, "rings"]

    # shim/test_outer_optimizers.py::test_updates_of_an_optimizer_outside_are_refused
    - setattr(cls, method, _refusing(method, error, prefix))
    + pass

    # shim/checkpoint/test_inspect.py::test_files_of_the_real_classes
    - if name in _NAMES and not entry.shape:
    + if False:
    """

CODEMODS = r"""
    # codemods/engine/test_comments.py
    - return not (self.ignore and code.startswith(self.ignore))
    + return True
    - if code.startswith(prefix)
    + if code == prefix
    - b"lossscale:",
    + b"lossscale;",

    # codemods/cli/test_command.py
    - if self.select and not code.startswith(self.select):
    + if False:
    - elif -exit_code == signal.SIGSEGV:
    + elif False:
    - if self.write and (self.check or
    + if self.write and (False or

    # codemods/reports/test_reports.py
    - if plain and not _COMMAND.match(path):
    + if False:
    - if not text.isprintable():
    + if False:
    - text.replace("%", "%25")
    + text
    - {'needs' if summary.manual == 1 else 'need'} you
    + need you

    # codemods/files/test_untrusted_links.py
    - if status.st_nlink > 1:
    + if False:

    # codemods/project/test_pins.py
    - if operator == "<=":
    + if operator == "<>":
    - name = re.sub("[-_.]", "-", name).lower()
    + name = name.lower()

    # codemods/cli/test_keras_target.py
    - if two and three:
    + if False:

    # codemods/resolve/test_small_sources.py
    - return bool(paths) and all(_names_class(path) for path in paths)
    + return bool(paths)
    - is_never_taken=is_taken is not None,
    + is_never_taken=False,
    - return not _is_guarded(program, attribute)
    + return True
    - frozenset(reader.stars),
    + frozenset(),
    - return Mention.MEMBER
    + return Mention.VALUE
    - self._unclear(node, scope, Why.RE_EXPORT, module)
    + pass
    - return parent if isinstance(parent, cst.Call) and parent.func is node else None
    + return None
    - return (_constant(value),)
    + return None
    - if root not in dirty:
    + if False:
    - return scope.bindings_of(name.value) if scope is not None else []
    + return []

    # codemods/reports/test_reports.py
    - "end_column": finding.end_column or finding.column,
    + "end_column": finding.column,
    - "level": "note" if finding.outcome is Safety.SAFE else "warning",
    + "level": "note",

    # codemods/resolve/test_scopes.py
    - (scope is self or scope.kind is not ScopeKind.CLASS)
    + True

    # codemods/resolve/test_legacy_symbols.py
    - return not self.name.endswith("LossScale")
    + return True

    # codemods/rules/test_rules.py
    - return f"{SHIM}.{namespace}.{legacy.name}"
    + return f"{SHIM}.{legacy.name}"
    - namespace = "compat.v1." + namespace
    + namespace = "compat.v2." + namespace

    # codemods/engine/test_torture.py
    - raise ReadOnlyFileError(0, "read-only", path)
    + pass
    - if given_back == source:
    + if True:

    # codemods/engine/test_transform.py
    - for mark in marks if mark not in present]
    + for mark in marks]

    # codemods/engine/test_notebook.py
    - if language in ("", "python", "ipython"):
    + if True:

    # codemods/engine/test_magics.py
    - if magic is not None and magic[1] not in _PYTHON_CELLS:
    + if False:

    # codemods/cli/test_untrusted_settings.py
    - if key == "report" and any(
    + if False and any(

    # codemods/engine/test_notebook.py::test_arrays_and_strings_say_where_they_stand
    - array.start, array.end = at[1] - 1, end
    + array.start, array.end = at[1], end

    # codemods/engine/test_transform.py::test_libcst_is_as_before
    - cst.CSTNode.__post_init__ = validate  # type: ignore[method-assign]
    + pass

    # codemods/cli/test_command.py::test_failures_are_status_2_and_the_other_files_are_written
    - if not self._quiet:
    + if False:

    # codemods/cli/test_command.py::test_shows_a_diff_and_writes_nothing
    - if arguments.command == "migrate":
    + if False:
    - if choice is None:
    + if False:
    - if not (plan.write and outcome.changed):
    + if not outcome.changed:
    - return int(bool(self.left or (self.changed and not self.wrote)))
    + return int(bool(self.left))

    # codemods/cli/test_command.py::test_wrong_usage_is_status_2
    - if name not in FORMATS:
    + if False:
    - for end in range(len(name), len("LS"), -1):
    + for end in range(len(name), 0, -1):

    # codemods/cli/test_rule_pages.py::test_the_committed_pages_are_current
    - if example.target is Target.FINAL:
    + if False:
    - "LS910": "a legacy
    + "LS919": "a legacy

    # codemods/cli/test_settings.py::test_each_key
    - if request.settings_note:
    + if False:

    # codemods/rules/test_paths_in_strings.py::test_reported
    - if not isinstance(call, cst.Call) or argument not in call.args[1:2]:
    + if False:

    # codemods/rules/test_rules.py::test_example
    - if not has_twins:
    + if False:
    - return bool(is_named) and ("type" in types or bool(program.attributes("__class__")))
    + return True
    - if found is None or len(found) < 2:
    + if False:
    - if not (options.for_keras_3 or options.to_shim) or is_origin_known(decision):
    + if False:
    - if not is_origin_known(decision):
    + if False:
    - if not loops or decision.goes_to_shim(Group.KERAS_OPTIMIZERS):
    + if False:
    - if mention is Mention.CALL:
    + if False:
    - if reference.legacy.root != "tf_keras" and not is_repaired:
    + if False:
    - if is_private or name in _CONFIGS:
    + if False:
    - if not _needs_shim(program, read, owner, member):
    + if False:
    - if is_experimental and _first_constant(program, reference) == (None,):
    + if False:
    - if made_by and not _are_final(program, made_by):
    + if False:
    - if text.startswith("> "):
    + if False:
    - if legacy.is_on_shim and (options.to_shim or legacy.family is Family.CONTRIB):
    + if False:
    - if place is not None:
    + if False:
    - if is_ours and is_called and _function(program, attribute) in functions:
    + if False:
    - if module is None or module.is_current or is_of_shim(path):
    + if False:
    - if has_loss_scale or program.mixed or program.unclear:
    + if False:

    # codemods/rules/test_version_tests.py::test_the_line_to_write_compares_numbers
    - if not isinstance(test, cst.Call) or not isinstance(test.func, cst.Attribute):
    + if False:

    # codemods/run/test_written_for_keras_3.py::test_the_shims_class_has_the_methods_of_both
    - if options.to_shim:
    + if False:
    - return Trait.KERAS_3_METHODS in traits and Trait.KERAS_2_METHODS not in traits
    + return Trait.KERAS_3_METHODS in traits

    # codemods/rules/test_rules.py::test_example
    - if why is Why.RE_EXPORT:
    + if False:
    - if branch.has_final:
    + if False:
    - is_unsafe = proposal.outcome is Safety.UNSAFE and self._options.unsafe
    + is_unsafe = proposal.outcome is Safety.UNSAFE
    - Kind.UNKNOWN: _UNKNOWN}
    + Kind.UNKNOWN: ""}

    # codemods/rules/test_silenced_re_exports.py::test_one_finding_where_it_is_used
    - if export.is_kept:
    + if False:

    # codemods/run/test_names_of_other_files.py::test_a_flag_elsewhere_that_compares_text_is_noted
    - return self._reached_from({node for node, made in self._made.items() if made.depends})
    + return {node for node, made in self._made.items() if made.depends}

    # codemods/decision/test_small_runs.py::test_the_file_of_a_module
    - for _ in range(level - 1):
    + for _ in range(level):

    # codemods/decision/test_small_runs.py::test_a_module_with_nothing_to_decide_joins_no_programs
    - if imported in leading:
    + if True:

    # codemods/decision/test_small_runs.py::test_the_file_of_a_package_runs_with_each_of_its_modules
    - return found | ({package} if package is not None else set())
    + return found

    # codemods/run/test_data_files.py::test_what_is_no_configuration_or_no_legacy_path_is_left
    - if self._path.endswith(_TEXT) and shown.startswith("(", named.end):
    + if False:

    # codemods/engine/test_comments.py::test_what_binds_the_name_of_a_silenced_place_stays
    - _add_what_binds(program, places, found)
    -     return found
    + pass
    +     return found

    # codemods/engine/test_notes.py
    - if reason.file.endswith(NOTEBOOK):
    + if False:
    - if not others:
    + if len(reasons) == 1:

    # codemods/engine/test_parts.py::test_parts_give_the_same_tree
    - return end <= begin and is_plain and not is_continued
    + return end <= begin and is_plain

    # codemods/engine/test_parts.py::test_tokens_of_strings_and_comments_do_not_count
    - if _FORMAT.search(source, max(start - 2, 0), start):
    + if False:

    # codemods/engine/test_notebook.py::test_what_cannot_be_processed_is_reported
    - return FileError(path, error.line, error.message, error.is_syntax)
    + return FileError(path, 0, error.message, error.is_syntax)

    # codemods/engine/test_screen.py::test_not_ruled_out
    - if self._stars and not self._read.isdisjoint(NAMES):
    + if False:

    # codemods/engine/test_screen.py::test_ruled_out
    - yield from () if id(node) in docstrings else _texts(node.value)
    + yield from _texts(node.value)

    # codemods/engine/test_comments.py::test_an_unused_comment_is_reported_without_legacy_symbols
    - if any(may_suppress(source.data) for source in sources):  # its comments are needed, too
    + if False:

    # codemods/run/test_written_for_keras_3.py::test_the_final_class_stays_in_every_file
    - return not is_same or bool(facts.asks & (fine.others ^ coarse.others))
    + return not is_same

    # codemods/files/test_diffs.py::test_git_applies_a_diff
    - if group and edit.start - group[-1].end > 2 * _CONTEXT:
    + if group and edit.start - group[-1].end > _CONTEXT:
    - length = bisect.bisect_left(lowest, number)
    + length = bisect.bisect_right(lowest, number + 1)

    # codemods/files/test_untrusted_links.py::test_another_directory_in_its_place_is_seen
    - if not os.path.samestat(now.status(), self.status()):
    + if False:

    # codemods/files/test_untrusted_links.py::test_links_to_the_data_of_version_control_are_left
    - if self._is_internal(target):
    + if False:

    # codemods/files/test_discover.py::test_a_file_that_is_named_far_below_an_excluded_directory
    - self._directories[parent] or self._matches(directory)
    + self._matches(directory)

    # codemods/files/test_untrusted_git.py::test_nothing_of_a_work_tree_runs
    - ("clean=", "process=", "required=0")
    + ("clean=", "required=0")
    - if object_id in missing:
    + if False:

    # codemods/run/test_loaded_by_configuration.py::test_other_lines_connect_nothing
    - yield from objects_named(value, is_listing)
    + yield from objects_named(value)

    # codemods/project/test_requirements.py::test_the_settings_do_not_name_the_package
    - _NAME.search(_SETTINGS.sub(b"", data))
    + _NAME.search(data)

    # codemods/resolve/test_small_sources.py::test_dependence_on_the_version
    - if has_call and not _handles_attribute_error(program, statement):
    + if has_call:

    # codemods/resolve/test_qualified_names.py::test_an_answer_from_inside_a_circle_is_not_kept
    - if not before:  # a result found inside a cycle is incomplete
    + if True:

    # codemods/resolve/test_qualified_names.py::test_the_attributes_between_two_paths
    - and path != "tensorflow.compat":
    + and path:

    # codemods/rewrite/test_arguments.py::test_renamed
    - elif len(arguments) < call.args.index(argument):
    + elif False:

    # codemods/engine/test_transform.py::test_a_comment_about_a_loss_scale_keeps_it
    - if not is_plain or comments_in(line):
    + if not is_plain:

    # codemods/rewrite/test_imports.py::test_import
    - leading_lines=[*line.leading_lines, *lost]
    + leading_lines=line.leading_lines

    # codemods/rules/test_restore_notes.py::test_other_methods_are_not_noted
    - if any("load_weights" in scope.bindings for scope in scopes):
    + if False:

    # codemods/run/test_baseline.py::test_moves_do_not_matter_but_counts_do
    - if self._left[key] < 1:
    + if key not in self._left:

    # codemods/cli/test_untrusted_search.py::test_a_search_that_takes_too_long_ends_with_an_error
    - self.is_over = True
    + pass

    # codemods/run/test_names_of_other_files.py::test_an_import_that_others_read_keeps_its_module
    - links if links.is_known else _links_of_unparsed(source)
    + links
    - if is_imported and self.imports.is_read_elsewhere(variable):
    + if False:

    # codemods/engine/test_transform.py::test_a_finding_has_its_line_unless_that_is_long
    - return line if len(line) < LONGEST_LINE else ""
    + return line

    # codemods/reports/test_reports.py::test_html_shows_the_line_of_a_place_as_text
    - <span>{escape(finding.text)}</span>
    + <span>{finding.text}</span>

    # codemods/cli/test_untrusted_settings.py::test_a_report_of_the_command_line_follows_no_link
    - if stat.S_ISLNK(mode):
    + if False:

    # codemods/run/test_statuses.py::test_a_worker_without_a_parent_does_not_begin
    - if os.getppid() != parent:
    + if False:

    # codemods/engine/test_transform.py::test_an_import_that_only_a_string_names_stays
    - if is_kept or self._is_read_otherwise(variable):
    + if is_kept:

    # codemods/rules/test_second_step.py::test_two_steps_end_where_one_does
    - if reference.legacy.is_on_shim and not options.unsafe:
    + if reference.legacy.is_on_shim:

    # codemods/run/test_data_files.py::test_a_path_in_a_file_that_is_python_by_chance_is_reported
    - if any(candidate.is_data for candidate in candidates):
    + if False:
    """

COMPLETE = ()
"""The packages in which each module has a defect."""

WITHOUT_DEFECT: Dict[str, str] = {}
"""The modules in which none is possible that TensorFlow 2.21 shows, and why."""

DEFECTS: List[Defect] = [*defects("tf_lossscale", SHIM), *defects("codemods", CODEMODS)]
