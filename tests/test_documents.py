"""What README and docs/ tell a reader can be followed: links lead somewhere, commands are understood, names exist."""

from __future__ import annotations

import csv
import re
import shlex
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import pytest

from components import VERSION
from components.command_line import program
from dashboard.declared import table
from tests.support.places import ROOT

DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
NAMES = [path.relative_to(ROOT).as_posix() for path in DOCUMENTS]
README = DOCUMENTS[0].read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = set(re.search(r"^\.PHONY: (.+)$", MAKEFILE, re.MULTILINE).group(1).split())  # type: ignore[union-attr]
FENCED = re.compile(r"^```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`([^`\n]+(?:\n[^`\n]+)?)`")  # a long one goes on in the next line
LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")
FOLDERS = ("assets", "components", "dashboard", "docs", "tests", ".ci")


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def anchors(path: Path) -> set[str]:
    """What `#...` may name in a document: its headings as GitHub writes them."""
    found: set[str] = set()
    for title in re.findall(r"^#+ (.+)$", FENCED.sub("", path.read_text(encoding="utf-8")), re.MULTILINE):
        plain = "-".join(re.sub(r"[^\w\- ]", "", re.sub(r"[`*]", "", title).lower()).split(" "))
        found.add(
            next(name for name in (plain, *(f"{plain}-{number}" for number in range(1, 99))) if name not in found)
        )
    return found


def broken_links(path: Path, root: Path = ROOT) -> list[str]:
    """The links of a document that lead to no file, folder or heading below `root`; those to other hosts are left out."""
    broken = []
    prose = INLINE.sub("", FENCED.sub("", path.read_text(encoding="utf-8")))
    for target in LINK.findall(prose):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (path.parent / name).resolve() if name else path
        is_there = file.exists() and file.is_relative_to(root)
        if not is_there or (anchor and anchor not in anchors(file)):
            broken.append(target)
    return broken


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_to_files_and_headings(name: str) -> None:
    assert broken_links(ROOT / name) == []


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# What it is, `x`\n[a](#what-it-is-x) [b](#what) ![c](none.png) [d](page.md#no) [f](..) `[e](in-code)`\n"
    )
    assert broken_links(page, tmp_path) == ["#what", "none.png", "page.md#no", ".."]


def test_readme_is_short_and_leads_to_every_document() -> None:
    assert len(README.splitlines()) <= 150
    assert len(text_of("docs/architecture.md").splitlines()) <= 120
    linked = {target.partition("#")[0] for target in LINK.findall(README)}
    assert {name for name in NAMES if name != "README.md"} | {"LICENSE", "CITATION.cff", "CHANGELOG.md"} <= linked
    assert README.count("](assets/screenshots/") == 1


def commands(text: str) -> Iterator[str]:
    """Lines of code and code within sentences that call Python, make, or both after variables of the environment."""
    lines = [line.strip() for block in FENCED.findall(text) for line in block.splitlines()]
    for line in (*lines, *(" ".join(found.split()) for found in INLINE.findall(FENCED.sub("", text)))):
        if re.match(r"(\w+=\S+ )*(python3? -m|make)( |$)", line) and "COMMAND" not in line:
            yield line


def words_of(line: str) -> list[str]:
    """The words of a command without variables before it and the comment after it."""
    words = shlex.split(line, comments=True)
    while re.match(r"[A-Z_]+=", words[0]):
        words.pop(0)
    return words


def fault(line: str) -> str:
    """Why a command cannot be run as it stands; empty if it can, as far as its words tell."""
    program_name, *words = words_of(line)
    if program_name == "make":
        return _fault_of_make(words)
    module, *arguments = words[1:]
    if module == "components":
        if len(arguments) == 1 and not arguments[0].startswith("-"):  # the name alone, in a sentence
            return "" if arguments[0] in {command.NAME for command in program.COMMANDS} else line
        try:
            program._parser().parse_args(arguments)
        except SystemExit as ended:  # --help and --version
            return "" if not ended.code else line
        except Exception as problem:  # noqa: BLE001 - the test shows it
            return f"{line}: {problem}"
        return ""
    return "" if find_spec(module) is not None else f"{line}: there is no module {module}"


