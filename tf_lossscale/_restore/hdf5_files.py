"""Reads `.h5` files of `save_weights` and of `save` with the optimizer.

Those of Keras 3 can be described, and not restored: some optimizers give slots of all variables one
name, so that only their order, which differs between versions, says what they are. Keras 3 loads
them by this order.
"""

import json
from typing import Any, Dict, List, Optional, Tuple

import numpy as np

from tf_lossscale._checkpoint.keras_files import import_hdf5
from tf_lossscale._restore.optimizer_state import SLOT_NAMES
from tf_lossscale._restore.stored import (
    Node,
    RestoreError,
    Slot,
    Stored,
    Tensor,
    add_node,
)
from tf_lossscale._types import Array, Config, HDF5Dataset, HDF5Group

_TOP_LEVEL = "top_level_model_weights"
_ITERATIONS = ("iter", "iteration")
_SCALE = "dynamic_scale"


def read(path: str) -> Stored:
    """Reads a file for `restore`; raises RestoreError if it is damaged, or of Keras 3."""
    stored = read_any(path)
    if stored.is_of_keras_3:
        raise _of_keras_3(stored)
    return stored


def _of_keras_3(stored: Stored) -> RestoreError:
    """Returns the error for a file of Keras 3, which says what reads it."""
    path = stored.path
    optimizer = stored.nodes[0].children.get("optimizer")
    checkpoint = "tf.train.Checkpoint(model=model, optimizer=model.optimizer).save(prefix)"
    if optimizer is not None and _SCALE not in stored.nodes[optimizer].children:
        return RestoreError(
            f"{path}: is an .h5 file of Keras 3, which restores only the weights in it, by "
            f"model.load_weights({path!r}), because the optimizer is no loss-scale optimizer. Save "
            f"a checkpoint instead, which restore() reads: {checkpoint}"
        )
    return RestoreError(
        f"{path}: is an .h5 file of Keras 3, which restores it itself, with the optimizer that "
        f"the model was compiled with: model = keras.models.load_model({path!r}), with "
        "custom_objects={'mse': 'mse'} if the loss is 'mse', whose short name Keras 3 does not "
        f"find. For Keras 2, load it on Keras 3, and save a checkpoint there: {checkpoint}"
    )


def read_any(path: str) -> Stored:
    """Reads a file of either Keras; raises RestoreError if it is damaged."""
    try:
        with import_hdf5().File(path, "r") as file:
            return _stored(path, file)
    except (OSError, KeyError, ValueError, RuntimeError, UnicodeError) as error:
        if isinstance(error, RestoreError):
            raise
        line = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise RestoreError(f"{path}: cannot be read as an HDF5 file: {line}") from error


def _stored(path: str, file: HDF5Group) -> Stored:
    """Returns the nodes that an object checkpoint of the same model would have."""
    weights = file.get("model_weights", file)
    if "layer_names" not in weights.attrs:
        if path.endswith(".weights.h5"):
            raise RestoreError(
                f"{path}: is a .weights.h5 file, which the Keras that wrote it restores itself, "
                "with the optimizer that the model is compiled with: model.optimizer.build("
                f"model.trainable_variables), then model.load_weights({path!r}). With another "
                "Keras, the optimizer would start again, also with Keras 3 after Keras 2: load it "
                "on its own Keras, and save a checkpoint there: "
                "tf.train.Checkpoint(model=model, optimizer=model.optimizer).save(prefix)"
            )
        raise RestoreError(
            f"{path}: is not an .h5 file of weights of Keras 2. Files of Keras 3 are read by "
            "load_weights() or load_model() of Keras 3"
        )
    nodes = [Node()]
    model = add_node(nodes, 0, "model")
    count = 0
    for layer in _names(weights, "layer_names"):
        names = _names(weights[layer], "weight_names")
        if names:
            owner = add_node(nodes, model, f"layer_with_weights-{count}")
            nodes[owner].label = layer
            count += 1
            _add_weights(nodes, owner, weights[layer], names)
    if _TOP_LEVEL in weights:
        top = weights[_TOP_LEVEL]
        _add_weights(nodes, model, top, _names(top, "weight_names"), kind="own")
    config = _optimizer_config(file)
    group = file.get("optimizer_weights")
    if group is not None and "weight_names" in group.attrs:
        _add_optimizer(nodes, group, _names(group, "weight_names"), _is_of_keras_3(weights))
    stored = Stored(path, ".h5 file", nodes, Reader(path))
    stored.config = config
    stored.is_of_keras_3 = _is_of_keras_3(weights)
    stored.lacks_scale = True
    return stored


def _is_of_keras_3(weights: HDF5Group) -> bool:
    """Returns whether Keras 3 wrote a file; every Keras stores its version beside the weights."""
    version = weights.attrs.get("keras_version", "")
    version = version.decode() if isinstance(version, bytes) else str(version)
    return version.startswith("3")


def _add_weights(
    nodes: List[Node], owner: int, group: HDF5Group, names: List[str], kind: str = "legacy"
) -> None:
    for number, name in enumerate(names):
        add_node(nodes, owner, f"{kind}:{number}", _tensor(group[name], name))


