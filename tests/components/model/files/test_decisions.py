"""The table of decisions has a row for every key and module that the installed libraries read of a published folder."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sentence_transformers
import transformers
from sentence_transformers.base.modules.module import Module
from sentence_transformers.base.modules.transformer import Transformer
from sentence_transformers.cross_encoder import model as cross_encoder
from sentence_transformers.multi_vector_encoder import model as multi_vector_encoder
from sentence_transformers.sentence_transformer import model as sentence_transformer
from sentence_transformers.sentence_transformer.modules.pooling import Pooling
from sentence_transformers.sparse_encoder import model as sparse_encoder
from transformers.models.auto.modeling_auto import MODEL_MAPPING

from components.errors import ModelError
from components.model.architecture.families import decoder
from components.model.architecture.support import SUPPORTED
from components.model.backend import Backend
from components.model.files import allowed, decisions, tokenizer_files

_ABSTRACT = {"InputModule", "BaseTokenPooling"}
# Given by who loads a tokenizer, never read of a folder's files.
_OF_THE_CALL = {
    *(
        "_commit_hash",
        "_from_auto",
        "_from_pipeline",
        "cache_dir",
        "commit_message",
        "force_download",
        "local_files_only",
    ),
    *("proxies", "repo_id", "revision", "subfolder", "token"),
}


def _modules() -> Iterator[type[Module]]:
    """Every class of a module in sentence-transformers."""
    for part in ("base", "sentence_transformer", "sparse_encoder", "multi_vector_encoder", "cross_encoder"):
        package = importlib.import_module(f"sentence_transformers.{part}.modules")
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(found.name)
    waiting = [Module]
    while waiting:
        for kind in waiting.pop().__subclasses__():
            waiting.append(kind)
            if kind.__module__.startswith("sentence_transformers.") and kind.__name__ not in _ABSTRACT:
                yield kind


def test_every_module_and_each_of_its_keys_has_a_row() -> None:
    kinds = set(_modules())
    assert len(kinds) >= 20
    for kind in kinds:
        assert decisions.decision(kind.__name__) is not None, kind.__name__
        source = decisions.ENCODER if kind.config_file_name == decisions.ENCODER else kind.__name__
        read = {*kind.config_keys, *getattr(kind, "config_key_renames", {})}
        assert read <= decisions.keys(source), kind.__name__


def test_a_key_that_the_table_lacks_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pooling, "config_keys", [*Pooling.config_keys, "new_key"])
    with pytest.raises(AssertionError, match="Pooling"):
        test_every_module_and_each_of_its_keys_has_a_row()


def test_every_argument_of_the_encoder_has_a_row() -> None:
    """Each key of sentence_bert_config.json becomes an argument of Transformer, some under older names."""
    named = set(inspect.signature(inspect.unwrap(Transformer.__init__)).parameters) - {"self", "model_name_or_path"}
    older = set(re.findall(r'"(\w+)": "\w+_kwargs"', inspect.getsource(Transformer._load_init_kwargs)))
    assert older == {"model_args", "tokenizer_args", "config_args"}
    assert named | older <= decisions.keys(decisions.ENCODER)


def test_every_name_of_the_encoders_settings_is_known() -> None:
    read = re.findall(r'"(sentence_[\w-]+_config\.json)"', inspect.getsource(Transformer.load_config))
    assert tuple(dict.fromkeys(read)) == decisions.ENCODER_FILES


def test_every_key_of_the_models_settings_has_a_row() -> None:
    read: set[str] = set()
    for library in (
        sentence_transformers.base.model,
        sentence_transformer,
        sparse_encoder,
        cross_encoder,
        multi_vector_encoder,
    ):
        code = inspect.getsource(library)
        read |= set(re.findall(r'model_config(?:\.get\(|\[)"(\w+)"', code))
        read |= set(re.findall(r'"(\w+)" in model_config(?!\[)', code))
        written = re.search(r"def _get_model_config.*?\n    (?:def|@)", code, re.DOTALL)
        read |= set(re.findall(r'^ {12}"(\w+)":', written[0], re.MULTILINE)) if written else set()
        read |= set(re.findall(r'config\["(\w+)"\] = ', written[0])) if written else set()
    read |= set(multi_vector_encoder._LegacyStash._PYLATE_TRANSFORMER_KEYS)
    assert {"prompts", "truncate_dim", "similarity_fn_name", "default_prompt_name", "max_active_dims"} <= read
    assert read <= decisions.keys(decisions.TOP)


def test_every_key_of_the_list_of_modules_has_a_row() -> None:
    code = inspect.getsource(sentence_transformers.base.model)
    read = set(re.findall(r'module_config(?:\.get\(|\[)"(\w+)"', code))
    assert {"path", "type"} <= read <= decisions.keys(decisions.MODULES)


def test_every_argument_of_a_tokenizer_has_a_row() -> None:
    known = decisions.keys(decisions.TOKENIZER) | _OF_THE_CALL
    for name in sorted(tokenizer_files.CLASSES):
        kind = getattr(transformers, name, None)
        if kind is not None:
            read = set(inspect.signature(kind.__init__).parameters) - {"self", "args", "kwargs"}
            assert read <= known, name
    code = inspect.getsource(transformers.tokenization_utils_base) + inspect.getsource(
        transformers.tokenization_utils_tokenizers
    )
    read = set(re.findall(r'kwargs\.(?:pop|get)\("(\w+)"', code)) | set(
        re.findall(r'"(\w+)" in (?:init_)?kwargs', code)
    )
    assert {"truncation_side", "padding_side", "model_max_length"} <= read <= known


def test_every_key_of_each_configuration_has_a_row() -> None:
    """tests/components/model/files/test_strangers_files.py reads what the code of each family looks at, too."""
    for kind in (*SUPPORTED, *decoder.TITLES):
        described = transformers.CONFIG_MAPPING[kind]
        assert described in MODEL_MAPPING
        assert set(described().to_dict()) - decisions.keys(decisions.CONFIG) == set(), kind


def test_the_modes_of_pooling_are_the_librarys() -> None:
    assert allowed.POOLING_MODES == Pooling.POOLING_MODES


def test_each_key_has_one_row_and_each_row_says_why() -> None:
    named = [(row.source, row.key) for row in decisions.TABLE]
    assert len(set(named)) == len(named)
    assert all(row.note for row in decisions.TABLE)
    assert all(row.instead for row in decisions.TABLE if row.outcome == "refused")
    assert {row.outcome for row in decisions.TABLE} == {"applied", "refused", "not applied", "no effect"}


def test_what_is_asked_for() -> None:
    asked = decisions.asked_for(
        decisions.ENCODER, {"tokenizer_name_or_path": "x", "module_output_name": "token_embeddings"}, "not applied"
    )
    assert [row.key for row in asked] == ["tokenizer_name_or_path"]
    assert not decisions.asked_for(decisions.ENCODER, {"transformer_task": "feature-extraction"}, "not applied")
    assert decisions.asked_for(decisions.ENCODER, {"transformer_task": "text-generation"}, "not applied")


@pytest.mark.parametrize("row", [row for row in decisions.TABLE if row.outcome == "refused" and not row.key], ids=str)
@pytest.mark.parametrize("is_first", [True, False])
def test_a_module_that_is_refused_is_named_with_what_would_work(
    row: decisions.Decision, is_first: bool, tiny_folder: Callable[[str], Path], tmp_path: Path
) -> None:
    """Before anything else is looked for: most of these folders have no encoder's files."""
    folder = tmp_path / "model"
    if is_first:
        folder.mkdir()
    else:
        shutil.copytree(tiny_folder("bert"), folder)
    kinds = [row.source, "Pooling"] if is_first else ["Transformer", "Pooling", row.source]
    listed = [{"idx": at, "path": "", "type": f"sentence_transformers.models.{kind}"} for at, kind in enumerate(kinds)]
    (folder / "modules.json").write_text(json.dumps(listed))
    with pytest.raises(ModelError) as refused:
        Backend.load(str(folder))
    assert row.note in refused.value.problem
    assert refused.value.fix == row.instead


@pytest.mark.parametrize(("file", "said"), [("pytorch_model.bin", "pickle"), ("onnx/model.onnx", "only ONNX")])
def test_other_weights_are_named(file: str, said: str, tiny_folder: Callable[[str], Path], tmp_path: Path) -> None:
    folder = shutil.copytree(tiny_folder("bert"), tmp_path / "model")
    (folder / file).parent.mkdir(exist_ok=True)
    (folder / "model.safetensors").rename(folder / file)
    with pytest.raises(ModelError, match=said):
        Backend.load(str(folder))


def test_the_document_is_up_to_date() -> None:
    assert decisions.PATH.read_text(encoding="utf-8") == decisions.written()
