"""`migrate --to shim`, then `migrate`, on programs of several files."""

import collections

import pytest
from several_files import migrate
from test_exported_names import FINAL, FOLLOWED, MODULE, OWN, UNKNOWN
from test_optimizers_across_files import EXPERIMENTAL, SEEN, optim
from two_steps import meaning

ON_SHIM = MODULE.replace("tensorflow", "tf_lossscale")
PROGRAMS = {
    **{f"followed {name}": {"amp.py": MODULE, **files} for name, (files, _) in FOLLOWED.items()},
    **{
        f"unknown {name}": {"amp.py": MODULE + OWN, file: text, "mid.py": "import amp\n"}
        for name, (file, text) in UNKNOWN.items()
    },
    **{
        f"optimizer {name}": {
            **{file: text.replace("{name}", EXPERIMENTAL) for file, text in files.items()},
            "optim.py": optim(EXPERIMENTAL + "(tf.keras.optimizers.SGD(), 'dynamic')"),
            "main.py": main,
        }
        for name, (files, main) in list(SEEN.items())[::3]
    },
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("program", PROGRAMS)
def test_two_steps_end_where_one_does(program, command_line):
    files = PROGRAMS[program]
    keras = "3" if "optim.py" in files else "2"
    direct = migrate(command_line, files, "--keras", keras)
    shim = migrate(command_line, files, "--to", "shim")
    second = migrate(command_line, shim.sources, "--keras", keras)
    for name in files:
        if name.endswith(".py") and "print 'two'" not in files[name]:
            assert meaning(second.sources[name].encode()) == meaning(direct.sources[name].encode())
    assert not left(second) - left(direct)


def left(migrated):
    found = (one.split(":")[0] + one[one.index(" ") :] for one in migrated.findings)
    return collections.Counter(one for one in found if not one.endswith(" safe"))


@pytest.mark.parametrize("files", FOLLOWED.values(), ids=FOLLOWED)
def test_the_file_that_uses_a_module_of_the_shim_is_rewritten(files, command_line):
    files, user = files
    migrated = migrate(command_line, {"amp.py": ON_SHIM, **files_on_shim(files)})
    assert {one.split()[-1] for one in migrated.findings} == {"safe"}
    assert any(one.startswith(user + ":") for one in migrated.findings)
    assert migrated.sources[user].endswith(FINAL)
    assert not any("experimental" in text for text in migrated.sources.values())


@pytest.mark.parametrize("case", UNKNOWN.values(), ids=UNKNOWN)
def test_what_may_be_read_keeps_its_meaning(case, command_line):
    name, text = case
    files = {"amp.py": ON_SHIM + OWN, name: text, "mid.py": "import amp\n"}
    migrated = migrate(command_line, files)
    assert "amp.py:1 LS911 unsafe" in migrated.findings
    assert f"{name} may read `mp` from here" in migrated.messages
    assert migrated.sources["amp.py"].startswith(ON_SHIM)


def test_run_for_the_shim_leaves_them(command_line):
    files = {"amp.py": ON_SHIM, "train.py": FOLLOWED["module"][0]["train.py"]}
    migrated = migrate(command_line, files, "--to", "shim")
    assert migrated.sources == files
    assert migrated.findings == []


def files_on_shim(files):
    return {name: text.replace("tensorflow", "tf_lossscale") for name, text in files.items()}
