"""Trains with real packages, with TensorFlow's classes and with the shim, and compares the results.

python tests/clients [NAME ...]

Each client has its own virtual environment in out/clients, created at the first run. Exit status: 0
if no results differ and the shim never raises an error alone; 1 otherwise, including when an
environment cannot be created or a program crashes.
"""

import json
import math
import os
import shutil
import subprocess
import sys
from typing import Any, Dict, List, NamedTuple, Sequence

HERE = os.path.dirname(os.path.abspath(__file__))
ENVIRONMENTS = os.path.join(os.path.dirname(os.path.dirname(HERE)), "out", "clients")
MARK = "RESULTS "
TOLERANCE = 1e-6
AGREE = ("equal", "both raise", "only TensorFlow's raises")


class Client(NamedTuple):
    """A package and the program that uses it.

    Attributes:
      package: the package with its version, for pip.
      python: the interpreter for the environment.
      requirements: the packages to install before this package.
      program: a file in this folder, which is called with `original` or `ours`.
      launcher: the command that runs the interpreter, if any.
      without_dependencies: whether to install only the requirements, and not the dependencies.
      variables: environment variables for the installation.
    """

    package: str
    python: str
    requirements: str
    program: str
    launcher: Sequence[str] = ()
    without_dependencies: bool = False
    variables: Dict[str, str] = {}


TF_215 = "tensorflow-cpu==2.15.1 absl-py setuptools<70 wheel"
CLIENTS = {
    "horovod": Client(
        "horovod==0.28.1",
        "python3.11",
        TF_215 + " cmake<4 cloudpickle psutil pyyaml packaging",
        "horovod_steps.py",
        launcher=("horovodrun", "--gloo", "-np", "2"),
        variables={
            "HOROVOD_WITH_TENSORFLOW": "1",
            "HOROVOD_WITHOUT_PYTORCH": "1",
            "HOROVOD_WITHOUT_MXNET": "1",
            "HOROVOD_WITH_GLOO": "1",
            "HOROVOD_WITHOUT_MPI": "1",
        },
    ),
    "models": Client(
        "tf-models-official==2.15.0",
        "python3.11",
        TF_215 + " attrs dm-tree gin-config pandas psutil pyyaml scipy sentencepiece six"
        " tensorflow-hub tensorflow-model-optimization tf-keras==2.15.* tf-slim",
        "models_steps.py",
        without_dependencies=True,  # it requires hundreds of megabytes that are not used here
    ),
    "addons": Client("tensorflow-addons==0.23.0", "python3.11", TF_215, "addons_steps.py"),
    # With tf-keras, it would use that Keras, whose optimizers TensorFlow's class refuses.
    "transformers": Client("transformers==4.38.2", "python3.11", TF_215, "transformers_steps.py"),
    "t2t": Client(
        "tensor2tensor==1.15.7",
        "python3.7",
        "absl-py cloudpickle==1.1.1 decorator future gin-config<0.5 gym<0.13 h5py<3"
        " mesh-tensorflow==0.1.19 numpy<1.19 protobuf<3.21 six sympy tensorflow==1.15.5"
        " tensorflow-datasets<4.5 tensorflow-hub<0.13 tensorflow-probability==0.8.0",
        "t2t_steps.py",
        without_dependencies=True,
    ),
}


def environment_of(name: str) -> str:
    """The folder of the client's environment; creates it if necessary."""
    client, folder = CLIENTS[name], os.path.join(ENVIRONMENTS, name)
    ready = os.path.join(folder, ".ready")
    if os.path.exists(ready):
        return folder
    python = shutil.which(client.python)
    if python is None:
        raise SystemExit(f"{name} needs {client.python}, which is not on the PATH")
    subprocess.check_call([python, "-m", "venv", "--clear", folder])
    pip = [os.path.join(folder, "bin", "pip"), "install", "--quiet"]
    subprocess.check_call([*pip, *client.requirements.split()])
    if client.without_dependencies:
        pip.append("--no-deps")
    if client.variables:
        pip.append("--no-build-isolation")
    path = os.pathsep.join([os.path.join(folder, "bin"), os.environ["PATH"]])
    subprocess.check_call(
        [*pip, client.package], env=dict(os.environ, PATH=path, **client.variables)
    )
    with open(ready, "w", encoding="utf-8"):
        return folder


def results_of(name: str, side: str) -> Dict[str, Any]:
    """The results that the program of the client prints for `original` or `ours`."""
    client, binaries = CLIENTS[name], os.path.join(environment_of(name), "bin")
    launcher = list(client.launcher)
    if launcher:
        launcher[0] = os.path.join(binaries, launcher[0])
    program = os.path.join(HERE, client.program)
    ran = subprocess.run(
        [*launcher, os.path.join(binaries, "python"), "-W", "ignore", program, side],
        capture_output=True,
        text=True,
        check=False,
        timeout=3000,
        env=dict(
            os.environ,
            CUDA_VISIBLE_DEVICES="-1",
            TF_CPP_MIN_LOG_LEVEL="3",
            PATH=os.pathsep.join([binaries, os.environ["PATH"]]),
        ),
    )
    for line in ran.stdout.splitlines():
        if MARK in line:  # a launcher may prefix the number of the process
            found: Dict[str, Any] = json.loads(line.split(MARK, 1)[1])
            return found
    raise SystemExit(f"{name} with {side} printed no results:\n{ran.stdout}\n{ran.stderr[-4000:]}")


def compare(original: Any, ours: Any) -> str:
    """One of `AGREE`, or a description of the difference."""
    if _is_error(original):
        return "both raise" if _is_error(ours) else "only TensorFlow's raises"
    if _is_error(ours):
        return f"ours raises {str(ours)[:300]}"
    one, other = _flat(original), _flat(ours)
    if len(one) != len(other):
        return f"{len(one)} numbers, ours {len(other)}"
    for left, right in zip(one, other):
        if not (
            math.isclose(left, right, rel_tol=TOLERANCE, abs_tol=1e-9)
            or (math.isnan(left) and math.isnan(right))
        ):
            return f"{left} and {right}"
    return "equal"


def _is_error(result: Any) -> bool:
    return isinstance(result, str) or (isinstance(result, list) and _is_error(result[0]))


def _flat(values: Any) -> List[float]:
    if not isinstance(values, list):
        return [float(values)]
    return [number for value in values for number in _flat(value)]


def main() -> int:
    rows: List[List[str]] = []
    differ = 0
    for name in sys.argv[1:] or list(CLIENTS):
        original, ours = results_of(name, "original"), results_of(name, "ours")
        assert original.keys() == ours.keys()
        verdicts = {case: compare(original[case], ours[case]) for case in original}
        for case, verdict in verdicts.items():
            if verdict not in AGREE:
                print(f"{name}: {case}: {verdict}", flush=True)
        counts = [sum(found == verdict for found in verdicts.values()) for verdict in AGREE]
        differ += len(verdicts) - sum(counts)
        rows.append([CLIENTS[name].package, *map(str, counts), str(len(verdicts) - sum(counts))])
    print("\n| package | " + " | ".join([*AGREE, "differ"]) + " |")
    print("|---" * 5 + "|")
    for row in rows:
        print("| " + " | ".join(row) + " |")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
