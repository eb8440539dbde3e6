"""Finds loss scales in the files of Keras: `.h5`, `.weights.h5` and `.keras`.

A `.keras` file is a zip archive. Its members are never unpacked under their own names.
"""

import collections
import contextlib
import json
import os
import shutil
import tempfile
import zipfile
from types import ModuleType
from typing import IO, Dict, Iterator, List, NamedTuple, Optional, Tuple

from tf_lossscale._checkpoint import numbered_optimizers
from tf_lossscale._checkpoint.finding import KERAS_3, Contents, State, Variable
from tf_lossscale._checkpoint.locate import KERAS, CheckpointError, Place
from tf_lossscale._types import Config, HDF5Dataset, HDF5Group, Json, JsonObject

# Keras 3 numbers the variables of an optimizer in `.keras` and `.weights.h5`. The loss-scale
# optimizer begins with four of its own: iterations, learning rate, counter and loss scale.
_OWN_KINDS = ("i", "f", "i", "f")
# Weights hardly compress, and Keras does not compress them. Limits for all that is unpacked of an
# archive: this factor of its size, or this size if that is more.
_LARGEST_RATIO = 100
_FREE_BYTES = 2**26
_CONFIG, _METADATA = "config.json", "metadata.json"
OTHER_ERRORS = ()  # as in `tensorflow_requests`; errors of h5py have an `errno` instead


def read(place: Place) -> Contents:
    """Reads the loss scales and optimizers of a model file, each HDF5 file of it for itself."""
    opened = _open_keras if place.format == KERAS else _open_hdf5
    with contextlib.ExitStack() as stack:
        files, config, version = opened(place.path, stack)
        states = tuple(state for file in files for state in _states(file))
        optimizers = tuple(
            optimizer
            for file in files
            for optimizer in numbered_optimizers.described(place.path, file, config, version)
        )
    configured = tuple(_configured(config, bool(states)))
    return Contents(place.path, place.format, states, configured, optimizers)


def version_in_archive(path: str) -> str:
    """Returns the version of Keras that wrote a `.keras` file; "" if the file does not say it."""
    with contextlib.ExitStack() as stack:
        archive, names = _open_archive(path, stack)
        _check_sizes(archive, path, [_METADATA, _CONFIG])
        _object(json.load(stack.enter_context(_unpacked(archive, path, _CONFIG))))
        return _version(archive, path, names, stack)


class NamedOptimizer(NamedTuple):
    """What an HDF5 file says about an optimizer whose variables have names."""

    version: str
    """Of Keras."""
    classes: Tuple[str, ...]
    """The class of the innermost optimizer; empty if the file has no configuration."""


def named_optimizer(path: str) -> Optional[NamedOptimizer]:
    """Returns the optimizer in an `.h5` file of `save`; None if there is none."""
    with import_hdf5().File(path, "r") as file:
        weights = file.get("model_weights", file)
        if "layer_names" not in weights.attrs or "optimizer_weights" not in file:
            return None
        text = file.attrs.get("training_config")
        config = _object(json.loads(text)).get("optimizer_config") if text else None
        version = file.attrs.get("keras_version", "")
        version = version.decode() if isinstance(version, bytes) else str(version)
        return NamedOptimizer(version, numbered_optimizers.classes_in(config))


def import_hdf5() -> ModuleType:
    try:
        import h5py  # type: ignore[import-untyped]
    except ImportError as error:
        raise CheckpointError(
            "Reading Keras files needs h5py, which is not installed: pip install h5py"
        ) from error
    return h5py


def _open_hdf5(path: str, stack: contextlib.ExitStack) -> Tuple[List[HDF5Group], Json, str]:
    """Returns the file, the configuration of its optimizer, and the version of Keras."""
    file = stack.enter_context(import_hdf5().File(path, "r"))
    config = file.attrs.get("training_config")
    optimizer = _object(json.loads(config)).get("optimizer_config") if config else None
    return [file], optimizer, ""


def _open_keras(path: str, stack: contextlib.ExitStack) -> Tuple[List[HDF5Group], Json, str]:
    """Returns the files of weights in an archive, and the same of its optimizer."""
    archive, members = _open_archive(path, stack)
    names = [name for name in members if name.endswith(".weights.h5")]
    _check_sizes(archive, path, [_CONFIG, _METADATA, *names])
    config = _object(json.load(stack.enter_context(_unpacked(archive, path, _CONFIG))))
    version = _version(archive, path, members, stack)
    copies = [stack.enter_context(_unpacked(archive, path, name)) for name in names]
    files = [stack.enter_context(import_hdf5().File(copy, "r")) for copy in copies]
    return files, _object(config.get("compile_config") or {}).get("optimizer"), version


def _open_archive(path: str, stack: contextlib.ExitStack) -> Tuple[zipfile.ZipFile, List[str]]:
    """Returns an archive with weights, and the names of its members."""
    """Opens a `.keras` archive; returns its HDF5 files and the configuration of its optimizer.

    The archive is not trusted: members of one name, sizes beyond the limit and broken JSON are
    errors.
    """
    try:
        archive = stack.enter_context(zipfile.ZipFile(path))
    except (zipfile.BadZipFile, OSError, ValueError) as error:
        raise _damaged(path, f"the zip archive is damaged: {error}") from error
    counts = collections.Counter(archive.namelist())
    twice = sorted(name for name, count in counts.items() if count > 1)
    if twice:
        raise _damaged(path, f"it has two members named {twice[0]!r}")
    if not any(name.endswith(".weights.h5") for name in counts):
        raise _damaged(path, "it has no model.weights.h5")
    return archive, list(counts)


