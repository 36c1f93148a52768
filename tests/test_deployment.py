"""The files for operators agree with the program: what they name exists, and the examples can be read."""

from __future__ import annotations

import re
import subprocess
import tomllib

import pytest
import yaml

from components import operator_settings
from components.operator_settings import SETTINGS
from tests.support.places import ROOT

FILES = ("Dockerfile", "compose.yaml", "docs/deployment.md", "docs/security.md", "docs/large-collections.md")
GUIDE = (ROOT / "docs/deployment.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", FILES)
def test_every_variable_that_is_named_is_a_setting(name: str) -> None:
    known = {setting.variable for setting in SETTINGS} | {operator_settings.FILE_VARIABLE}
    named = set(re.findall(r"BERT_INTERNALS_[A-Z_]*[A-Z]", (ROOT / name).read_text(encoding="utf-8")))
    assert named
    assert named <= known


def test_the_image_copies_what_exists_and_nothing_that_is_ignored() -> None:
    copied = re.findall(r"^COPY (?:--\S+ )*(\S+) \S+$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert {"components", "dashboard", "assets", ".streamlit", "requirements.txt"} == set(copied)
    assert all((ROOT / path).exists() for path in copied)
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert {f"!{path}" for path in copied} <= set(ignored)
    assert ignored.index(".streamlit/secrets.toml") > ignored.index("!.streamlit")  # the last line that fits decides


def test_the_image_finds_the_pins_in_the_requirements() -> None:
    """The commands of sed as the Dockerfile writes them."""
    dockerfile, requirements = (ROOT / "Dockerfile").read_text(), (ROOT / "requirements.txt").read_text()
    torch, login = re.findall(r"sed (?:-n|-i) '([^']+)'", dockerfile)
    assert sed("-n", torch, requirements).split() == [re.search(r"^torch==\S+", requirements, re.MULTILINE).group()]  # type: ignore[union-attr]
    assert "streamlit[auth]==" in sed("-e", login, requirements)


def sed(option: str, script: str, text: str) -> str:
    return subprocess.run(["sed", option, script], input=text, capture_output=True, text=True, check=True).stdout


def test_compose_has_a_server_for_the_cpu_and_one_for_the_gpu() -> None:
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    cpu, gpu = services["dashboard"], services["dashboard-gpu"]
    assert "profiles" not in cpu
    assert gpu["profiles"] == ["gpu"]
    assert gpu["deploy"]["resources"]["reservations"]["devices"][0]["capabilities"] == ["gpu"]
    arguments = set(re.findall(r"^ARG (\w+)", (ROOT / "Dockerfile").read_text(), re.MULTILINE))
    for service in (cpu, gpu):
        assert service["ports"] == ["127.0.0.1:8501:8501"]  # a proxy stands before it
        assert set(service["build"]["args"]) <= arguments
        assert service["environment"]["STREAMLIT_SERVER_ALLOWED_HOSTS"]


def test_the_example_of_the_file_holds_every_setting_and_is_valid(monkeypatch, tmp_path) -> None:
    example = next(block for block in blocks("toml") if "[limits]" in block)
    assert {name for rows in tomllib.loads(example).values() for name in rows} == {s.name for s in SETTINGS}
    (tmp_path / "settings.toml").write_text(example)
    monkeypatch.setenv(operator_settings.FILE_VARIABLE, str(tmp_path / "settings.toml"))
    for setting in SETTINGS:
        monkeypatch.delenv(setting.variable, raising=False)
    assert {row.source for row in operator_settings.check_all()} == {"file"}


def test_the_other_examples_can_be_read() -> None:
    assert all(tomllib.loads(block) for block in blocks("toml"))
    nginx = blocks("nginx")
    assert len(nginx) >= 2
    assert all(block.count("{") == block.count("}") > 0 for block in nginx)


def blocks(language: str) -> list[str]:
    """The examples of a language in the guide."""
    return re.findall(rf"^```{language}\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
