"""Runs that are saved half-way, for `tests/shim/keras/test_half_trained.py`.

    python half_trained.py FOLDER [KIND ...]

Writes FOLDER/VERSION-KIND.tar.gz for each kind of optimizer: the file of each case, its weights at
the save and after each of the next steps, and `expected.json` with what else the real class did in
these. On Keras 3, which has no class that reads files of Keras 2, the class is ours. The cases of
an archive have each optimizer and each model; those of all archives, most pairs of these and of the
forms.
"""

import gzip
import json
import os
import shutil
import sys
import tarfile
import tempfile

from common import VERSION, np, plain, tf, v1

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../shim/keras"))

import half_trained as runs

ARCHIVES = (
    *("2.0-legacy", "2.3-legacy", "2.4-legacy", "2.8-legacy", "2.11-legacy", "2.11-new"),
    *("2.15-legacy", "2.15-new", "2.21-legacy", "2.21-new", "2.16-keras3.3", "2.21-keras3.15"),
)


def kinds():
    """The Keras and its optimizers, for each kind of optimizers that is installed."""
    if VERSION < (2, 11):
        return {"legacy": (tf.keras, tf.keras.optimizers)}
    found = {}
    try:
        keras_2 = tf.keras if VERSION < (2, 16) else __import__("tf_keras")
        found["legacy"] = keras_2, keras_2.optimizers.legacy
        found["new"] = keras_2, keras_2.optimizers
    except ImportError:
        pass
    if VERSION >= (2, 16):
        import keras

        found["keras" + ".".join(keras.__version__.split(".")[:2])] = keras, keras.optimizers
    return found


def wrapped(kind, keras, inner):
    if kind.startswith("keras"):
        import tf_lossscale

        keras = tf_lossscale.keras
    mixed_precision = keras.mixed_precision
    if hasattr(mixed_precision, "LossScaleOptimizer"):
        return mixed_precision.LossScaleOptimizer(
            inner, initial_scale=runs.SCALE, dynamic_growth_steps=runs.PERIOD
        )
    scale = v1.DynamicLossScale(runs.SCALE, runs.PERIOD)
    return mixed_precision.experimental.LossScaleOptimizer(inner, scale)


def save(form, path, model, optimizer):
    """Saves a run in one form."""
    if form not in ("checkpoint", "manager"):
        model.compile(optimizer=optimizer, loss="mse")
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


def can_be_saved(kind, case):
    """Whether Keras saves a run.

    2.0 fails with an error about the shapes of the inputs of a model that was not built by `fit`,
    and 2.11 with an AttributeError about `_variables`.
    """
    if kind.startswith("keras"):
        return case.form in ("checkpoint", "manager")
    if VERSION < (2, 1) and case.model == "sequential":
        return case.form not in ("model.h5", "saved_model")
    return not (kind == "new" and case.form == "model.h5" and VERSION < (2, 13))


def cases(archive, kind, optimizers):
    rules = [name for name, rule in runs.RULES.items() if hasattr(optimizers, rule.name)]
    models = [name for name in runs.ALL_MODELS if VERSION >= (2, 4) or name != "attention"]
    return runs.cases(ARCHIVES.index(archive), rules, models, lambda case: can_be_saved(kind, case))


def with_skips(case, is_after):
    """Whether steps of a run overflow.

    Nadam of Keras 2 counts its steps in Python, and up to 2.2 an optimizer counts no skipped step.
    """
    if case.rule == "nadam":
        return False
    return not (is_after and VERSION < (2, 3) and case.rule in runs.COUNTING)


def record(archive, kind, keras, optimizers, folder):
    expected = {}
    for case in cases(archive, kind, optimizers):
        model = runs.built(keras, case.model)
        optimizer = wrapped(kind, keras, runs.inner_optimizer(optimizers, case.rule))
        for number, factor in enumerate(runs.losses(0, runs.BEFORE, with_skips(case, False))):
            runs.step(model, optimizer, number, factor)
        save(case.form, os.path.join(folder, case.name), model, optimizer)
        at_save = runs.Step(runs.scale_of(optimizer), 0, runs.values_of(model))
        outputs = runs.outputs(model)
        losses = runs.losses(runs.BEFORE, runs.BEFORE + runs.AFTER, with_skips(case, True))
        after = list(runs.go_on(model, optimizer, losses))
        weights = np.stack([step.weights for step in [at_save, *after]])
        np.save(os.path.join(folder, case.name + ".npy"), weights)
        expected[case.name] = {
            "scale": at_save.scale,
            "outputs": outputs,
            "losses": losses,
            "scales": [step.scale for step in after],
            "iterations": [step.iterations for step in after],
        }
        print(case.name, flush=True)
    facts = {"tf": tf.__version__, "python": sys.version.split()[0], "cases": expected}
    facts.update({"keras": keras.__version__} if kind.startswith("keras") else {})
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
    for kind, (keras, optimizers) in kinds().items():
        if sys.argv[2:] and kind not in sys.argv[2:]:
            continue
        archive = "{}.{}-{}".format(*VERSION, kind)
        folder = tempfile.mkdtemp()
        record(archive, kind, keras, optimizers, folder)
        pack(folder, os.path.join(sys.argv[1], archive + ".tar.gz"))
        shutil.rmtree(folder)
