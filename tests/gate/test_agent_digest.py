"""Which files make an agent, and what its digest notices."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ci_gate import config
from ci_gate.errors import AgentSetupError
from ci_gate.gate.agent_digest import agent_digest, agent_name, agent_ref
from ci_gate.gate.repository import find_repository
from ci_gate.model.run import AgentRef

NewRepository = Callable[..., Any]

CONFIG = '[[suite]]\nname = "desk"\ntasks = ["evals/**/*.toml"]\n[agent]\npython = "desk:run"\n'
FILES = {
    "ci-gate.toml": CONFIG,
    "desk.py": "def run(): ...",
    "prompts/system.md": "Be kind.",
    "evals/a.toml": "task",
    "evals/deep/b.toml": "task",
    "evals/agent_part.py": "x",
    "baselines/desk.json": "{}",
    "docs/page.md": "text",
    "README.md": "text",
}


def written(folder: Path, files: dict[str, str] = FILES) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return folder


def ref_of(folder: Path) -> AgentRef:
    """Return the agent of the configuration in a folder."""
    loaded = config.load(folder / "ci-gate.toml")
    return agent_ref(find_repository(folder), loaded, output=folder / ".ci-gate")


PARTS = ("desk.py", "prompts/system.md", "evals/agent_part.py")


def test_code_and_prompts_are_the_agent_and_the_rest_is_not(new_repository: NewRepository) -> None:
    """Tasks, baselines, the configuration and documents do not make another agent."""
    folder = new_repository()
    folder.commit(FILES)
    before = ref_of(folder.path)
    assert before == AgentRef(name="desk:run", digest=before.digest, dirty=False)

    for name, content in FILES.items():
        folder.write(name, content + "\n")
        after = ref_of(folder.path)
        assert (name, after.digest != before.digest) == (name, name in PARTS)
        assert (name, after.dirty) == (name, name in PARTS)
        folder.write(name, content)


def test_a_commit_ends_dirtiness_and_keeps_the_digest(new_repository: NewRepository) -> None:
    """The digest is of what is on disk, committed or not."""
    folder = new_repository()
    folder.commit(FILES)
    folder.write("desk.py", "edited")
    edited = ref_of(folder.path)

    folder.commit()

    assert edited.dirty is True
    assert ref_of(folder.path) == AgentRef(name="desk:run", digest=edited.digest, dirty=False)


def test_untracked_files_are_no_part_but_said(new_repository: NewRepository) -> None:
    """A new file counts once it is tracked; until then the agent is called dirty."""
    folder = new_repository()
    folder.commit({**FILES, ".gitignore": "*.log\n"})
    before = ref_of(folder.path)
    folder.write("x.log", "ignored")
    folder.write("node_modules/x.js", "never")
    assert ref_of(folder.path) == before

    folder.write("new.py", "x")

    assert ref_of(folder.path) == AgentRef(name="desk:run", digest=before.digest, dirty=True)


def test_what_python_compiled_is_no_part_though_it_was_committed(
    new_repository: NewRepository,
) -> None:
    """It differs from checkout to checkout, and says nothing that its source does not."""
    folder = new_repository()
    folder.commit(FILES)
    before = ref_of(folder.path).digest
    folder.commit({"__pycache__/desk.cpython-311.pyc": "of one day"})

    folder.write("__pycache__/desk.cpython-311.pyc", "of another day")

    assert ref_of(folder.path) == AgentRef(name="desk:run", digest=before, dirty=False)


def test_the_digest_is_the_same_wherever_the_files_lie(
    tmp_path: Path, new_repository: NewRepository
) -> None:
    """Place, time and the presence of git do not enter, only names and contents."""
    folder = new_repository()
    folder.commit(FILES)
    plain = written(tmp_path / "venv" / "plain")
    written(plain, {".venv/lib.py": "x", "__pycache__/desk.pyc": "x", ".ci-gate/x": "x"})
    nested = new_repository("mono")
    nested.commit({f"apps/desk/{name}": text for name, text in FILES.items()})

    digest = ref_of(folder.path).digest

    assert ref_of(plain) == AgentRef(name="desk:run", digest=digest, dirty=None)
    assert ref_of(nested.path / "apps" / "desk").digest == digest


def test_before_the_first_add_all_files_count(new_repository: NewRepository) -> None:
    """In a repository without tracked files the agent is not an empty one."""
    folder = new_repository()
    written(folder.path)

    found = ref_of(folder.path)

    assert found.dirty is True
    assert found.digest != agent_digest(None, folder.path / "nowhere").digest


def test_globs_choose_the_files_tracked_or_not(new_repository: NewRepository) -> None:
    """``[agent] files`` says exactly what the agent is; a folder means all that is in it."""
    folder = new_repository()
    folder.commit({"a.py": "1", "prompts/x/y.md": "1", "other.py": "1"})
    repository = find_repository(folder.path)

    def digest(*globs: str) -> str | None:
        return agent_digest(repository, folder.path, globs=globs).digest

    chosen = digest("a.py", "prompts")
    assert chosen == digest("./*a.py", "prompts/**") == digest("[a].py", "**/y.md", "**/x/*")
    folder.write("other.py", "2")
    assert digest("a.py", "prompts") == chosen
    assert agent_digest(repository, folder.path, globs=("a.py",)).dirty is False
    folder.write("prompts/new.md", "1")
    assert digest("a.py", "prompts") != chosen
    assert agent_digest(repository, folder.path, globs=("prompts",)).dirty is True


def test_names_count_as_much_as_contents(tmp_path: Path) -> None:
    """Files that change places are another agent."""
    first = written(tmp_path / "1", {"a": "x", "b": "y"})
    second = written(tmp_path / "2", {"a": "y", "b": "x"})
    third = written(tmp_path / "3", {"a": "x", "b/c": "y"})

    assert len({agent_digest(None, folder).digest for folder in (first, second, third)}) == 3


def test_links_count_by_their_target_and_are_not_followed(
    tmp_path: Path, new_repository: NewRepository
) -> None:
    """What lies outside the agent's folder is neither read nor part of it."""
    outside = written(tmp_path / "outside", {"secret/x": "1", "file": "1"})
    folder = new_repository()
    folder.write("kept/x", "1")
    (folder.path / "file").symlink_to(outside / "file")
    (folder.path / "loop").symlink_to(".")
    folder.commit()
    repository = find_repository(folder.path)
    before = agent_digest(repository, folder.path).digest

    written(outside, {"file": "2"})
    assert agent_digest(repository, folder.path).digest == before
    assert agent_digest(None, folder.path).digest == before
    (folder.path / "file").unlink()
    (folder.path / "file").symlink_to(outside / "other")
    assert agent_digest(repository, folder.path).digest != before
    shutil.rmtree(folder.path / "kept")
    (folder.path / "kept").symlink_to(outside / "secret")
    through = agent_digest(repository, folder.path).digest
    written(outside, {"secret/x": "2"})
    assert agent_digest(repository, folder.path).digest == through


