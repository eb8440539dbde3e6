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
    - if reduction not in known:
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

    # shim/checkpoint/test_convert_powers.py::test_control_flow_v2_drops_the_scopes_of_the_program
    - names[power.key] = _joined("", name, number) if is_known else None
    + names[power.key] = _joined(power.scope, name, number) if is_known else None

    # shim/checkpoint/test_convert_powers.py::test_two_optimizers_of_other_scopes_are_the_users_to_rename
    - is_known = len({power.scope for power in group}) == 1
    + is_known = True

    # shim/checkpoint/test_convert_powers.py::test_a_fixed_loss_scale_of_contrib
    - if not states and not (options["control_flow"] or options["renames"]):
    + if not states:

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

    # claims/test_exports.py::test_mypy_sees_every_public_name_and_only_those
    - ExperimentalPolicy as Policy,
    + ExperimentalPolicy,

    # claims/test_versions.py::test_the_changelog_begins_with_this_version
    - VERSION = "1.0.0"
    + VERSION = "1.0"

    # package/test_package.py::test_what_is_called_tensorflow_and_is_not_gives_the_install_hint
    - if not hasattr(tensorflow, "__version__"):
    + if False:

    # shim/checkpoint/test_child.py::test_however_the_child_ends
    - "damaged: the library that reads it crashed" if ready else failed
    + failed

    # shim/checkpoint/test_convert_for_keras3.py::test_what_is_refused
    - if values.get("decay", 0) != 0:
    + if False:
    - self._paths[child] = f"{start}/{name}" if start else name
    + self._paths[child] = name

    # shim/checkpoint/test_convert_objects.py::test_options_for_names_are_refused
    - plans.check_known(states)
    -     plans.check_no_names(**options)
    + plans.check_known(states)

    # shim/checkpoint/test_inspect.py::test_optimizers
    - if node.slots and number not in known:
    + if node.slots:
    - if "base_optimizer" in names:
    -         return Layout.INNER_IS_CHILD
    + if "base_optimizer" in names:
    +         return Layout.OPTIMIZER_V2
    - if name in ("inner_optimizer", "base_optimizer")
    + if name == "inner_optimizer"

    # shim/checkpoint/test_inspect.py::test_optimizers_of_other_files
    - classes=named.classes or optimizer.classes,
    + classes=optimizer.classes,
    - inner = outer["inner_optimizer"] if _is_group(outer.get("inner_optimizer")) else outer
    + inner = outer
    - is_known = optimizer in SLOTS_OF_V1 or optimizer == _MOMENTUM
    + is_known = optimizer in SLOTS_OF_V1

    # shim/checkpoint/test_keras_files.py::test_a_member_that_unpacks_to_much_more_is_refused
    - limit = max(_FREE_BYTES, _LARGEST_RATIO * os.path.getsize(path))
    + limit = max(_FREE_BYTES, _LARGEST_RATIO * sum(info.file_size for info in members))

    # shim/cli/test_children.py::test_another_environment_is_left_as_it_was
    - folders.remove(HERE)
    + pass

    # shim/cli/test_run.py::test_a_command_that_is_missing_or_misspelled
    - near = difflib.get_close_matches(arguments[0], [*CODEMODS, *OTHERS], 1)
    + near = difflib.get_close_matches(arguments[0], [*OTHERS], 1)

    # shim/cli/test_run.py::test_the_script_sees_what_python_shows_it
    - if getattr(sys.stdout, "write_through", False):
    + if False:

    # shim/cli/test_run_monitor.py::test_a_program_that_makes_no_step_has_no_loss_to_scale
    - self._originals.saw_other_steps and not self._recorder.saw_steps
    + not self._recorder.saw_steps
    - self.saw_steps = True
    + pass

    # shim/cli/test_run_monitor.py::test_the_module_has_the_option_too
    - main(["run", *sys.argv[1:]]
    + main(sys.argv[1:]

    # shim/core/test_accumulation.py::test_loops_of_both_kinds
    - term = term / tf.cast(scale, term.dtype)
    + pass

    # shim/core/test_minimum_scale.py::test_a_minimum_above_the_initial_scale_is_refused
    - if minimum > max(initial_scale, MINIMUM):
    + if minimum > max(initial_scale, SMALLEST):

    # shim/cross_shard/test_contract.py::test_other_dtypes_are_refused_off_the_tpu_too
    - if value.dtype.base_dtype not in _DTYPES:
    + if False:

    # shim/cross_shard/test_mirrored.py::test_sums
    - if len(shards.groups[shards.group]) == 1:
    + if len(shards.groups) == 1:

    # shim/cross_shard/test_mirrored.py::test_rounds_in_a_session_do_not_overlap
    - if not graph._add_control_dependencies:
    + if False:

    # shim/cross_shard/test_mirrored.py::test_rounds_in_a_session_do_not_overlap
    - if loop is not None and not graphs.rounds_can_wait():
    + if False:

    # shim/cross_shard/test_tpu_graphs.py::test_a_replicated_program_without_a_shard_count_assumes_one
    - if isinstance(context, _tpu_replication.TPUReplicateContext):
    -                 return True
    + if isinstance(context, _tpu_replication.TPUReplicateContext):
    +                 return False

    # shim/install/test_install.py::test_every_legacy_path_resolves_and_what_exists_is_left_alone
    - if not _finder.subscribers and _finder in sys.meta_path:
    + if False:

    # shim/keras/test_hyperparameters.py::test_one_that_is_restored_after_a_traced_step_is_logged
    - self._wrapper._restore_on_inner(name, value)
    + setattr(inner, name, value)

    # shim/keras/test_compile.py::test_a_second_compile_wraps_no_optimizer_twice
    - if loss_scale_class(optimizer) or (
    + if (

    # shim/keras/test_convert_to_legacy.py::test_no_other_configuration_has_the_role
    - if frame is None or frame.f_code.co_name != name:
    + if frame is None:

    # shim/keras/test_final.py::test_wrapping_twice
    - object.__setattr__(inner, MARK, True)
    + pass

    # shim/keras/test_hyperparameters.py
    - if self.__dict__.get("_is_traced") and _is_changed(old, value):
    + if False:
    - if self.__dict__.get("_is_traced") and _is_changed(old, value):
    + if _is_changed(old, value):

    # shim/keras/test_final.py::test_configs
    - config = {  # an inner optimizer that Keras has already made is not copied
    -         key: copy.deepcopy(value) if isinstance(value, dict) else value
    -         for key, value in config.items()
    -     }
    + config = dict(config)

    # shim/keras/test_first_use.py::test_every_keras_reads_ours
    - if table.get(name) is cls:
    -             del table[name]
    + pass

    # shim/keras/test_hooks.py::test_a_hook_that_is_never_called_is_reported
    - return [] if any(hasattr(family.base, name) for name in defined) else defined
    + return defined

    # shim/keras/test_hooks.py::test_the_inner_optimizers_methods_are_called
    - list(optimizer._aggregate_gradients(optimizer._transform_unaggregated_gradients(pairs)))
    + list(optimizer._aggregate_gradients(pairs))

    # shim/keras/test_keras2_checkpoints.py::test_a_class_that_the_file_does_not_name_is_logged
    - _ALIKE_OF_V2 = (("Adam", "AdamW", "Adamax"),)
    + _ALIKE_OF_V2 = (("Adam", "AdamW"),)

    # shim/keras/test_restore.py::test_an_order_that_the_file_shows_needs_no_build
    - if shape_of(own) == slot.tensor.shape] or variables
    + if False] or variables

    # shim/keras/test_keras2_checkpoints.py::test_slots_of_an_option_that_is_not_set_are_an_error
    - is_expected = bool(slots) or name == "momentums"
    + is_expected = True

    # shim/keras/test_keras2_checkpoints.py::test_every_optimizer_goes_on
    - slot = slots[index] if index < len(slots) else None
    + slot = slots[-1 - index] if index < len(slots) else None

    # shim/keras/test_keras3_optimizers.py::test_what_a_program_sets_after_it_has_restored_weights_is_kept
    - values = [*reversed(values[-own:]), *values[:-own]]
    + values = [*values[-own:], *values[:-own]]

    # shim/keras/test_keras_distribution.py::test_gradients_that_are_called_sums_are_tested_on_all_replicas
    - if replica_count() == 1:
    -         return flag
    + if True:
    +         return flag
    - if not request.same_on_replicas:
    -         finite =
    + if False:
    +         finite =

    # shim/keras/test_keras_policies.py::test_a_policy_of_tensorflow_that_is_set_by_our_name_is_ours
    - if not mark.is_experimental:
    -         return
    + if False:
    +         return

    # shim/keras/test_keras_policies.py::test_a_policy_reads_back_what_it_wrote
    - if self.name != SCALED:
    -             return not self.scales
    + pass

    # shim/keras/test_keras_policies.py::test_compile_applies_the_loss_scale_of_a_policy
    - installed_set_global_policy(PolicyThatIsSet(experimental.name, experimental))
    + installed_set_global_policy(experimental.name)

    # shim/keras/test_loss_scale_both_ways.py::test_in_eager_mode
    - for name in ("Value", "Tensor", "_TensorLike"):
    + for name in ("Tensor", "Value", "_TensorLike"):

    # shim/keras/test_loss_scale_calls.py::test_a_call_returns_the_current_scale
    - return self._tensor if called_for_a_value() else self._state()
    + return self._tensor

    # shim/keras/test_messages.py::test_errors_for_wrong_arguments_name_the_public_class
    - function = vars(function).get("__wrapped__")
    + function = None

    # shim/keras/test_recorded_checkpoints.py::test_ours_steps_and_writes_as_recorded
    - # A checkpoint that was given the inner optimizer has the loss scale, too.
    -             inner._track_trackable(state.saved, "loss_scale", overwrite=True)
    + pass

    # shim/keras/test_restore.py::test_a_class_that_the_file_does_not_name_is_noted
    - f"({self.written_by}){notes}; {len(self.initial)} variables
    + f"({self.written_by}); {len(self.initial)} variables

    # shim/keras/test_restore.py::test_a_fixed_scale_is_not_restored
    - if not getattr(self.outer, "dynamic", True):
    + if False:

    # shim/keras/test_restore.py::test_an_error_while_assigning_undoes_what_was_assigned
    - for planned, before in done:
    -             _put_back(planned, before)
    + pass

    # shim/keras/test_restore.py::test_classes_with_the_same_slots_are_told_apart
    - if known and name and name.lower() not in known:
    + if False:

    # shim/keras/test_restore.py::test_every_optimizer_goes_on
    - "Adamax": {"m": ("_m",), "v": ("_u", "u")},
    + "Adamax": {"m": ("_m",), "v": ("_velocities",)},

    # shim/keras/test_restore.py::test_hdf5_files_have_all_but_the_scale
    - numbers.setdefault(name, value)
    + pass

    # shim/keras/test_restore.py::test_files_of_keras_3_are_left_to_keras_3
    - if stored.is_of_keras_3:
    + if False:

    # shim/keras/test_restore.py::test_of_an_h5_file_without_a_loss_scale_keras_3_restores_the_weights
    - if optimizer is not None and _SCALE not in
    + if False and _SCALE not in

    # shim/keras/test_restore.py::test_a_model_without_variables_shows_what_creates_them
    - if getattr(model, "built", False):
    + if False:

    # shim/keras/test_restore.py::test_the_class_of_tensorflow_gets_the_loss_scale
    - scale, good_steps = (owner._lookup_dependency(name) for name in names)
    + scale, good_steps = map(children_of(owner).get, names)

    # shim/keras/test_restore.py::test_no_path_is_an_error
    - restore="_restore.restore",
    + restore="_restore.report",

    # shim/keras/test_restore.py::test_normalization_computes_with_what_was_restored
    - return False  # the mean of a `Normalization`
    + return True  # the mean of a `Normalization`
    - _finalize_layers(plan, models)
    -     report
    + report

    # shim/checkpoint/test_inspect.py::test_slots_in_an_h5_file_of_keras_3
    - find_slot = _slot_of_keras_3 if is_of_keras_3 else _slot_of
    + find_slot = _slot_of
    - if is_wrapped:
    + if True:

    # shim/checkpoint/test_inspect.py::test_an_optimizer_without_slots_is_known_by_its_counter
    - if slots or (not found and _is_of_keras(checkpoint)):
    + if slots:

    # shim/checkpoint/test_inspect.py::test_unreadable_parts_of_a_checkpoint_are_reported
    - if needed != stored:
    + if needed > stored:

    # shim/core/test_gradient_sums.py::test_each_sum_stays_with_its_variable_and_none_stays_none
    - return [(sums.get(index), variable) for index, (_, variable) in enumerate(pairs)]
    + return [(sums.get(index, 0.0), variable) for index, (_, variable) in enumerate(pairs)]

    # shim/keras/test_restore_matching.py::test_of_several_none_is_chosen
    - if len(numbers) == 1 and len(fitting) == 1:
    + if numbers and fitting:

    # shim/keras/test_restore_matching.py::test_names_can_contradict_an_order
    - elif stem in stems:
    -             return True
    + elif False:
    +             return True

    # shim/keras/test_restore.py::test_two_models_are_given_by_their_names
    - if len(distinct) > 1:
    + if False:

    # shim/keras/test_restore_saver_files.py::test_counters_that_differ_are_an_error
    - if len(set(counters.values())) > 1:
    + if False:

    # shim/keras/test_restore_saver_files.py::test_steps_of_one_of_two_optimizers_are_not_guessed
    - if is_unknown or len(set(by_powers.values())) > 1:
    + if False:

    # shim/keras/test_restore_settings.py::test_a_joint_counter_does_not_count_the_steps_of_one_adam
    - is_unknown = None in by_powers.values() and len(stored.powers) > 1
    + is_unknown = False

    # shim/keras/test_restore_settings.py::test_an_order_that_only_the_program_knows_is_noted
    - if len(variables) < 2 or all(
    + if True or all(

    # shim/keras/test_restore_orders.py::test_the_next_start_finds_each_slot
    - new = _in_turns(old, own_orders)
    + new = old

    # shim/keras/test_restore_orders.py::test_names_that_two_models_share
    - yield from ([model] for model in own or models)
    + yield from ()

    # shim/keras/test_restore_orders.py::test_the_next_start_finds_each_slot
    - for key in sorted(value, key=str):
    + for key in value:

    # shim/keras/test_restore_orders.py::test_an_optimizer_of_a_strategy_is_built_outside_of_its_scope
    - with self._scope():
    -             if self.kind is KerasKind.NEW:
    + if True:
    +             if self.kind is KerasKind.NEW:

    # shim/keras/test_restore_settings.py::test_the_order_of_names_is_not_the_one_of_the_program
    - return models or list(found.variables.values()), [found]
    + return models or [list(found.variables.values())], [found]

    # shim/keras/test_restore_settings.py::test_a_name_within_another_one_does_not_give_its_slots
    -         if nodes:
    -             return distinct(
    +         if any(node in match.variables for match in matches for node in nodes):
    +             return distinct(

    # shim/keras/test_restore_settings.py::test_a_momentum_that_the_program_lacks_is_an_error
    - and not self.inner.momentum and not self._list(name)
    + and False

    # shim/keras/test_restore_settings.py::test_settings_in_the_configuration_of_a_file_are_noted
    - if name in planned or _is_same(own.get(name), stored.get(name)):
    + if True:

    # shim/keras/test_restore_settings.py::test_schedules_in_the_configuration_of_a_file_are_compared
    - if before and now and before != now:
    + if False:

    # shim/keras/test_restore_settings.py::test_a_schedule_beside_a_constant_rate_is_noted
    - elif rate is None and not isinstance(
    + elif False and not isinstance(

    # shim/keras/test_restore_settings.py::test_accumulated_gradients_begin_at_zero
    - factor = program.steps_of_accumulation if
    + factor = 1 if

    # shim/keras/test_restore_settings.py::test_an_epsilon_that_no_saver_file_has_is_noted
    - if epsilon is not None and np.float32(epsilon)
    + if False and np.float32(epsilon)

    # shim/keras/test_keras2_checkpoints.py::test_weights_that_are_not_restored_cannot_be_lost_by_saving
    - is_incomplete = self._waits_for_build or self._failure or self._lost()
    + is_incomplete = self._waits_for_build or self._failure

    # shim/keras/test_lost_values.py::test_frozen_layers_that_are_not_restored_are_an_error
    - if id(value) in incomplete:
    + if False:

    # shim/keras/test_lost_values.py::test_a_loss_scale_of_an_own_class_loses_nothing_in_files_of_keras
    - self._checkpoints.check_save()
    -         self._family.base.save_own_variables(self, store)
    + self._family.base.save_own_variables(self, store)

    # shim/keras/test_lost_values.py::test_an_own_file_without_the_model_restores_no_weights
    - self._forget_optimizer(checkpoint)
    + self.forget()

    # shim/keras/test_restore_saver_files.py::test_names_are_refused_for_other_files
    - if names is not None:
    -         raise RestoreError(
    -             f"{prefix}: is no
    + if False:
    +         raise RestoreError(
    +             f"{prefix}: is no

    # shim/keras/test_shared_loss_scale.py::test_ours_says_that_nothing_is_shared
    - _has_warned[loss_scale] = True
    + pass

    # shim/keras/test_step_style.py::test_calls_in_inner_functions_count_again
    - self._calls[function] = [_END]
    + pass

    # shim/keras/test_step_style.py::test_other_gradients_of_one_loss_in_an_inner_function
    - return False if is_known else None
    + return False

    # shim/keras/test_strategies.py::test_only_classes_of_strategies_can_be_allowed
    - allow_strategy="_keras.strategies", wrap="_keras.wrap"
    + allow_strategy="_keras.wrap", wrap="_keras.wrap"
    - if not isinstance(strategy_class, type) or not issubclass(strategy_class, bases):
    + if not isinstance(strategy_class, type):

    # shim/keras/test_subclasses.py::test_the_program_runs_over_a_second_keras
    - implementations[-1].__mro__
    + implementations[0].__mro__

    # shim/keras/test_wrap.py::test_it_returns_what_compile_uses
    - keras = tf.keras if family is None else family.keras
    + keras = tf.keras

    # shim/monitoring/test_clipping.py::test_keras_3_where_scaled_gradients_are_clipped
    - factors += is_product
    + factors = is_product

    # shim/monitoring/test_explain.py::test_the_layer_is_named_after_some_skips
    - noticed = None if watched.skipped is None else watched.skipped()
    + noticed = None

    # shim/monitoring/test_monitor.py::test_a_variable_of_keras_3_has_its_path
    - name = variable.path if _is_of_keras_3(variable) else variable.name
    + name = variable.name

    # shim/monitoring/test_monitor.py::test_float16_without_a_scaled_loss
    - for layer in layers_of(model)
    -     )
    + for layer in [model]
    +     )

    # shim/recording/test_beginning.py::test_bits_that_may_be_so_by_chance_show_nothing
    - if len(values) < _FEW or not np.isfinite(values).all() or
    + if not np.isfinite(values).all() or

    # shim/recording/test_compare.py::test_a_baseline_is_another_run_of_the_old_program
    - if os.path.samefile(path, options.new):
    + if False:
    - if numbers not in seen:
    + if True:

    # shim/recording/test_show.py::test_what_to_do_next
    - if not self.bad:
    + if False:

    # shim/recording/test_compare.py::test_a_cause_in_the_norms_of_variables_must_be_that_of_all
    - return causes.pop() if len(causes) == 1 else None
    + return sorted(causes, key=str)[0]

    # shim/recording/test_compare.py::test_a_difference_in_the_first_step_may_be_rounding_if_no_disturbed_run_measures_it
    - is_measured = runs is None or bool(runs.conditions.again)
    + is_measured = True

    # shim/recording/test_compare.py::test_a_run_that_was_cut_off_is_never_the_same
    - Kind.CUT_OFF,
    -             Kind.BEGINS_LATER,
    + Kind.BEGINS_LATER,
    - if values["end"] < values["last"]:
    + if values["end"] > values["last"]:

    # shim/recording/test_compare.py::test_clipping_is_the_cause_only_where_the_other_run_does_not_clip
    - return own >= _STEPS and not any(counts.values())
    + return own >= _STEPS

    # shim/recording/test_compare.py::test_disturbed_runs_are_those_of_the_name_and_in_order
    - glob.glob(glob.escape(root) + ".disturbed-*"
    + glob.glob(root + ".disturbed-*"

    # shim/recording/test_compare.py::test_few_steps_show_little
    - FEW = Limit(20, "steps"
    + FEW = Limit(2, "steps"

    # shim/recording/test_compare.py::test_one_spike_does_not_flatten_the_page
    - ends[1] if values[-1] - high > _SPIKE * length > 0 else values[-1],
    + values[-1],

    # shim/recording/test_compare.py::test_optimizers_are_compared_with_those_of_equal_shapes
    - rest = [candidate for candidate in rest if candidate is not alike[0]]
    + pass

    # shim/recording/test_compare.py::test_the_command_reports_and_exits_by_the_verdict
    - "<tr class='here'>" if row[0].startswith(">") else "<tr>"
    + "<tr class='here'>"

    # shim/recording/test_compare.py::test_what_is_no_record_is_refused_with_a_sentence
    - if not whole or not -_LAST_COUNT <= value <= _LAST_COUNT:
    + if not whole:

    # shim/recording/test_disturb_command.py::test_the_command_puts_disturbed_runs_beside_the_record
    - if path not in paths:
    -                 os.remove(path)
    + os.remove(path)

    # shim/recording/test_endings.py::test_all_steps_are_written_and_whether_the_program_ended_itself
    - if has_ended and not self.is_closed:
    + if not self.is_closed:

    # shim/recording/test_hostile_files.py::test_a_result_is_written_neither_through_a_link_nor_over_a_record
    - if stat.S_ISLNK(status.st_mode) or not stat.S_ISREG(status.st_mode):
    + if not stat.S_ISLNK(status.st_mode) and not stat.S_ISREG(status.st_mode):

    # shim/recording/test_optimizer_settings.py::test_settings_of_keras_optimizers
    - is_unused = name in options and not value
    + is_unused = False

    # shim/recording/test_reading.py::test_the_end_line_shows_whether_a_run_was_cut_off
    - if count_of(value, "end") != self._steps:
    + if False:

    # shim/recording/test_record_gaps.py::test_a_step_that_ends_with_an_error_is_not_recorded
    - for step in self._steps:
    -                 step.failed()
    + pass

    # shim/recording/test_record_gaps.py::test_the_loss_of_another_thread_is_not_taken
    - if len(losses) != replicas or not is_one_each:
    + if len(losses) != replicas:

    # shim/recording/test_record_keras.py::test_recording_changes_nothing_and_says_what_happened
    - return "apply" if self.is_keras_3 else "apply_gradients"
    + return "apply_gradients"

    # shim/recording/test_record_sessions.py::test_a_second_recording_is_refused
    - session.check_not_recording()
    -     destination =
    + destination =

    # shim/recording/test_record_sessions.py::test_recording_changes_nothing_and_says_what_happened
    - with tf1.name_scope(scope):
    -             yield
    + yield

    # shim/recording/test_run_record.py::test_an_existing_file_is_refused_before_the_script_starts
    - if os.path.getsize(self.path) and not is_record(self.path):
    + if False:

    # shim/keras/test_restore_parts.py::test_each_optimizer_is_built_for_its_own_model
    - return self._of_slots(program, state)
    + return Trained(self._all)

    # shim/keras/test_restore_parts.py::test_an_order_that_the_file_lacks_is_not_guessed
    - if len({tuple(map(id, variables)) for _, variables in parts}) > 1:
    + if False:
    - if left and (is_shared or not (is_whole or is_listed)):
    + if left and is_shared:

    # shim/keras/test_restore.py::test_an_order_that_the_file_shows_needs_no_build
    - if len(counts) == len(shapes):
    + if False:

    # shim/keras/test_hyperparameters.py::test_the_report_names_one_that_the_program_has_otherwise
    - if note is not None:
    + if False:

    # shim/keras/test_restore_parts.py::test_nested_objects
    - below = _parts(stored, f"{path}/{name}" if path else name, child, seen)
    + below = Parts({}, {})

    # shim/recording/test_show.py::test_more_skipped_steps_than_a_dynamic_scale_explains
    - return skipped > after_growths(steps, parameters) + handful
    + return False

    # shim/recording/test_run_record.py::test_the_script_and_the_process_that_it_starts_have_records
    - is_parent = (self.is_of_child or os.name == "nt") and self.process == os.getppid()
    + is_parent = self.process == os.getppid()

    # shim/recording/test_run_record.py::test_wrong_options_are_refused
    - if parsed.record is None and (parsed.no_norm or parsed.overwrite):
    + if parsed.record is None and parsed.no_norm:

    # shim/recording/test_show.py::test_each_step_is_counted_as_what_it_is
    - self._in_a_row = self._in_a_row + 1 if self.last == step - 1 else 1
    + self._in_a_row = self._in_a_row + 1

    # shim/recording/test_show.py::test_the_option_needs_no_file_and_takes_one
    - if options.file is None and getattr(options, name) not in (None, "-"):
    + if False:

    # shim/recording/test_show.py::test_what_the_scale_shows
    - if scale >= minimum else
    + if scale > minimum else

    # shim/test_namespaces.py::test_compat_namespaces_reach_the_same_modules
    - _attach(__name__, ("v1", "v2"))
    + _attach(__name__, ("v1",))
    - _attach(__name__, of_top=("keras", "mixed_precision", "train"))
    + _attach(__name__, of_top=("keras", "mixed_precision"))

    # shim/test_namespaces.py::test_each_name_of_a_module_that_only_we_have_is_there
    - StepCounts="_monitoring.monitor",
    + StepCounts="_monitoring.layers",

    # shim/test_namespaces.py::test_each_name_of_the_package_is_there
    -     _own = {"accumulate": "_core.accumulation"}
    +     _own = {"accumulate": "_core.scaling"}

    # shim/test_namespaces.py::test_every_namespace_is_an_attribute_of_the_one_above
    - _attach(__name__, ("mixed_precision", "tpu"))
    + _attach(__name__, ("mixed_precision",))
    - _attach(__name__, ("mixed_precision",))
    + _attach(__name__)

    # shim/test_namespaces.py::test_importing_the_package_and_its_namespaces_leaves_tensorflow_alone
    - ("mixed_precision", "tpu", "train"), of_top=("keras",)
    + ("mixed_precision", "train"), of_top=("keras",)

    # shim/test_outer_optimizers.py::test_updates_of_an_optimizer_outside_are_refused
    - "_distributed_tf_update_step",
    -         "update_step",
    + "_distributed_tf_update_step",

    # shim/test_private_hooks.py::test_an_override_that_nothing_calls_is_refused
    - if hook.instead and has(hook.first) and _is_a_programs(cls, hook.name):
    + if hook.instead and hook.exists() and _is_a_programs(cls, hook.name):

    # shim/test_public_classes.py::test_our_class_and_tensorflows_class_of_the_same_name_count_as_one
    - installed.register(cls)
    + pass

    # shim/tf1/test_graph_rewrite.py::test_e1_e5_only_a_mixed_policy_stops_it
    - return is_set or any(policy.compute_dtype != policy.variable_dtype for policy in policies)
    + return is_set

    # shim/tf1/test_loss_scales.py::test_exponential_manager
    - result = then()
    -         with tf.control_dependencies([runs]):
    + result = then()
    +         with tf.control_dependencies([skips]):

    # shim/tf1/test_optimizers.py::TestInASession::test_arguments_reach_the_inner_optimizer
    - "grad_loss": grad_loss,
    -         }
    + }

    # shim/tf1/test_optimizers.py::TestInASession::test_sync_replicas_inside_is_an_error
    - if any(isinstance(link, tf1.train.SyncReplicasOptimizer) for link in chain_of(optimizer)):
    + if False:

    # shim/tf1/test_variables.py::test_names_and_order
    - return inner + list(_variables_in(self._loss_scale_manager, known))
    + return inner

    # shim/keras/test_restore_without_optimizer.py::test_a_bare_optimizer_has_no_scale
    - absent = [_absent(stored, own, name, _BEFORE_COMPILE) for own, name in zip(compiled, names)]
    + absent: List[Absent] = []
    - plan.notes.append(absent.note)
    + pass

    # shim/keras/test_restore_without_optimizer.py::test_slots_of_a_built_optimizer_are_counted
    - if program.has_slots:
    -         trained = program.trained
    + if False:
    +         trained = program.trained

    # shim/keras/test_restore_without_optimizer.py::test_an_optimizer_under_another_name_is_not_lost
    - if missing and others:
    + if False:
    """  # noqa: E501 - the name of a test cannot go on in the next line

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
    - is_never_taken=is_taken is False,
    + is_never_taken=False,
    - return not self._is_guarded(attribute)
    + return True
    - return [*self.references, *self.namespaces]
    + return []
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
    - return f"{_SHIM}.{namespace}.{self.name}"
    + return f"{_SHIM}.{self.name}"
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
    - if language in _PYTHON:
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

    # codemods/rules/test_paths_in_strings.py::test_not_reported
    - if before not in _OF_CODE or after not in _OF_CODE:
    + if False:

    # codemods/rules/test_paths_in_strings.py::test_reported
    - if call is None or not any(argument.value is string for argument in call.args[1:2]):
    + if False:

    # codemods/rules/test_rules.py::test_example
    - elif not _has_twin(program, reference):
    + elif False:
    - for name in _METHODS:
    + for name in ():
    - return bool(is_named) and ("type" in types or bool(program.attributes("__class__")))
    + return True
    - if found is None or len(found) < 2:
    + if False:
    - if not (options.for_keras_3 or options.to_shim) or decision.is_origin_known:
    + if False:
    - if not decision.is_origin_known:
    + if False:
    - if not loops or decision.optimizers_on_shim:
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
    -             yield
    + if False:
    +             yield
    - if is_ours and is_called and _function(program, attribute) in functions:
    + if False:
    - if module is None or module.is_current or is_of_shim(path):
    + if False:
    - if has_loss_scale or program.mixed or program.unclear:
    + if False:

    # codemods/rules/test_version_guards.py::test_other_forms_of_guards_are_reported_once
    - if any(map(_may_be_missing, paths)):
    + if False:
    - if not any(map(_may_be_missing, program.origins.of_binding(binding))):
    + if True:

    # codemods/rules/test_version_guards.py::test_another_test_beside_a_tried_import_is_reported
    - tested_again=_tested_again(program, guards, guard, place),
    + tested_again=None,

    # codemods/rules/test_version_guards.py::test_another_test_in_a_different_file_is_reported
    - is_certain = is_certain or _is_tried_without_flag(program, bindings)
    + pass

    # codemods/rules/test_version_guards.py::test_uses_that_fit_an_import_that_is_tried_are_right
    - if other.names or decides_without(program, other.test, statement):
    + if True:

    # codemods/rules/test_version_guards.py::test_branch_of_the_newest_tensorflow_is_not_reported
    - return super()._like(type(self)(other) if isinstance(other, str) else other)
    + return super()._like(other)

    # codemods/rules/test_version_guards.py::test_comparison_that_fails_is_not_understood
    - return self._attempt(evaluate, node)
    + return evaluate(self, node)

    # codemods/rules/test_version_tests.py::test_the_line_to_write_compares_numbers
    - if not isinstance(test, cst.Call) or not isinstance(test.func, cst.Attribute):
    + if False:

    # codemods/run/test_written_for_keras_3.py::test_the_shims_class_has_the_methods_of_both
    - if options.to_shim:
    + if False:
    - return Trait.KERAS_3_METHODS in traits and Trait.KERAS_2_METHODS not in traits
    + return Trait.KERAS_3_METHODS in traits

    # codemods/rules/test_rules.py::test_example
    - through = place.module if place.why is Why.RE_EXPORT else place.through
    + through = place.through
    - pending += [(place, _READ_NAME_IS_ABSENT) for place in absent]
    + pass
    - return not (is_module or name in NAMESPACES[module])
    + return False
    - and not keeps_name
    + and True
    - if is_known or not legacy_symbols.is_whole(module):
    + if True:
    - elif is_of_keras and _may_run_elsewhere(program):
    + elif False:
    - if made.problem or final.options.to_shim:
    + if made.problem:
    - return self._replace(outcome=Safety.UNSAFE, message=caveat)
    + return self._replace(message=caveat)
    - if branch.is_scaled_elsewhere:
    + if False:
    - is_unsafe = proposal.outcome is Safety.UNSAFE and self._options.unsafe
    + is_unsafe = proposal.outcome is Safety.UNSAFE
    - return _KERAS if kind.is_keras else _UNKNOWN
    + return _KERAS if kind.is_keras else ""

    # codemods/rules/test_silenced_re_exports.py::test_one_finding_where_it_is_used
    - if export.is_kept:
    + if False:

    # codemods/run/test_names_of_other_files.py::test_a_name_that_is_read_in_any_way_keeps_it
    - return f"{module}{name}" if module.endswith(".") else f"{module}.{name}"
    + return f"{module}.{name}"
    - if LOADERS.search(source) or (self._has_package and imports_package(source)):
    + if LOADERS.search(source):
    - if is_notebook or NAMES_IN_TEXT.search(source) or self._attribute.search(source):
    + if is_notebook or self._attribute.search(source):
    - return any(map(self._word.search, importing_lines(source)))
    + return False
    - reached |= through
    + reached |= set()
    - further = () if files else _imported_by_name(*here, links, modules)
    + further = ()
    - return is_named or (is_around and RELATIVE in words)
    + return is_named

    # codemods/engine/test_notebook.py::test_the_code_alone_is_the_same
    - if _language(document) not in _PYTHON:
    + if False:

    # codemods/run/test_names_of_other_files.py::test_a_flag_is_found_where_another_file_hands_it_on
    - yield f"{CALLED}{function.id if isinstance(function, ast.Name) else name}"
    + yield from ()
    - given += [_given_to_class(owner, made) for owner in nodes.of(ast.ClassDef)]
    + pass
    - return not _direct(program, operand).names  # a subclass elsewhere may have another value
    + return True
    - elif self._is_given(file, name):
    + elif False:

    # codemods/run/test_names_of_other_files.py::test_a_flag_is_found_in_one_file
    - is_left = not isinstance(target, cst.Return)
    + is_left = True

    # codemods/run/test_names_of_other_files.py::test_a_flag_is_followed_in_every_way_to_read_it
    - nodes.add((module, ".".join([first, *attributes])))
    + pass
    - paths |= {f"{path}{rest}" for path in _of_stars(program, root)}
    + pass

    # codemods/run/test_names_of_other_files.py::test_a_flag_is_followed_into_a_parameter
    - is_bound = is_constructor or (owner is not None and isinstance(read, cst.Attribute))
    + is_bound = False

    # codemods/run/test_names_of_other_files.py::test_a_flag_elsewhere_that_compares_text_is_noted
    - return self._reached_from({node for node in self._made if self._depends(*node)})
    + return {node for node in self._made if self._depends(*node)}

    # codemods/decision/test_small_runs.py::test_contrib_classes_go_to_the_shim_wherever_they_are
    - return found if options.unsafe else _without_reasons(found, Group.CONTRIB)
    + return found

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
    - is_listing = self._path.endswith(_TEXT) and line.startswith("(", named.end)
    + is_listing = False

    # codemods/engine/test_comments.py::test_a_comment_that_silences_nothing_is_reported
    - (?P<bare>(?=\s*\Z|\s+#))
    + (?P<bare>)

    # codemods/engine/test_comments.py::test_a_comment_silences_no_other_place_with_the_same_text
    - for place in left:
    + for place in {(found.why, found.through): found for found in reversed(left)}.values():

    # codemods/engine/test_comments.py::test_what_binds_the_name_of_a_silenced_place_stays
    - _add_what_binds(program, places, absent, found)
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

    # codemods/engine/test_screen.py::test_facts_without_libcst
    - return not (may_have_need(nodes) or may_have_place(nodes, options, in_program=True))
    + return not may_have_place(nodes, options, in_program=True)
    - if nodes is None or _is_special(source.data) or _MIXED in source.data:
    + if nodes is None or _is_special(source.data):
    - or not bound.isdisjoint(SCALING)
    + or False
    - unread = set() if options.to_shim or in_program else self._unread_finals()
    + unread = set() if options.to_shim else self._unread_finals()

    # codemods/run/test_names_of_other_files.py::test_names_that_are_read_through_a_path_of_keras
    - paths = self.bound.get(_root(attribute))
    + paths = {path for path in self.bound.get(_root(attribute), ()) if path[:6] != "keras."}

    # codemods/run/test_names_of_other_files.py::test_a_class_in_a_file_without_a_place
    - while exports.unread:
    + while False:

    # codemods/run/test_programs_that_were_split.py::test_a_message_names_every_place_of_the_program
    - is_same = all(fine.on_shim.get(group) == coarse.on_shim.get(group) for group in facts.groups)
    + is_same = set(facts.groups) & fine.on_shim.keys() == set(facts.groups) & coarse.on_shim.keys()

    # codemods/engine/test_screen.py::test_ruled_out
    - others.update(id(node) for node in _keys(nodes) if _is_module(node))
    + pass
    - yield from () if id(node) in docstrings else _texts(node.value)
    + yield from _texts(node.value)

    # codemods/engine/test_comments.py::test_an_unused_comment_is_reported_without_legacy_symbols
    - if any(may_suppress(source.data) for source in sources):  # its comments are needed, too
    + if False:

    # codemods/run/test_written_for_keras_3.py::test_files_without_a_legacy_name_connect_a_program
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

    # codemods/rules/test_several_meanings.py
    - return isinstance(node, cst.Attribute) and len(symbols) == 1
    + return False
    - self.mixed += [Reference(node, scope, mixed, name) for mixed in by_group.values()]
    + self.mixed.append(Reference(node, scope, found[-1], name))
    - is_mixed |= not self._can_be_replaced(space.root, space.scope)
    + pass
    - if is_chain and not self._can_be_replaced(name, scope):
    + if False:
    - return root is not None and root.value in (binding.name, "None")
    + return False
    - return min(found, key=lambda path: found[path].is_current)
    + return min(found)
    - is_certain = all(map(is_of_shim, program.paths_of(node)))
    + is_certain = True
    - return bool(program.migrated) or any(use.keeps_names for use in program.namespaces)
    + return bool(program.migrated) or any(use.is_on_shim for use in program.namespaces)
    - return list(filter(program.may_be_of_object, program.values.reads_of(use.node)))
    + return list(program.values.reads_of(use.node))
    - is_maker = reference.legacy.is_keras_optimizer or reference.legacy.name == REWRITE
    + is_maker = reference.legacy.is_keras_optimizer or reference.legacy.is_graph_optimizer

    - return is_below_module and (is_held or COMPUTED in meanings)
    + return is_below_module and is_held
    - return above in _ABOVE[name] and self._attribute_of(node) is None
    + return False

    # codemods/resolve/test_qualified_names.py
    - return self.of_expression(node.left, scope) | right
    + return right
    - return frozenset([COMPUTED if binding.kind is BindingKind.OTHER else LOCAL])
    + return frozenset([LOCAL])
    - if isinstance(node.operator, cst.And):  # what is false has no attributes to resolve
    + if False:

    # codemods/rules/test_several_meanings.py::test_what_a_program_holds_can_be_a_module
    - return is_below_module and (is_held or COMPUTED in meanings)
    + return is_below_module and COMPUTED in meanings

    # codemods/rules/test_paths_in_strings.py::test_reported
    - return _absolute(path, package) if is_relative else path
    + return path
    - return min(paths).rpartition(".")[2] if len(paths) == 1 else written
    + return written

    # codemods/rules/test_paths_in_strings.py::test_a_module_in_getattr_goes_to_the_shim
    - return not use.is_whole or len(call.args) > 2 or bool(program.written)
    + return True

    # codemods/rules/test_version_guards.py::test_what_is_missing_only_without_tensorflow_is_no_flag
    - return is_contrib and legacy_of(path) is None and not is_whole(path)
    + return legacy_of(path) is None and not is_whole(path)

    # codemods/rules/test_version_guards.py::test_a_sum_over_shards_scales_no_loss
    - scaling = [place.node for place in found if sums or not _only_sums(place)]
    + scaling = [place.node for place in found]

    # codemods/rules/test_rules.py::test_example
    - for place in _beside(program, absent, places):
    + for place in ():
    - if owner is None or len(owner.bindings[name]) > 1:
    + if owner is None:
    - return not is_wrapper and not program.cached(_sources_of_wrapped).isdisjoint(sources)
    + return not program.cached(_sources_of_wrapped).isdisjoint(sources)

    # codemods/rules/test_paths_in_strings.py::test_what_to_write
    - return (_CALLED if is_whole else _LEADING).format(found.written, found.twin)
    + return _CALLED.format(found.written, found.twin)
    - return (_OF_ATTRIBUTES if is_relative else _PATH).format(found.written, found.twin)
    + return _PATH.format(found.written, found.twin)

    # codemods/resolve/test_small_sources.py::test_a_function_that_loads_files_may_have_another_name
    - return any(id(value) not in called for value in values)
    + return False

    # codemods/rewrite/test_imports.py::test_import
    - return all(map(self._may_reassign, bindings, places))
    + return True
    - numbered = (f"{first}{number}" for number in itertools.count(2))
    + numbered = iter([second])
    - self._globals.setdefault(redirection, {})[added.local] = None
    + pass
    - is_inside = any(isinstance(statement, cst.Nonlocal) for statement in redirections)
    + is_inside = False
    - and not any(binding.node in owner.imported_inside for binding in owner.bindings[name])
    + and True
    - return any(map(self.program.may_be_of_object, attributes))
    + return False
    - for line in _READING.findall(source.data):
    + for line in ():

    # codemods/rules/test_several_meanings.py::test_the_bounds_of_type_parameters
    - outside = (getattr(node, "type_parameters", None), node.returns)
    + outside = (node.returns,)
    - outside = [parameters] if parameters is not None else []
    + outside = []

    # codemods/engine/test_notebook.py::test_an_import_that_a_magic_line_reads_stays
    - self.texts = [line for cell in self._cells for line in cell.masked.lines.values()]
    + self.texts = []

    # codemods/engine/test_notebook.py::test_a_notebook_without_its_images
    - if end - begin >= _LEAST_IMAGE and notebook[end - 1 : end] != b"\\":
    + if end - begin >= _LEAST_IMAGE:

    # codemods/resolve/test_traits.py::test_the_bytes_hint_at_all_of_them
    - return any(name in source for name in self._names) and bool(self._apart.search(source))
    + return False
    - Trait.HANDED_ON: _Hint(words=[b"optimizer", *_READS_BY_NAME, *_DICTIONARIES]),
    + Trait.HANDED_ON: _Hint(words=[b"optimizer", *_DICTIONARIES]),
    - (b"restore", b"Checkpoint"),
    + (b"train.Checkpoint",),

    # codemods/resolve/test_traits.py::test_of_a_file
    - if "compile" in got or any(owner not in _REGULAR_EXPRESSIONS for owner in owners):
    + if any(owner not in _REGULAR_EXPRESSIONS for owner in owners):
    - return {name for pattern in patterns for name in pattern.kwd_attrs}
    + return set()
    - return any(not _literal(node.slice) for node in subscripts)
    + return False
    - if isinstance(target, ast.Name) and target.id in variables - others:
    + if isinstance(target, ast.Name) and target.id in variables:

    # codemods/run/test_programs_that_were_split.py::test_a_policy_goes_with_model_optimizer
    - if is_named or (of_models and of_models - _looked_at(nodes)):
    + if is_named:
    - return {name for text in texts for name in text.split(".")}
    + return set(texts)
    - traits[file] = _traits_of(file, facts, connections).intersection(OF_IMPORTED)
    + traits[file] = _traits_of(file, facts, connections).intersection([])

    # codemods/cli/test_keras_target.py::test_policies_beside_tf_keras
    - if options.sets_legacy_keras or not decision.imports_tf_keras:
    + if not decision.imports_tf_keras:

    # codemods/cli/test_keras_target.py::test_a_name_of_tf_keras_stays
    - if legacy.root == "tf_keras" and legacy.is_of_final_api:
    + if legacy.root == "tf_keras":

    # codemods/resolve/test_python_nodes.py
    - "op", "ops", "rest", "simple",
    + "op", "ops", "orelse", "rest", "simple",

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

    # codemods/run/test_names_of_other_files.py::test_a_module_that_others_read_keeps_its_name
    - links if links.is_known else _links_of_unparsed(source)
    + links
    - if self._is_read_for_value(variable, is_imported):
    + if False:

    # codemods/engine/test_transform.py::test_a_finding_has_its_line_unless_that_is_long
    - return line if len(line) < LONGEST_LINE else ""
    + return line

    # codemods/reports/test_reports.py::test_html_shows_the_line_of_a_place_as_text
    - <span>{escape(finding.text)}</span>
    + <span>{finding.text}</span>

    # codemods/reports/test_reports.py::test_a_report_replaces_no_file_of_a_project
    - if data and not earlier.is_report(data):
    + if False:
    - return any(all(map(form.fullmatch, lines)) for form in (_TEXT, _GITHUB))
    + return True

    # codemods/resolve/test_class_bodies.py
    - if bound is None or at < bound.first:
    + if bound is None:
    - return path[-2] is statement.value
    + return False

    # codemods/project/test_environment.py
    - if not (key or self._is_environment()):
    + if False:
    - yield from arguments if value in references else [place]
    + yield place
    - elif command.end != ")":
    + elif False:
    - is_exported = is_exported or not names or name in names
    + is_exported = True
    - is_of_env = before == "env" and re.match(r"-|\w+=", word.text)
    + is_of_env = False
    - if command.document is not None:
    + if False:
    - is_test = self._in_test_file and _TEST.fullmatch(token.text)
    + is_test = _TEST.fullmatch(token.text)

    # codemods/rewrite/test_modules_left_over.py
    - elif self._may_be_other(variable):
    + elif False:
    - return not paths or not all(map(is_of_tensorflow, paths))
    + return True
    - if owner is None or _is_made_of_itself((owner, name)):
    + if owner is None:
    - if found.fate is _Fate.RENAMED and not is_plain:
    + if False:
    - if is_left and not is_needed:
    + if False:

    # codemods/reports/test_reports.py::test_no_report_goes_to_a_directory_of_version_control
    - if VERSION_CONTROL.intersection(os.path.realpath(path).split(os.sep)):
    + if False:

    # codemods/project/test_legacy_keras.py
    - if not inside.is_text and self._statement not in _STATEMENTS:
    + if not inside.is_text:
    - return bool(_SETTER.fullmatch(inside.callee))
    + return True
    - if path.endswith(_PYTHON) or not is_project_file(path):
    + if path.endswith(_PYTHON):

    # codemods/cli/test_keras_target.py::test_legacy_keras_makes_tf_keras_of_tf_keras
    - self._project.add_cells(path, code_cells(data))
    + self._project.add(path, real, data)

    # codemods/cli/test_untrusted_settings.py::test_a_report_of_the_command_line_follows_no_link
    - if stat.S_ISLNK(mode):
    + if False:

    # codemods/run/test_statuses.py::test_a_worker_without_a_parent_does_not_begin
    - if os.getppid() != parent:
    + if False:

    # codemods/rules/test_evaluated_texts.py::test_class_that_only_messages_name_is_the_final_one
    - return not (self._is_statement(node) or self._is_message(node) or self._is_key(node))
    + return not (self._is_statement(node) or self._is_key(node))
    - if scope.owner(name.value) is None:
    + if True:

    # codemods/rules/test_evaluated_texts.py::test_import_that_a_text_reads_stays
    - return _COMPUTED_ANYWHERE.search(self._template(node)) is None
    + return True
    - if is_kept or self.is_read_otherwise(variable):
    + if is_kept:

    # codemods/rules/test_evaluated_texts.py::test_own_name_of_a_removed_module_is_the_shims
    - return min(twins) if may_be_read and is_own_name else path
    + return path
    - return may_be_read and use.root is None and not _reads_of(program, use)
    + return False

    # codemods/run/test_names_of_other_files.py::test_a_module_that_is_only_imported
    - return may_be_read and use.root is None and not _reads_of(program, use)
    + return use.is_on_shim and use.root is None and not _reads_of(program, use)

    # codemods/rules/test_evaluated_texts.py::test_module_that_still_exists_keeps_its_name
    - return None if is_above or may_be_read else path
    + return path

    # codemods/rules/test_second_step.py::test_two_steps_end_where_one_does
    - if reference.legacy.is_on_shim and not options.unsafe:
    + if reference.legacy.is_on_shim:

    # codemods/run/test_data_files.py::test_a_path_in_a_file_that_is_python_by_chance_is_reported
    - if any(candidate.is_data for candidate in candidates):
    + if False:
    """

# Modules that only name what is elsewhere have one text.
LEAVES = (
    *("compat/v1/mixed_precision/experimental", "compat/v1/tpu", "compat/v1/train/experimental"),
    *("contrib/mixed_precision", "contrib/tpu", "mixed_precision/experimental", "tpu"),
    "train/experimental",
)
DIR_FORGOTTEN = """
    # shim/test_namespaces.py::test_a_namespace_lists_its_symbols_and_nothing_private
    - __all__, __getattr__, __dir__ = _attach(
    + __all__, __getattr__, _ = _attach(
    """

ABOVE_EXPERIMENTAL = ("compat/v1/mixed_precision", "compat/v1/train", "mixed_precision", "train")
NAMESPACE_FORGOTTEN = """
    # shim/test_namespaces.py::test_every_namespace_is_an_attribute_of_the_one_above
    - _attach(__name__, ("experimental",))
    + _attach(__name__)
    """

COMPLETE = ("tf_lossscale", "codemods")
"""The packages in which each module has a defect."""

WITHOUT_DEFECT: Dict[str, str] = {
    "codemods/resolve/program.py": "it only makes the analyses, each of which has a defect",
    "tf_lossscale/_types.py": "it has annotations only, which `make types` checks",
}
"""The modules in which none is possible that TensorFlow 2.21 shows, and why."""

DEFECTS: List[Defect] = [
    *defects("tf_lossscale", SHIM),
    *(defect for leaf in LEAVES for defect in defects(f"tf_lossscale/{leaf}.py", DIR_FORGOTTEN)),
    *(
        defect
        for folder in ABOVE_EXPERIMENTAL
        for defect in defects(f"tf_lossscale/{folder}/__init__.py", NAMESPACE_FORGOTTEN)
    ),
    *defects("codemods", CODEMODS),
]
