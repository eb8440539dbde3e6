"""What is not ours is replaced in one module, and the call stack is read in one other.

Reads the source of both packages for the constructs by which a class, a module, an object or a hook
of the interpreter can be changed. Each place outside of the two modules is listed here, with the
reason why it changes nothing that is not ours.
"""

import ast
import pathlib
from typing import Dict, Iterator, List, NamedTuple, Tuple

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
INTERVENTIONS = "tf_lossscale/_versions/interventions.py"
CALLERS = "tf_lossscale/_versions/callers.py"
IMPORTS = "tf_lossscale/_import_hook.py"
AT_START = "tf_lossscale/_cli/child/sitecustomize.py"

STACK, CLASS, SET, MODULE, MODULES, HOOK, PRIVATE = (
    "reads the call stack",
    "changes a class",
    "sets an attribute by its name",
    "sets an attribute of a module",
    "changes sys.modules",
    "uses a hook of the interpreter",
    "imports a private module",
)

FRAMES = {"_getframe", "_current_frames", "currentframe", "walk_stack", "getouterframes"}
FRAMES |= {"f_back", "f_locals", "f_globals"}
OF_CLASSES = {"__bases__", "__class__", "__dict__", "__mro__"}
SETTERS = {"setattr", "delattr", "object.__setattr__", "type.__setattr__", "object.__delattr__"}
HOOKS = {
    *("atexit.register", "atexit.unregister", "gc.callbacks", "os.register_at_fork"),
    *("signal.signal", "signal.setitimer", "sys.displayhook", "sys.excepthook", "sys.meta_path"),
    *("sys.path_hooks", "sys.setprofile", "sys.settrace", "sys.unraisablehook"),
    *("threading.excepthook", "threading.setprofile", "threading.settrace"),
    *("warnings.formatwarning", "warnings.showwarning", "builtins"),
}
OURS = ("tf_lossscale", "tf_lossscale_codemods")


class Use(NamedTuple):
    """A use of a construct, and the function or class that it is in, as `Class.method`."""

    kind: str
    place: str
    line: int


class Uses(ast.NodeVisitor):
    """Finds the uses in a module."""

    def __init__(self, tree: ast.Module):
        self.found: List[Use] = []
        self._scopes: List[str] = []
        self._imported = set(imported_by(tree))
        self.visit(tree)

    def note(self, kind: str, node: ast.AST):
        place = ".".join(self._scopes) or "the module"
        self.found.append(Use(kind, place, getattr(node, "lineno", 0)))

    def visit_scope(self, node: ast.AST):
        self._scopes.append(getattr(node, "name", ""))
        self.generic_visit(node)
        self._scopes.pop()

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_scope

    def visit_Attribute(self, node: ast.Attribute):
        path = path_of(node)
        is_written = isinstance(node.ctx, (ast.Store, ast.Del))
        if node.attr in FRAMES or path == "inspect.stack":
            self.note(STACK, node)
        elif path in HOOKS or path.split(".")[0] in HOOKS:
            self.note(HOOK, node)
        elif is_written and node.attr in OF_CLASSES:
            self.note(CLASS, node)
        elif is_written and path.split(".")[0] in self._imported:
            self.note(MODULE, node)
        elif is_written and path.split(".")[0] == "cls":
            self.note(CLASS, node)
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript):
        is_written = isinstance(node.ctx, (ast.Store, ast.Del))
        key = node.slice.value if isinstance(node.slice, ast.Constant) else ""
        is_upward = str(key).split(".")[0] in OURS
        if path_of(node.value) == "sys.modules" and (is_written or is_upward):
            self.note(MODULES, node)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call):
        path = path_of(node.func)
        if path in SETTERS:
            self.note(SET, node)
        elif path in ("sys.modules.pop", "sys.modules.update", "sys.modules.setdefault"):
            self.note(MODULES, node)
        self.generic_visit(node)

    def visit_ImportFrom(self, node: ast.ImportFrom):
        parts = [] if node.level else str(node.module).split(".")
        is_private = any(part.startswith("_") and not part.startswith("__") for part in parts[1:])
        if parts and parts[0] not in OURS and (is_private or str(node.module) == "json.scanner"):
            self.note(PRIVATE, node)
        self.generic_visit(node)