def test_special_files_do_not_block(tmp_path: Path) -> None:
    """A pipe would wait for a writer for ever."""
    written(tmp_path, {"a": "x"})
    os.mkfifo(tmp_path / "pipe")

    assert agent_digest(None, tmp_path).digest != agent_digest(None, tmp_path, globs=["a"]).digest


def test_names_that_are_not_utf8_are_names(tmp_path: Path) -> None:
    """File names are bytes on POSIX; any of them can be part of an agent."""
    (tmp_path / os.fsdecode(b"\xff")).write_text("x")
    first = agent_digest(None, tmp_path).digest
    (tmp_path / os.fsdecode(b"\xff")).rename(tmp_path / os.fsdecode(b"\xfe"))

    assert agent_digest(None, tmp_path).digest != first


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """Which file, and what to do; not a traceback."""
    (written(tmp_path, {"a": "x"}) / "a").chmod(0)

    with pytest.raises(AgentSetupError, match="a: a file of the agent cannot be read"):
        agent_digest(None, tmp_path)


def test_submodules_files_are_part(new_repository: NewRepository) -> None:
    """A library that is a submodule is code of the agent."""
    inner = new_repository("inner")
    inner.commit({"lib.py": "1"})
    folder = new_repository()
    folder.commit({"a.py": "1"})
    folder.git("submodule", "--quiet", "add", f"file://{inner.path}", "lib")
    folder.commit()
    repository = find_repository(folder.path)
    before = agent_digest(repository, folder.path)

    folder.write("lib/lib.py", "2")
    after = agent_digest(repository, folder.path)

    assert (before.dirty, after.dirty) == (False, True)
    assert after.digest != before.digest


def test_agents_are_named_as_the_configuration_names_them() -> None:
    """The name is for people; a command is its words."""
    text = CONFIG.replace('python = "desk:run"', 'command = ["node", "agent.mjs"]')
    found = config.parse(text.encode(), name="ci-gate.toml", root=Path("/repo"))

    assert agent_name(found.agent) == "node agent.mjs"
