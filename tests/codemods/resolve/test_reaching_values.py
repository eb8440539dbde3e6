"""Which assignment a name surely holds: none wherever a path around it exists."""

import textwrap

import libcst as cst
import pytest
from tf_lossscale_codemods.model import Options
from tf_lossscale_codemods.resolve.program import Program
from tf_lossscale_codemods.resolve.reaching_values import (
    body_of,
    loads_of,
    reaching_definition,
    reaching_values_of_attribute,
    statement_of,
)


def program_of(source: str) -> Program:
    return Program([cst.parse_module(textwrap.dedent(source))], Options())


def held(source: str):
    """The value that the argument of `use(...)` surely has, as source; None where not sure."""
    program = program_of(source)
    (name,) = [
        node
        for node in program.scopes.loads
        if isinstance(program.parents.get(node), cst.Arg)
        and program.code(program.parents[program.parents[node]].func) == "use"
    ]
    binding = reaching_definition(program, name)
    return None if binding is None else program.code(binding.value)


class TestNotSure:
    @pytest.mark.parametrize(
        "source",
        [
            "use(a)",
            "import a\nuse(a)",
            "def f(a):\n    use(a)",
            "a = 1\na += 1\nuse(a)",
            "if x:\n    a = 1\nelse:\n    a = 2\nuse(a)",
            "a = 1\nif x:\n    a = 2\nuse(a)",
            "a = 1\nfor b in c:\n    use(a)\n    a = 2",
            "a = 1\nwhile x:\n    use(a)\n    a = 2",
            "a = 1\nfor a in b:\n    pass\nuse(a)",
            "a = 1\nwith b as a:\n    use(a)",
            "a = 1\nwith b as (c, a):\n    use(a)",
            "a = 1\nif (a := 2):\n    use(a)",
            "a = 1\nif x:\n    pass\nelif (a := 2):\n    use(a)",
            "a = 1\nb = (a := 2) and use(a)",
            "a = 1\nmatch b:\n    case [a]:\n        use(a)",
            "a = 1\ntry:\n    a = 2\n    f()\nexcept E:\n    use(a)",
            "a = 1\ntry:\n    a = 2\n    f()\nfinally:\n    use(a)",
            "a = 1\ntry:\n    a = 2\nexcept E:\n    pass\nelse:\n    use(a)",
            "a = 1\ntry:\n    f()\nexcept E as a:\n    use(a)",
            "try:\n    a = 1\nexcept E:\n    a = 2\nuse(a)",
            "a = 1\ndef f():\n    use(a)\na = 2",
            "a = 1\ndef f():\n    global a\n    a = 2\nuse(a)\na = 3",
            "a = 1; a = 2; use(a)",
        ],
    )
    def test_there_is_another_way(self, source):
        assert held(source) is None


class TestSure:
    @pytest.mark.parametrize(
        ("source", "value"),
        [
            ("a = 1\nuse(a)", "1"),
            ("a = 1\nif x:\n    use(a)", "1"),
            ("a = 1\nuse(b)\nb = 2", "2"),
            ("a = 1\na = 2\nuse(a)", "2"),
            ("a = 1\nuse(a)\na = 2", "1"),
            ("a = 1\nif x:\n    a = 2\n    use(a)", "2"),
            ("a = 1\na = 2\nfor b in c:\n    use(a)", "2"),
            ("a = 1\na = 2\ndef f():\n    use(a)", "2"),
            ("a, b = 1, 2\nuse(b)", "2"),
            ("a = 1\nif x:\n    a = 2\nelse:\n    use(a)", "1"),
            ("a = 1\nwith b as c:\n    use(a)\na = 2", "1"),
            ("a = 1\ntry:\n    use(a)\nexcept E:\n    a = 2", "1"),
            ("a = 1\na = use(a)", "1"),
            ("a = 1\na = 2\nif (b := 3):\n    use(a)", "2"),
            ("def f():\n    a = 1\n    return use(a)", "1"),
        ],
    )
    def test_the_last_assignment(self, source, value):
        assert held(source) == value


ATTRIBUTE = """
class A:
    def __init__(self):
        {init}
    def f(self):
        return use(self.a)
"""


class TestAttributes:
    def values(self, source: str):
        program = program_of(source)
        (read,) = [
            one for one in program.attributes("a") if isinstance(program.parents.get(one), cst.Arg)
        ]
        found = reaching_values_of_attribute(program, read)
        return None if found is None else [program.code(value) for value in found]

    @pytest.mark.parametrize(
        "init", ["self.a += 1", "self.a, self.b = c", "del self.a", "with b as self.a: pass"]
    )
    def test_not_all_are_in_sight(self, init):
        assert self.values(ATTRIBUTE.format(init=init)) is None

    def test_another_object_may_set_it(self):
        assert self.values(ATTRIBUTE.format(init="self.a = 1") + "\nb.a = 2\n") is None

    def test_an_attribute_of_something_else(self):
        assert self.values("use(b.a)") is None

    def test_every_value(self):
        init = "self.a = 1\n        self.a: int = 2"
        assert self.values(ATTRIBUTE.format(init=init)) == ["1", "2"]

    def test_another_class_has_its_own(self):
        source = ATTRIBUTE.format(init="self.a = 1") + ATTRIBUTE.replace("A", "B").format(
            init="self.a = 2"
        ).replace("use(", "print, (")
        assert self.values(source) == ["1"]


class TestStatements:
    def test_the_statement_around_a_node_and_its_body(self):
        program = program_of("if a:\n    b = c(d)\n    e\n")
        name = next(node for node in program.scopes.loads if node.value == "d")
        statement = statement_of(program, name)
        assert program.code(statement).strip() == "b = c(d)"
        assert len(body_of(program, statement)) == 2

    def test_a_part_of_a_statement_has_no_body(self):
        program = program_of("a = b\n")
        (name,) = program.scopes.loads
        assert body_of(program, name) is None

    def test_loads_of_a_variable_leave_out_its_namesakes(self):
        program = program_of("a = 1\na\ndef f(a):\n    return a\ndef g():\n    return a\n")
        assert len(loads_of(program, program.scopes.module_scope, "a")) == 2
        assert loads_of(program, program.scopes.module_scope, "b") == []
