"""The words of legacy code, made from the table of public paths; there is no other list of them.

The bytes of a file only rule it out. What remains is parsed, and counts if it has a word in its
code.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from tf_lossscale._paths import SYMBOLS

__all__ = [
    "APPLYING",
    "CLASS",
    "COMMON",
    "CROSS_SHARD",
    "DISTINCTIVE",
    "HYPERPARAMETERS",
    "LOOK_ALIKES",
    "LOSS_SCALE",
    "MODULE",
    "NAMES",
    "PARTS",
    "PATH_WORDS",
    "POLICY",
    "PRIVATE",
    "RESTORING",
    "REWRITE",
    "SCALING",
    "SEGMENTS",
    "STEP_AND_STATE",
    "TPU",
    "V1_CLASS",
    "code_words",
]

MODULE = "mixed_precision"
"""The last part of the namespaces that hold nothing else."""
LOSS_SCALE = "LossScale"
CLASS = "LossScaleOptimizer"
SCALING = ("get_scaled_loss", "get_unscaled_gradients")
"""Methods that only a loss-scale optimizer of Keras 2 has."""
APPLYING = ("apply_gradients", "minimize", *SCALING)
"""Methods of a training step."""
RESTORING = ("load_weights", "restore_or_initialize")
"""Methods that read files of a run."""
STEP_AND_STATE = (
    "apply_gradients", "minimize",
    "_optimizer", "dynamic", "dynamic_counter", "initial_scale", "loss_scale",
)  # fmt: skip
"""What Keras 3's own class does not have, or does in another way: it unscales what it applies."""

PRIVATE = ("_optimizer", "_loss_scale")
"""Private attributes of the experimental Keras class that programs read."""
HYPERPARAMETERS = (
    "beta", "beta_1", "beta_2", "clipnorm", "clipvalue", "decay", "global_clipnorm",
    "l1_regularization_strength", "l2_regularization_strength", "learning_rate_power", "momentum",
    "rho",
)  # fmt: skip
"""What the final class passed on up to 2.10; every version passes on `learning_rate`."""

NAMES = frozenset(symbol.name for symbol in SYMBOLS if symbol.legacy)
"""The names of all legacy symbols."""
(REWRITE,) = (name for name in NAMES if name.startswith("enable_"))
"""The graph rewrite."""
(V1_CLASS,) = (name for name in NAMES if name.endswith(CLASS) and name != CLASS)
"""The loss-scale optimizer around optimizers of `tf.train`."""
CROSS_SHARD = frozenset(
    symbol.name for symbol in SYMBOLS if symbol.legacy and "tpu" in symbol.namespaces
)
(TPU,) = {
    space
    for symbol in SYMBOLS
    for space in symbol.namespaces
    if symbol.name in CROSS_SHARD and "." not in space
}
"""The module of the cross-shard symbols."""
SEGMENTS = frozenset(
    part for symbol in SYMBOLS for space in symbol.namespaces for part in space.split(".")
) - {"compat", "v1"}
"""The modules that lead to legacy symbols."""
PATH_WORDS = frozenset([LOSS_SCALE, MODULE, *CROSS_SHARD])
"""Words of which one is in the path of each symbol."""
POLICY = frozenset(
    symbol.name
    for symbol in SYMBOLS
    if symbol.name != CLASS and any(space.startswith("keras.") for space in symbol.namespaces)
) - {"from_loss_scale"}
"""The functions and the class of the dtype policy."""
COMMON = frozenset(["LossScale", "Policy", "global_policy", "set_policy"])
"""Names that other libraries use for other things."""
DISTINCTIVE = NAMES - COMMON
"""Names that are used only by these symbols, and by similar classes of other libraries."""

LOOK_ALIKES = frozenset(
    [
        "apex", "deepspeed", "fairseq", "flax", "horovod", "jmp", "mindspore", "mxnet",
        "npu_bridge", "npu_device", "optax", "paddle", "smdistributed", "tensorlayer",
        "tf_lossscale", "torch", "transformers", "xformers",
    ]
)  # fmt: skip
"""Libraries that have classes with the same names, which are never migrated.

The shim is one of them: only a path that leads to one of its legacy symbols is migrated.
"""

PARTS = frozenset(
    name.removeprefix("get_").removeprefix("enable_").removeprefix("disable_")
    for name in NAMES - CROSS_SHARD - {"Policy"}
    if LOSS_SCALE not in name
) | {LOSS_SCALE, *SCALING}
"""Words of which one is in the name of each symbol of `NAMES`, but for whole words."""


def code_words(nodes: Sequence[ast.AST]) -> Iterator[str]:
    """What can refer to a symbol in a source: the names that it reads or imports, and its strings.

    Comments and docstrings do not, nor what the file defines itself, but for the methods of an
    optimizer.
    """
    defined = {node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    imported = {name for node in nodes if isinstance(node, ast.alias) for name in _bound(node)}
    defined = set() if "*" in imported else defined - imported
    docstrings = set(map(id, _docstrings(nodes)))
    for node in nodes:
        if isinstance(node, ast.Name):
            yield from () if node.id in defined else (node.id,)
        elif isinstance(node, ast.Constant):
            yield from () if id(node) in docstrings else _texts(node.value)
        else:
            yield from _words_of(node)


def _words_of(node: ast.AST) -> tuple[str, ...]:
    """What a node refers to, wherever it stands."""
    if isinstance(node, ast.Attribute):
        return (f".{node.attr}",)
    if isinstance(node, ast.Call):
        return (_called(node),)
    if isinstance(node, ast.alias):
        return node.name, node.asname or ""
    if isinstance(node, ast.ImportFrom):
        return (node.module or "",)
    if isinstance(node, (ast.arg, ast.keyword)):
        return (node.arg or "",)
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name in SCALING:
        return (node.name,)
    return ()


def _called(call: ast.Call) -> str:
    """The method that a call calls, with the parentheses."""
    if not isinstance(call.func, ast.Attribute):
        return ""
    return f".{call.func.attr}(" if call.args or call.keywords else f".{call.func.attr}()"


def _bound(alias: ast.alias) -> tuple[str, ...]:
    return alias.name, alias.asname or ""


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, bytes):
        yield value.decode("latin-1")


def _docstrings(nodes: Sequence[ast.AST]) -> Iterator[ast.Constant]:
    for node in nodes:
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                yield first.value