def _tensor(dataset: HDF5Dataset, name: str) -> Tensor:
    if dataset.external or dataset.is_virtual:
        raise RestoreError(f"{dataset.file.filename}: {dataset.name} is stored in another file")
    return Tensor(dataset.name, tuple(dataset.shape), dataset.dtype.name, name.split(":")[0])


def _names(group: HDF5Group, attribute: str) -> List[str]:
    """Returns the names in an attribute, which Keras splits into several if they are long."""
    found = list(group.attrs.get(attribute, []))
    part = 0
    while f"{attribute}{part}" in group.attrs:
        found += list(group.attrs[f"{attribute}{part}"])
        part += 1
    return [name.decode() if isinstance(name, bytes) else str(name) for name in found]


def _add_optimizer(
    nodes: List[Node], group: HDF5Group, names: List[str], is_of_keras_3: bool
) -> None:
    """Adds the optimizer as the objects of a checkpoint of Keras 2: slots by their variables."""
    known = {
        node.tensor.name: number for number, node in enumerate(nodes) if node.tensor is not None
    }
    optimizer = add_node(nodes, 0, "optimizer")
    find_slot = _slot_of_keras_3 if is_of_keras_3 else _slot_of
    slots: Dict[str, List[Tuple[Tensor, Optional[int]]]] = {}
    for name in names:
        tensor = _tensor(group[name], name)
        words = tensor.name.split("/")
        slot, variable = (None, None) if words[-1] in _ITERATIONS else find_slot(words, known)
        if slot is None:
            add_node(nodes, optimizer, _own_label(tensor), tensor)
        else:
            slots.setdefault(slot, []).append((tensor, variable))
    for slot, tensors in slots.items():
        _add_slots(nodes, optimizer, slot, tensors)


def _own_label(tensor: Tensor) -> str:
    """Returns what a checkpoint calls a variable that the optimizer has once."""
    name = tensor.name.split("/")[-1]
    if name in _ITERATIONS:
        return "iter"
    if name == _SCALE:
        return name
    is_float = not tensor.shape and tensor.dtype.startswith("float")
    return "_u_product" if is_float and "learning_rate" not in name else name


def _add_slots(
    nodes: List[Node], optimizer: int, slot: str, tensors: List[Tuple[Tensor, Optional[int]]]
) -> None:
    """Adds the slots of one name: as a list, or, if all variables are known, by these."""
    number = add_node(nodes, optimizer, slot)
    elements = [
        add_node(nodes, number, str(index), tensor) for index, (tensor, _) in enumerate(tensors)
    ]
    variables = [variable for _, variable in tensors if variable is not None]
    if len(variables) == len(elements):
        nodes[number].children = {}
        nodes[optimizer].slots += [
            Slot(slot, variable, element) for variable, element in zip(variables, elements)
        ]


def _slot_of(words: List[str], known: Dict[str, int]) -> Tuple[Optional[str], Optional[int]]:
    """Returns the name of a slot, and the node of its variable if the name shows it.

    Names are `Adam/dense/kernel/m` of `OptimizerV2`, perhaps in a scope, and `m/dense/kernel` or
    `Adam/m/dense/kernel` of later optimizers.
    """
    last = words[-1].rstrip("_0123456789")
    if last in SLOT_NAMES and len(words) > 1:
        starts = range(len(words) - 1)
        ends = (known.get("/".join(words[start:-1])) for start in starts)
        return last, next((node for node in ends if node is not None), None)
    for start in range(1, len(words)):
        node = known.get("/".join(words[start:]))
        if node is not None:
            return words[start - 1], node
    return None, None


def _slot_of_keras_3(
    words: List[str], known: Dict[str, int]
) -> Tuple[Optional[str], Optional[int]]:
    """Returns the same for a name of Keras 3: `loss_scale_optimizer/adam/dense_kernel_momentum`."""
    starts = {name.replace("/", "_") + "_": node for name, node in known.items()}
    fitting = [start for start in starts if words[-1].startswith(start)]
    if not fitting:
        return None, None
    start = max(fitting, key=len)
    return words[-1][len(start) :], starts[start]


def _optimizer_config(file: HDF5Group) -> Config:
    """Returns the configuration of the inner optimizer."""
    text = file.attrs.get("training_config")
    if text is None:
        return {}
    loaded = json.loads(text)
    config: Any = loaded.get("optimizer_config") if isinstance(loaded, dict) else None
    while isinstance(config, dict):
        inner = config.get("config", config)
        if not isinstance(inner, dict):
            return {}
        wrapped = inner.get("inner_optimizer", inner.get("optimizer"))
        if not isinstance(wrapped, dict):
            return inner
        config = wrapped
    return {}


class Reader:
    def __init__(self, path: str) -> None:
        self._path = path

    def __call__(self, tensors: List[Tensor]) -> List[Array]:
        try:
            with import_hdf5().File(self._path, "r") as file:
                return [np.asarray(file[tensor.key][()]) for tensor in tensors]
        except (OSError, KeyError, ValueError, RuntimeError) as error:
            line = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise RestoreError(f"{self._path}: damaged: {line}") from error
