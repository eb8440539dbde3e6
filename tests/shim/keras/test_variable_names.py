"""The names of variables that the inner optimizer creates while a function is traced.

Keras stores them in `.h5` files. They equal those of the original, which traces a conditional for
its loss scale before the one in which the variables are created.
"""

import pytest
import recorded
import tensorflow as tf

KINDS = [kind for kind in recorded.kinds() if kind.name != "keras3"]
BUILDS_LATE = (2, 11) <= recorded.TF < (2, 14)


def names(subject, dynamic, conditional_before):
    with recorded.eagerly():
        weights = [
            tf.compat.v2.Variable([1.0, 2.0], name="a"),
            tf.compat.v2.Variable(1.0, name="b"),
        ]
        inners = [subject.inner("Adam"), subject.inner("Adam")]
        optimizers = [
            subject.dynamic(inner) if dynamic else subject.fixed(inner, 128.0) for inner in inners
        ]

        @tf.function
        def step():
            if conditional_before:
                tf.cond(weights[1] > 100.0, lambda: weights[1] * 1.0, lambda: weights[1] * 2.0)
            for optimizer in optimizers:
                optimizer.get_scaled_loss(weights[1])
                gradients = optimizer.get_unscaled_gradients([weight * 1.0 for weight in weights])
                optimizer.apply_gradients(zip(gradients, weights))
            return tf.constant(0)

        step()
        found = []
        for inner in inners:
            made = inner.weights if subject.kind.name == "legacy" else inner.variables
            found += sorted(variable.name for variable in (made() if callable(made) else made))
        return found


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("dynamic", "conditional_before"), [(True, True), (False, False)])
@pytest.mark.parametrize(
    "kind",
    [kind for kind in KINDS if not (BUILDS_LATE and kind.name == "new")],
    ids=lambda kind: kind.name,
)
def test_variables_made_in_a_function_have_the_names_of_the_original(
    kind, dynamic, conditional_before
):
    found = {
        str(subject): names(subject, dynamic, conditional_before)
        for subject in recorded.originals() + recorded.with_own_step()
        if subject.kind.name == kind.name
    }
    assert any(subject.startswith("original") for subject in found), found
    prefix = ("cond_2/" if conditional_before else "cond_1/") if dynamic else ""
    for subject, its in found.items():
        assert len(its) >= 10, subject
        if kind.name == "legacy" and recorded.TF >= (2, 0):
            assert its[0] == prefix + "Adam/a/m:0", subject
        assert its == found[next(iter(found))], subject


@pytest.mark.skipif(not BUILDS_LATE, reason="only 2.11 to 2.13 put the optimizer's name first")
def test_new_style_optimizers_make_theirs_outside_the_conditional():
    kind = next(kind for kind in KINDS if kind.name == "new")
    own, original = (recorded.Subject(kind, "final", who) for who in ("ours", "original"))
    assert names(original, True, False)[0] == "cond_1/Adam/m/a:0"
    assert names(original, False, False)[0] == "Adam/m/a:0"
    assert "m/a:0" in names(own, True, False)
