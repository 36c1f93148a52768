"""The operator's settings: one table, three sources, and one clear line for what cannot be read."""

from __future__ import annotations

import ast
import json
import os
import re
from pathlib import Path

import pytest

from components import operator_settings
from components.command_line.program import main
from components.errors import InputError
from components.operator_settings import SETTINGS, check_all, environment, found
from tests.support.places import ROOT

TABLE = "components/operator_settings.py"


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Writes the operator's file; no variable of the environment is set beside it."""
    for setting in SETTINGS:
        monkeypatch.delenv(setting.variable, raising=False)

    def write(text: str) -> Path:
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.toml"  # each file is read once
        path.write_text(text, encoding="utf-8")
        monkeypatch.setenv(operator_settings.FILE_VARIABLE, str(path))
        return path

    return write


def test_the_environment_counts_before_the_file_and_the_file_before_the_default(written, monkeypatch) -> None:
    written('[limits]\ntrace_bytes = "512M"\nsentences = 32\n[models]\nfree_models = false\n')
    monkeypatch.setenv("BERT_INTERNALS_TRACE_BYTES", "2G")
    rows = {row.setting.name: (row.value, row.source) for row in check_all()}
    assert rows["trace_bytes"] == (2 << 30, "environment")
    assert rows["sentences"] == (32, "file")
    assert rows["free_models"] == (False, "file")
    assert rows["runs_gb"] == (5.0, "default")
    assert rows["training"] == (None, "default")  # the server's address decides
    assert operator_settings.FREE_MODELS.chosen() is False
    assert operator_settings.TRAINING.chosen() is None


def test_an_empty_variable_is_none(written, monkeypatch) -> None:
    written("[training]\nruns_gb = 7.5\n")
    monkeypatch.setenv("BERT_INTERNALS_RUNS_GB", " ")
    assert found(operator_settings.RUNS_GB).source == "file"
    assert operator_settings.RUNS_GB.value() == 7.5


def test_every_default_can_be_written_and_read_back(written) -> None:
    sections = dict.fromkeys(setting.section for setting in SETTINGS)
    lines = []
    for section in sections:
        lines.append(f"[{section}]")
        for setting in SETTINGS:
            if setting.section == section and setting.default is not None:
                lines.append(f"{setting.name} = {json.dumps(setting.default)}")
    written("\n".join(lines))
    with_default = [row for row in check_all() if row.setting.default is not None]
    assert {row.source for row in with_default} == {"file"}
    assert [row.value for row in with_default] == [row.setting.default for row in with_default]


@pytest.mark.parametrize("setting", [setting for setting in SETTINGS if setting.default is not None])
def test_the_default_that_people_read_is_the_default(setting) -> None:
    assert setting.kind.read(setting.rule) == setting.default


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[limits]\nsentences = 0\n", "sentences in {file} is '0'. It must be a whole number, at least 16."),
        ("[limits]\nsentences = true\n", "sentences in {file} is True. It must be a whole number"),
        ("[models]\nfree_models = 'perhaps'\n", "free_models in {file} is 'perhaps'. It must be 1 (yes) or 0 (no)."),
        ("[models]\nfree_model = true\n", "'free_model' in [models], which is not a setting"),
        ("[models]\nfree_model = true\n", "Perhaps free_models is meant."),
        ("[models]\ntraining = true\n", "Write it below [training]."),
        ("free_models = true\n", "Write it below [models]."),
        ("[limit]\nsentences = 64\n", "Perhaps limits is meant."),
        ("[server]\nframes = ['self']\n", "frames in {file} is ['self']."),
        ("[limits\n", "cannot be read: Expected ']'"),
    ],
)
def test_what_cannot_be_read_is_one_line_with_the_file_and_the_remedy(written, capsys, text: str, said: str) -> None:
    path = written(text)
    assert main(["settings"]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.count("\n") == 1
    assert said.format(file=path) in output.err
    assert str(path) in output.err


def test_a_wrong_variable_is_named(written, monkeypatch) -> None:
    written("")
    for setting, text in ((operator_settings.TRAINING, "maybe"), (operator_settings.RUNS_GB, "-1")):
        monkeypatch.setenv(setting.variable, text)
        with pytest.raises(InputError, match=f"^{setting.variable} is '{text}'") as caught:
            check_all()
        assert caught.value.fix.startswith(f"Set {setting.variable} to ")
        monkeypatch.delenv(setting.variable)


def test_a_file_that_is_not_there_or_is_no_file(tmp_path: Path, monkeypatch) -> None:
    for named in (tmp_path / "none.toml", tmp_path, "x" * 5_000):
        monkeypatch.setenv(operator_settings.FILE_VARIABLE, str(named))
        with pytest.raises(InputError, match="there is no such file"):
            check_all()


def test_the_users_own_file_is_found_without_a_variable(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.delenv(operator_settings.FILE_VARIABLE)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "empty"))
    assert operator_settings.file_path() is None
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    path = tmp_path / "bert-internals" / "settings.toml"
    path.parent.mkdir()
    path.write_text("[limits]\ncharacters = 30000\n")
    assert operator_settings.file_path() == path
    assert operator_settings.CHARACTERS.value() == 30_000


