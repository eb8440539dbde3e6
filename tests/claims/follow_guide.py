"""Reads a guide of the documentation, and follows it in a folder.

A command of a guide stands after a prompt with the name of a virtual environment, `(old) $ …`, and
below it what it prints; a line `…` stands for any lines, and `…` in a line for any text. A block of
language `diff` shows what the commands before it have changed, or what is changed by hand.
"""

import os
import pathlib
import re
import shlex
import subprocess
from typing import Dict, List, NamedTuple, Optional, Sequence, Union

__all__ = ["ROOT", "Command", "Diff", "Follower", "Step", "fits", "section_of", "steps_of"]

ROOT = pathlib.Path(__file__).resolve().parents[2]

_SET_UP = ("python3", "pip")
"""Programs that make the environments, which a test has already."""

_COPIES = ("cp -r ../tf_lossscale-", "cd ")
"""How commands begin that copy the example, in which a test is already."""

_UPGRADE = ROOT / "tests" / "guides" / "tf_upgrade_v2.diff"
"""What `tf_upgrade_v2` makes of the example, which the page does not show."""

_IDENTITY = ("AUTHOR_NAME", "AUTHOR_EMAIL", "COMMITTER_NAME", "COMMITTER_EMAIL")


class Command(NamedTuple):
    """A command line, and the lines that the page shows below it."""

    environment: str
    line: str
    shown: List[str]

    @property
    def program(self) -> str:
        return shlex.split(self.line)[0]

    @property
    def rewrites(self) -> bool:
        """Whether it changes the program, as the next diff shows."""
        return "--write" in shlex.split(self.line)


class Diff(NamedTuple):
    """A change of the program."""

    text: str


class Step(NamedTuple):
    """A numbered section of a guide."""

    number: int
    parts: List[Union[Command, Diff]]


_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_PROMPT = re.compile(r"(?:\((\w+)\) )?\$ (.+)")


def steps_of(guide: str) -> List[Step]:
    """The numbered sections of a guide, with their commands and diffs in order."""
    numbers = ((re.match(r"(\d+)\. ", section), section) for section in _sections(guide))
    return [Step(int(found.group(1)), _parts(section)) for found, section in numbers if found]


def section_of(guide: str, title: str) -> Step:
    """The section of a guide with this title, as a step without a number."""
    (section,) = [section for section in _sections(guide) if section.startswith(f"{title}\n")]
    return Step(0, _parts(section))


def _sections(guide: str) -> List[str]:
    page = (ROOT / "docs" / f"{guide}.md").read_text(encoding="utf-8")
    return re.split(r"^## ", page, flags=re.MULTILINE)


def _parts(section: str) -> List[Union[Command, Diff]]:
    parts: List[Union[Command, Diff]] = []
    for language, code in _FENCE.findall(section):
        if language == "diff":
            parts.append(Diff(code))
        elif not language:
            parts.extend(_commands(code))
    return parts


def _commands(code: str) -> List[Command]:
    found: List[Command] = []
    for line in code.splitlines():
        prompt = _PROMPT.fullmatch(line)
        if prompt:
            found.append(Command(prompt.group(1) or "", prompt.group(2), []))
        else:
            found[-1].shown.append(line)
    return found


def fits(shown: List[str], printed: str) -> bool:
    """Whether a program printed what the page shows; a page that shows nothing fits anything."""
    if not shown:
        return True
    parts = []
    for line in shown:
        text = ".*".join(re.escape(part) for part in line.rstrip().split("…"))
        parts.append("(?:.*\n)*?" if line.strip() == "…" else text + " *\n")
    return re.fullmatch("".join(parts), printed.rstrip("\n") + "\n") is not None


class Follower:
    """Follows a guide: runs its commands, and makes the changes that are made by hand.

    Args:
      folder: where the example has been copied to.
      environments: name of an environment to the folders of its programs. Of the others no command
        is run; what they change in the program is taken from the page.
      variables: environment variables of the commands.
      sets_up: whether the commands that make the environments are run, too.
    """

    def __init__(
        self,
        folder: pathlib.Path,
        environments: Dict[str, Sequence[str]],
        variables: Optional[Dict[str, str]] = None,
        sets_up: bool = False,
        skipped: Sequence[str] = (),
    ):
        self.folder = folder
        self._environments = environments
        self._sets_up = sets_up
        self._skipped = skipped
        self._variables = dict(
            os.environ,
            CUDA_VISIBLE_DEVICES="-1",
            TF_CPP_MIN_LOG_LEVEL="3",
            GIT_CONFIG_NOSYSTEM="1",
            **{f"GIT_{role}": "guide" for role in _IDENTITY},
            **(variables or {}),
        )
        self._rewritten = False
        self.ran: List[str] = []
        """The commands of its environments that were run."""
        self.printed: Dict[str, str] = {}
        """What each of them printed."""

    def follow(self, step: Step):
        """Follows one step; raises AssertionError where the page and the programs differ."""
        shown = ""
        for part in step.parts:
            if isinstance(part, Command):
                if part.line.startswith("git commit"):
                    shown = ""
                    self._rewritten = False
                self._run(part)
            else:
                shown += part.text
                if not self._rewritten:
                    self.output("git apply -", stdin=part.text)
                self._rewritten = False
                changed = self.output("git diff -U0 --no-color")
                assert _changes(changed) == _changes(shown), changed

    def _run(self, command: Command):
        is_here = command.environment in self._environments or not command.environment
        if command.line.startswith(_COPIES):
            return
        if command.program.startswith(_SET_UP) and not self._sets_up:
            return
        if not is_here and command.program == "tf_upgrade_v2":
            self.output("git apply -", stdin=_UPGRADE.read_text(encoding="utf-8"))
        if not is_here and command.program != "git":
            return
        if any(words in command.line for words in self._skipped):
            return
        printed = self.output(command.line, command.environment, status=_status(command))
        assert fits(command.shown, printed), f"{command.line}\n{printed}"
        if command.program == "tf_upgrade_v2":
            changed = self.output("git diff -U0 --no-color")
            assert _changes(changed) == _changes(_UPGRADE.read_text(encoding="utf-8")), changed
        self._rewritten = self._rewritten or command.rewrites
        if is_here:
            self.ran.append(command.line)
            self.printed[command.line] = printed

    def output(self, line: str, environment: str = "", stdin: str = "", status: int = 0) -> str:
        """What a command prints to its standard output; it must end with `status`."""
        folders = self._environments.get(environment, ())
        path = os.pathsep.join([*folders, self._variables["PATH"]])
        done = subprocess.run(
            ["bash", "-c", line],
            input=stdin,
            cwd=str(self.folder),
            env=dict(self._variables, PATH=path),
            capture_output=True,
            text=True,
            check=False,
        )
        said = f"{line}: status {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert done.returncode == status, said
        return done.stdout


def _status(command: Command) -> int:
    """`migrate` ends with 1 while something is left to change, or to do by hand."""
    return int(
        re.search(r" [1-9]\d* (to change,|manual$)", "\n".join(command.shown), re.M) is not None
    )


def _changes(diff: str) -> Dict[str, List[str]]:
    """File to its removed and added lines, in order."""
    found: Dict[str, List[str]] = {}
    name = ""
    for line in diff.splitlines():
        if line.startswith("+++ "):
            name = line[6:]
        elif line[:1] in ("+", "-") and not line.startswith("--- "):
            found.setdefault(name, []).append(line)
    return found