def _version(
    archive: zipfile.ZipFile, path: str, members: List[str], stack: contextlib.ExitStack
) -> str:
    if _METADATA not in members:
        return ""
    metadata = _object(json.load(stack.enter_context(_unpacked(archive, path, _METADATA))))
    return str(metadata.get("keras_version", ""))


def _check_sizes(archive: zipfile.ZipFile, path: str, names: List[str]) -> None:
    """Raises CheckpointError if members together unpack to more than their archive can hold."""
    members = [info for info in archive.infolist() if info.filename in names]
    limit = max(_FREE_BYTES, _LARGEST_RATIO * os.path.getsize(path))
    # What is read of a member is never more than its size here.
    if sum(info.file_size for info in members) > limit:
        largest = max(members, key=lambda info: info.file_size).filename
        raise _damaged(path, f"it unpacks to more than {limit} bytes; its largest is {largest}")


@contextlib.contextmanager
def _unpacked(archive: zipfile.ZipFile, path: str, name: str) -> Iterator[IO[bytes]]:
    """Opens a copy of a member, because HDF5 needs random access, which is slow in archives."""
    if name not in archive.namelist():
        raise _damaged(path, f"it has no member {name}")
    info = archive.getinfo(name)
    if info.flag_bits & 1:
        raise _damaged(path, f"its member {name} is encrypted")
    with archive.open(info) as member, tempfile.TemporaryFile() as copy:
        shutil.copyfileobj(member, copy)
        if copy.tell() != info.file_size:
            raise _damaged(path, f"its member {name} ends too early")
        copy.seek(0)
        yield copy


def _damaged(path: str, what: str) -> CheckpointError:
    return CheckpointError(f"{path}: not a valid .keras file: {what}")


def _object(value: Json) -> JsonObject:
    if not isinstance(value, dict):
        raise ValueError("its configuration is not a JSON object")
    return value


def _states(file: HDF5Group) -> Iterator[State]:
    """Yields the states in an HDF5 file of Keras 3, by the names of scalars in one group."""
    items: Dict[str, HDF5Dataset] = {}
    file.visititems(items.__setitem__)
    datasets = {name: item for name, item in items.items() if hasattr(item, "dtype")}
    for name in sorted(datasets):
        keys = _keys_of_state(name, datasets)
        if keys and all(_is_number(datasets.get(key)) for key in keys):
            variables = [
                Variable(key, role, datasets[key].dtype.name, datasets[key][()].item())
                for key, role in zip(keys, KERAS_3.roles.values())
            ]
            yield State(KERAS_3, tuple(variables))


def _keys_of_state(name: str, datasets: Dict[str, HDF5Dataset]) -> List[str]:
    """Returns the loss scale and its counter, if the former has this name; else an empty list."""
    scope, _, last = name.rpartition("/")
    if last == "dynamic_scale":
        return [f"{scope}/{role}" if scope else role for role in KERAS_3.roles]
    if last == "3" and _are_of_keras_3(scope, datasets):
        return [f"{scope}/3", f"{scope}/2"]
    return []


def _are_of_keras_3(scope: str, datasets: Dict[str, HDF5Dataset]) -> bool:
    """Whether the numbered variables in a scope belong to a loss-scale optimizer."""
    owner, _, group = scope.rpartition("/")
    if group != "vars" or f"{owner}/inner_optimizer/vars/0" not in datasets:
        return False
    for number, kind in enumerate(_OWN_KINDS):
        dataset = datasets.get(f"{scope}/{number}")
        if dataset is None or not _is_number(dataset) or dataset.dtype.kind != kind:
            return False
    return True


def _is_number(dataset: HDF5Dataset) -> bool:
    if dataset is None or dataset.shape != () or dataset.dtype.kind not in "if":
        return False
    if dataset.external or dataset.is_virtual:
        raise ValueError(f"{dataset.name} is stored in another file")
    return True


def _configured(config: Config, has_state: bool) -> Iterator[Config]:
    """Describes the loss-scale optimizer that a model file names, without its state."""
    if not isinstance(config, dict):
        return
    class_name = str(config.get("class_name"))
    if not class_name.split(">")[-1].startswith("LossScaleOptimizer"):
        return
    settings = _settings(_object(config.get("config") or {}))
    if has_state:
        note = "its state is in the file"
    elif settings.get("dynamic") is False:
        note = "a fixed loss scale, which has no state"
    else:
        note = (
            "files of this format and version do not hold the current loss scale: a loaded model "
            "starts again at initial_scale"
        )
    yield {"class_name": class_name, "settings": settings, "note": note}


def _settings(config: Config) -> Dict[str, object]:
    names = ("dynamic", "initial_scale", "dynamic_growth_steps")
    settings: Dict[str, object] = {name: config[name] for name in names if name in config}
    old = config.get("loss_scale")  # TensorFlow 2.0 to 2.3
    inner = old.get("config") if isinstance(old, dict) else None
    if isinstance(inner, dict):
        settings["dynamic"] = "initial_loss_scale" in inner
        settings["initial_scale"] = inner.get("initial_loss_scale", inner.get("loss_scale_value"))
        if "increment_period" in inner:
            settings["dynamic_growth_steps"] = inner["increment_period"]
    return settings