def _fault_of_make(words: list[str]) -> str:
    targets = [word for word in words if "=" not in word]
    unknown = [word for word in words if "=" in word and f"$({word.partition('=')[0]})" not in MAKEFILE]
    if not TARGETS.issuperset(targets) or unknown:
        return f"make {' '.join(words)}: {[*targets, *unknown]}"
    done = subprocess.run(["make", "--dry-run", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stderr


@pytest.mark.parametrize("name", NAMES)
def test_commands_are_understood(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert [problem for line in dict.fromkeys(commands(text_of(name))) if (problem := fault(line))] == []


def test_commands_are_found_and_wrong_ones_refused() -> None:
    assert sum(" components " in line for line in commands(README)) == 9
    block = "```\nA=1 make none   # why\npython -m components sts x\n```\n"
    text = f"Write `python -m components\nsearch index --no-such`:\n{block}"
    found = list(commands(text))
    assert found == [
        "A=1 make none   # why",
        "python -m components sts x",
        "python -m components search index --no-such",
    ]
    assert [bool(fault(line)) for line in found] == [True, False, True]
    assert fault("python -m dashboard.nothing")
    assert fault("make run NONE=1")
    assert not fault("make run PORT=8600")


def test_readmes_commands_find_their_files_one_after_the_other() -> None:
    made: set[str] = set()
    read: list[str] = []
    for words in (words_of(line)[3:] for line in commands(README) if " components " in line):
        for before, word in pairwise(words):
            if before in {"--out", "--report"}:
                made.add(word)
            elif re.fullmatch(r"(my-[a-z]+|\S+\.[a-z]+)", word):
                read.append(word)
                assert word in made or (ROOT / word).is_file(), word
    assert len(read) == 6
    with (ROOT / "assets/samples/pairs.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert (len(rows), set(rows[0])) == (64, {"query", "text"})
    assert "source .venv/bin/activate" in README.partition("## The command line")[2].partition("```")[0]


def test_every_command_of_the_program_is_told_of() -> None:
    told = {words_of(line)[3] for line in commands(text_of("docs/command-line.md")) if len(words_of(line)) > 3}
    told |= {words_of(line)[3] for name in NAMES for line in commands(text_of(name)) if " components " in line}
    assert {module.NAME for module in program.COMMANDS} <= told


@pytest.mark.parametrize("name", NAMES)
def test_files_and_views_that_are_named_exist(name: str) -> None:
    text = text_of(name)
    inline = INLINE.findall(FENCED.sub("", text))
    paths = [found for found in inline if re.fullmatch(rf"({'|'.join(map(re.escape, FOLDERS))})(/[\w.*-]+)+/?", found)]
    assert [found for found in paths if not list(ROOT.glob(found.rstrip("/")))] == []
    views = re.findall(r"/[a-z]+\?v=([a-z-]+)", text)
    assert set(views) <= table.VIEWS.keys()


def test_the_licence_and_how_to_cite_agree() -> None:
    assert text_of("LICENSE").startswith("MIT License\n\nCopyright (c) 2026 The BERT Internals authors\n")
    citation = text_of("CITATION.cff")
    assert "name: The BERT Internals authors" in citation
    assert "license: MIT" in citation


def test_the_version_stands_in_one_place_and_in_the_citation() -> None:
    files = [
        *ROOT.glob("*"),
        *ROOT.glob("docs/*"),
        *(ROOT / "dashboard").rglob("*.py"),
        *(ROOT / "components").rglob("*.py"),
    ]
    texts = {path: path.read_text(encoding="utf-8") for path in files if path.is_file() and path.name != "CHANGELOG.md"}
    assert {path for path, text in texts.items() if VERSION in text} == {
        ROOT / "CITATION.cff",
        ROOT / "components/__init__.py",
    }
    assert f"\nversion: {VERSION}\n" in text_of("CITATION.cff")
