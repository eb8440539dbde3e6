"""Describes the optimizers in `.keras` and `.weights.h5` files, whose variables have numbers."""

from typing import Any, Dict, Iterator, List, Mapping, Tuple

from tf_lossscale._checkpoint.finding import StoredOptimizer

_KERAS_3 = "an optimizer of Keras 3"
_KERAS_2 = "an optimizer of tf.keras"


def described(path: str, file: Any, config: Any, version: str) -> Iterator[StoredOptimizer]:
    """Yields the optimizer that an open HDF5 file has next to its layers, if it has one.

    Args:
      path: the file of the user, for the line to write.
      file: the open file, of weights that are found by numbers.
      config: the configuration of the optimizer, or None if the file has none.
      version: the version of Keras that wrote the file, or "" if the file does not say it.
    """
    outer = file.get("optimizer")
    if not _is_group(outer):
        return
    inner = outer["inner_optimizer"] if _is_group(outer.get("inner_optimizer")) else outer
    variables = _numbered(inner.get("vars"))
    if not variables:
        return
    scalars, others = _split(variables)
    written_by = _KERAS_3 if version.startswith("3") else f"{_KERAS_2} {version}".rstrip()
    yield StoredOptimizer(
        path=inner.name.strip("/"),
        written_by=written_by if version else f"{_KERAS_3}, or a new-style one of tf.keras",
        classes=classes_in(config),
        iterations=scalars.get("iterations"),
        slots={"numbered": len(others)} if others else {},
        hyperparameters={name: scalars[name] for name in scalars if name != "iterations"},
        keras3=_for_keras_3(path, version),
    )


def _is_group(value: Any) -> bool:
    return value is not None and not hasattr(value, "dtype")


def _numbered(group: Any) -> List[Any]:
    if not _is_group(group):
        return []
    names = sorted(filter(str.isdigit, group), key=int)
    return [group[name] for name in names if hasattr(group[name], "dtype")]


def _split(variables: List[Any]) -> Tuple[Dict[str, Any], List[Any]]:
    """Returns the two that an optimizer begins with, and all others.

    The second is missing where the program has a schedule.
    """
    wanted = {"iterations": "i", "learning_rate": "f"}
    scalars: Dict[str, Any] = {}
    others = list(variables)
    for name, kind in wanted.items():
        if others and others[0].shape == () and others[0].dtype.kind == kind:
            dataset = others.pop(0)
            if dataset.external or dataset.is_virtual:
                raise ValueError(f"{dataset.name} is stored in another file")
            value = dataset[()]
            scalars[name] = int(value) if kind == "i" else float(str(value))
    return scalars, others


def classes_in(config: Any) -> Tuple[str, ...]:
    """Returns the class of the innermost optimizer in a configuration; none without one.

    Up to TensorFlow 2.3, the inner optimizer is called `optimizer`.
    """
    name = ""
    while isinstance(config, Mapping):
        name = str(config.get("class_name", "")).rpartition(">")[2]
        settings = config.get("config")
        if not isinstance(settings, Mapping):
            break
        config = settings.get("inner_optimizer", settings.get("optimizer"))
    return (name,) if name else ()


def _for_keras_3(path: str, version: str) -> str:
    if path.endswith(".h5"):
        return f"model.load_weights({path!r}) restores it into the optimizer of a compiled model"
    if version.startswith("3"):
        return f"keras.models.load_model({path!r}) restores it"
    return (
        "nothing: load the model where it was saved, or with TF_USE_LEGACY_KERAS=1, and save a "
        "tf.train.Checkpoint of the model and its optimizer"
    )