def imported_by(tree: ast.Module) -> Iterator[str]:
    """The names of modules in a module, also of those that `first_module` imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield (alias.asname or alias.name).split(".")[0]
        elif isinstance(node, (ast.Assign, ast.AnnAssign)) and isinstance(node.value, ast.Call):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if path_of(node.value.func) in ("first_module", "importlib.import_module"):
                yield from map(path_of, targets)


def path_of(node: ast.AST) -> str:
    """The dotted path of a name or attribute; other expressions are `?`."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{path_of(node.value)}.{node.attr}"
    return "?"


def uses(file: pathlib.Path) -> List[Use]:
    return Uses(ast.parse(file.read_bytes())).found


def all_uses() -> Iterator[Tuple[str, Use]]:
    for folder in ("tf_lossscale", "codemods"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            for use in uses(file):
                yield file.relative_to(ROOT).as_posix(), use


OWN_NAME = "adds an attribute of a name of ours, and replaces none"
OWN_CLASS = "a class of ours, while it is being defined"
OWN_OBJECT = "an object of ours"
PUBLIC = "a public function, which its counterpart undoes"
FORWARDS = "does for the inner optimizer what the program does for ours"
COMMAND = "a process of one of our commands"

ALLOWED: Dict[Tuple[str, str, str], str] = {
    ("codemods/cli/request.py", SET, "Request.of"): OWN_OBJECT,
    ("codemods/engine/json_positions.py", PRIVATE, "the module"): "its docstring says why",
    ("codemods/engine/libcst_internals.py", MODULE, "unvalidated"): "its docstring says why",
    ("codemods/engine/libcst_internals.py", PRIVATE, "the module"): "its docstring says why",
    ("codemods/run/limits.py", HOOK, "Watch.__enter__"): COMMAND,
    ("codemods/run/limits.py", HOOK, "Watch.__exit__"): COMMAND,
    ("codemods/run/worker.py", HOOK, "_end_after"): COMMAND,
    ("codemods/run/worker.py", HOOK, "_end_with"): COMMAND,
    ("codemods/run/worker.py", HOOK, "work"): COMMAND,
    ("_checkpoint_command/command.py", HOOK, "_ended_by_signals"): COMMAND,
    ("_cli/child/sitecustomize.py", MODULES, "the module"): OWN_OBJECT,
    ("_cli/disturbed.py", HOOK, "_wait_for"): COMMAND,
    ("_core/refusals.py", SET, "refuse_updates.decorate"): OWN_CLASS,
    ("_core/unscaled.py", SET, "UnscaledGradients._here"): OWN_NAME,
    ("_install/namespaces.py", SET, "SyntheticNamespace.__getattr__"): OWN_OBJECT,
    (
        "_keras/experimental_policy.py",
        CLASS,
        "PolicyWithLossScale.__init__",
    ): OWN_OBJECT,
    ("_keras/final.py", CLASS, "serialized_like_the_installed"): OWN_CLASS,
    ("_keras/final.py", SET, "_dispatch_unbound_calls"): OWN_CLASS,
    ("_keras/keras2.py", SET, "DelegatingWrapper.__setattr__"): FORWARDS,
    ("_keras/keras2.py", SET, "DelegatingWrapper.name"): FORWARDS,
    (
        "_keras/keras3_attributes.py",
        CLASS,
        "Keras3Attributes._unpickle_model",
    ): OWN_OBJECT,
    ("_keras/keras3_attributes.py", SET, "the module"): OWN_CLASS,
    ("_keras/policy.py", SET, "_class_like"): OWN_CLASS,
    ("_keras/policy_marks.py", SET, "set_mark"): OWN_NAME,
    (
        "_keras/readable_scale.py",
        CLASS,
        "readable",
    ): "a new tensor of ours",
    ("_keras/readable_scale.py", SET, "the module"): OWN_CLASS,
    ("_keras/wrapper.py", SET, "Forward.__set__"): FORWARDS,
    ("_keras/wrapper.py", SET, "LossScaleWrapper._restore_on_inner"): FORWARDS,
    ("_keras/wrapper.py", SET, "LossScaleWrapper._set_on_inner"): FORWARDS,
    ("_keras/wrapper.py", SET, "LossScaleWrapper._wrap"): OWN_NAME,
    ("_namespace.py", SET, "attach.module_getattr"): OWN_OBJECT,
    ("_process.py", HOOK, "_Ending.installed"): COMMAND,
    ("_process.py", HOOK, "_no_lost_interrupt"): COMMAND,
    ("_process.py", MODULE, "_streams"): COMMAND,
    ("_recorder/session.py", HOOK, "_Recording._handle"): PUBLIC,
    ("_recorder/session.py", HOOK, "_Recording._terminate.flush_and_pass_on"): PUBLIC,
    ("_recorder/session.py", HOOK, "_Recording.end"): PUBLIC,
    ("_recorder/session.py", HOOK, "_taken"): PUBLIC,
    ("_recorder/session.py", HOOK, "start"): PUBLIC,
    ("_recorder/transport.py", HOOK, "Reader.add"): PUBLIC,
    ("_recorder/transport.py", HOOK, "Reader.close"): PUBLIC,
    ("_recorder/transport.py", SET, "Ring.__init__"): OWN_NAME,
    ("_restore/optimizers.py", SET, "ProgramOptimizer._set_number"): FORWARDS,
    ("_records/destination.py", HOOK, "the module"): "public: closes files of ours",
    ("_records/show.py", SET, "main"): OWN_OBJECT,
    ("_versions/files.py", CLASS, "serialize_as"): OWN_CLASS,
    ("_versions/files.py", SET, "serialize_like"): OWN_CLASS,
    ("_versions/unnoticed.py", SET, "unnoticed"): OWN_NAME,
}
"""By file (without `tf_lossscale/`), kind and place: why it is no intervention."""


def is_room(file: str, kind: str) -> bool:
    """Whether a file is the one for this kind."""
    if kind == STACK:
        return file == CALLERS
    if kind == HOOK and file in (IMPORTS, AT_START):
        return True
    return file == INTERVENTIONS


def test_only_the_interventions_replace_what_is_not_ours():
    found = [
        (file.removeprefix("tf_lossscale/"), use.kind, use.place)
        for file, use in all_uses()
        if not is_room(file, use.kind)
    ]
    assert sorted(set(found) - set(ALLOWED)) == [], "not listed"
    assert sorted(set(ALLOWED) - set(found)) == [], "listed, and not there"


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("import sys\nsys._getframe(1)", STACK),
        ("caller.f_back.f_locals['self']", STACK),
        ("import inspect\ninspect.stack()", STACK),
        ("Model.__bases__ = (object,)", CLASS),
        ("optimizer.__class__ = Ours", CLASS),
        ("cls.__call__ = ours", CLASS),
        ("setattr(model, 'compile', ours)", SET),
        ("object.__setattr__(model, 'optimizer', ours)", SET),
        ("import os\nos._exit = ours", MODULE),
        ("util = first_module('tensorflow.python.util')\nutil.flag = True", MODULE),
        ("import sys\nsys.modules['tensorflow.contrib'] = ours", MODULES),
        ("import sys\nsys.modules['tf_lossscale'].keras", MODULES),
        ("import sys\nsys.modules.pop('keras')", MODULES),
        ("import sys\nsys.meta_path.insert(0, finder)", HOOK),
        ("import sys\nsys.excepthook = ours", HOOK),
        ("import atexit\natexit.register(flush)", HOOK),
        ("import warnings\nwarnings.showwarning = ours", HOOK),
        ("import builtins\nbuiltins.__import__ = ours", HOOK),
        ("import threading\nthreading.settrace(ours)", HOOK),
        ("from libcst._nodes.internal import CodegenState", PRIVATE),
        ("from json.scanner import py_make_scanner", PRIVATE),
    ],
)
def test_each_construct_is_found(source, kind):
    assert {use.kind for use in Uses(ast.parse(source)).found} == {kind}


def test_what_changes_nothing_is_not_found():
    source = "import sys\nself.value = sys.modules.get('keras')\nmodel.optimizer = optimizer\n"
    assert Uses(ast.parse(source)).found == []
