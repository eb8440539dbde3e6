"""Runs of Keras 2 that are saved half-way, for `tests/shim/keras/test_half_trained.py`.

    python half_trained.py FOLDER

Writes FOLDER/VERSION-KIND.tar.gz for each kind of optimizer: the file of each case, and
`expected.json` with what the real class did in the steps after the save. Each optimizer trains the
functional model, and Adam each model; the files are checkpoints, and of some models every form.
"""

import gzip
import json
import os
import shutil
import sys
import tarfile
import tempfile

from common import VERSION, plain, tf, v1

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../shim/keras"))

import half_trained as runs

keras = __import__("tf_keras") if VERSION >= (2, 16) else tf.keras
FORMS = ("manager", "weights", "weights.h5", "model.h5", "saved_model")


def cases():
    """The model, the optimizer and the form of each file."""
    for name in runs.OPTIMIZERS:
        yield "functional", name, "checkpoint"
    for model in runs.MODELS:
        if model != "functional" and (model != "attention" or VERSION >= (2, 4)):
            yield model, "Adam", "checkpoint"
    for form in FORMS:
        yield "functional", "Adam", form
    yield "sequential", "Adam", "model.h5"


def kinds():
    if VERSION < (2, 11):
        return {"legacy": keras.optimizers}
    return {"legacy": keras.optimizers.legacy, "new": keras.optimizers}


def wrapped(inner):
    mixed_precision = keras.mixed_precision
    if hasattr(mixed_precision, "LossScaleOptimizer"):
        return mixed_precision.LossScaleOptimizer(inner, True, runs.SCALE, runs.PERIOD)
    scale = v1.DynamicLossScale(runs.SCALE, runs.PERIOD)
    return mixed_precision.experimental.LossScaleOptimizer(inner, scale)


def save(form, path, model, optimizer):
    """Saves a run in one form."""
    checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer)
    if form == "checkpoint":
        checkpoint.write(path)
    elif form == "manager":
        tf.train.CheckpointManager(checkpoint, path, 2).save()
    elif form.startswith("weights"):
        model.save_weights(path)
    elif form == "model.h5":
        model.save(path)
    else:
        model.save(path, save_format="tf", **({"save_traces": False} if VERSION > (2, 3) else {}))


def can_be_saved(kind, form):
    """Whether Keras saves a run; 2.11 fails with an AttributeError about `_variables`."""
    return not (kind == "new" and form == "model.h5" and VERSION < (2, 13))


def record(kind, optimizers, folder):
    expected = {}
    for model_name, name, form in cases():
        if not can_be_saved(kind, form):
            continue
        model = runs.built(keras, model_name)
        optimizer = wrapped(runs.inner_optimizer(optimizers, name))
        for number in range(runs.BEFORE):
            runs.step(model, optimizer, number)
        case = f"{model_name}-{name}-{form}"
        if "." in form or form == "saved_model":
            model.compile(optimizer=optimizer, loss="mse")
        save(form, os.path.join(folder, case), model, optimizer)
        expected[case] = {"at_save": runs.outputs(model), **runs.go_on(model, optimizer)}
        print(case, flush=True)
    facts = {"tf": tf.__version__, "python": sys.version.split()[0], "cases": expected}
    with open(os.path.join(folder, "expected.json"), "w") as file:
        json.dump(plain(facts), file, sort_keys=True)


def pack(folder, path):
    with gzip.GzipFile(path, "wb", 9, mtime=0) as file, tarfile.open(
        fileobj=file, mode="w"
    ) as archive:
        for name in sorted(os.listdir(folder)):
            archive.add(os.path.join(folder, name), name, filter=without_owner)


def without_owner(member):
    """A member of an archive without what differs between machines, and without graphs."""
    if member.name.endswith(("keras_metadata.pb", "fingerprint.pb")):
        return None
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member


if __name__ == "__main__":
    for kind, optimizers in kinds().items():
        folder = tempfile.mkdtemp()
        record(kind, optimizers, folder)
        version = ".".join(map(str, VERSION))
        pack(folder, os.path.join(sys.argv[1], f"{version}-{kind}.tar.gz"))
        shutil.rmtree(folder)