def test_a_process_that_is_started_gets_the_files_values(written, monkeypatch) -> None:
    """It may have another working directory, and the path of the file may be relative."""
    path = written('[models]\ndevice = "cuda:1"\n[training]\ntraining_threads = 3\n')
    monkeypatch.chdir(path.parent)
    monkeypatch.setenv(operator_settings.FILE_VARIABLE, path.name)
    monkeypatch.setenv("BERT_INTERNALS_TRAINING_THREADS", "2")
    monkeypatch.setenv("BERT_INTERNALS_DEVICE", "")
    given = environment()
    assert given["BERT_INTERNALS_DEVICE"] == "cuda:1"
    assert given["BERT_INTERNALS_TRAINING_THREADS"] == "2"
    assert given[operator_settings.FILE_VARIABLE] == str(path)
    assert given["PATH"] == os.environ["PATH"]


def test_what_a_process_sets_for_itself_is_not_passed_on_but_what_the_operator_sets_is(monkeypatch) -> None:
    monkeypatch.setattr(operator_settings, "_here_alone", set())
    monkeypatch.setattr(os, "environ", {"GOMP_SPINCOUNT": "7"})
    for name in ("GOMP_SPINCOUNT", "OPENBLAS_THREAD_TIMEOUT"):
        operator_settings.set_here(name, "10")
    assert os.environ == {"GOMP_SPINCOUNT": "7", "OPENBLAS_THREAD_TIMEOUT": "10"}
    assert environment() == {"GOMP_SPINCOUNT": "7"}


def test_the_command_lists_every_setting_and_misspelt_variables(written, monkeypatch, capsys) -> None:
    path = written("[server]\nmetrics = true\n")
    monkeypatch.setenv("BERT_INTERNALS_FREE_MODEL", "0")
    assert main(["settings", "--json", "-"]) == 0
    output = capsys.readouterr()
    listed = json.loads(output.out)
    assert listed["file"] == str(path)
    assert [row["variable"] for row in listed["settings"]] == [setting.variable for setting in SETTINGS]
    (metrics,) = (row for row in listed["settings"] if row["name"] == "metrics")
    assert (metrics["value"], metrics["source"]) == (True, "file")
    assert "BERT_INTERNALS_FREE_MODEL is not a setting and does nothing." in output.err
    assert "Perhaps BERT_INTERNALS_FREE_MODELS is meant." in output.err
    assert main(["settings"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:3] for line in lines if line.startswith("  metrics ")] == [["metrics", "1", "file"]]
    assert len([line for line in lines if "BERT_INTERNALS_" in line]) == len(SETTINGS)


def test_a_secret_is_not_shown(written, monkeypatch, capsys) -> None:
    written("")
    monkeypatch.setenv(operator_settings.MILVUS_TOKEN.variable, "s3cret")
    assert main(["settings", "--json", "-"]) == 0
    assert main(["settings"]) == 0
    output = capsys.readouterr()
    assert "s3cret" not in output.out + output.err
    assert output.out.count("(set, not shown)") == 2


def test_names_and_variables_are_unique() -> None:
    assert len({setting.name for setting in SETTINGS}) == len(SETTINGS)
    in_module = {
        value for value in vars(operator_settings).values() if isinstance(value, operator_settings.OperatorSetting)
    }
    assert in_module == set(SETTINGS)


def test_nothing_else_reads_these_variables() -> None:
    """Elsewhere they are named in texts for people only; a name in full, by itself, would be a look-up or soon become one."""
    names = re.compile(r"BERT_INTERNALS_[A-Z_]*")
    texts = {
        path: path.read_text(encoding="utf-8")
        for folder in ("components", "dashboard")
        for path in (ROOT / folder).rglob("*.py")
        if path != ROOT / TABLE
    }
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path, text in texts.items()
        if "BERT_INTERNALS_" in text
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and names.fullmatch(node.value)
    ]
    assert wrong == []


def test_the_guide_lists_every_setting() -> None:
    guide = (ROOT / "docs" / "deployment.md").read_text(encoding="utf-8")
    assert [setting.variable for setting in SETTINGS if f"`{setting.variable}`" not in guide] == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_settings_in_a_pipe_are_refused_and_nobody_waits_for_it(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "settings.toml"
    os.mkfifo(path)
    monkeypatch.setenv(operator_settings.FILE_VARIABLE, str(path))
    with pytest.raises(InputError, match="there is no such file"):
        operator_settings.check_all()
