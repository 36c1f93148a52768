"""What sentence-transformers infers of a folder without modules.json: messages of a chat, the last token; and what is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from components.errors import ModelError
from components.model.backend import Backend
from components.model.files.encoder.chat_template import MOST_CHARACTERS, only_template
from components.model.files.sources import ModelFiles
from components.model.verification.comparison import SAME, compared, own_vectors, verify
from components.model.verification.published_copy import published_copy
from tests.components.command_line.in_process import run
from tests.support.reference import compare_in_this_process
from tests.support.tiny import pooling_module, publish, save_tiny

TEXTS = ("the cat sat on the bank", "money in the bank by the river", "a dog")
TEMPLATE = "{% for m in messages %}[CLS] the river {{ m['content'] }}[SEP]{% endfor %}"
NAMED = "[CLS] a red hat {{ messages[0]['content'] }}"


def put(path: Path, **values: Any) -> None:
    said = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(said | values))


def apart(folder: Path, role: str = "") -> float:
    """How far our vectors are from the library's, in lengths of a vector."""
    model = SentenceTransformer(str(folder), device="cpu")
    encode = {"": model.encode, "query": model.encode_query, "document": model.encode_document}[role]
    own = own_vectors(Backend.load(str(folder), device_name="cpu"), TEXTS, role)
    return max(item.difference for item in compared(TEXTS, role, encode(list(TEXTS), batch_size=1), own))


@pytest.mark.parametrize("place", ["tokenizer_config.json", "chat_template.jinja"])
@pytest.mark.parametrize("architecture", ["bert", "modernbert"])
def test_a_template_of_chats_is_named_where_the_library_renders_by_it(
    place: str, architecture: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = save_tiny(tmp_path / "m", architecture)
    assert Backend.load(str(folder), device_name="cpu").not_applied == ()
    if place == "chat_template.jinja":
        (folder / place).write_text(TEMPLATE)
        put(folder / "tokenizer_config.json", chat_template=NAMED)  # the file stands before it
    else:
        put(folder / "tokenizer_config.json", chat_template=TEMPLATE)
    assert apart(folder) > 1e-3
    own = Backend.load(str(folder), device_name="cpu")
    (said,) = own.not_applied
    assert "template of chats" in said
    assert "no modules.json" in said
    assert "not applied" in said
    with published_copy(ModelFiles(folder, "r"), "model") as copy:
        theirs, again = (SentenceTransformer(str(each), device="cpu").encode(list(TEXTS)) for each in (folder, copy))
    np.testing.assert_allclose(again, theirs, atol=1e-6)
    compare_in_this_process(monkeypatch)
    result = verify(own, TEXTS)
    assert result.is_equal is False
    assert result.not_applied == own.not_applied


def test_with_modules_the_text_itself_is_read(tmp_path: Path) -> None:
    folder = publish(save_tiny(tmp_path / "m"), pooling_module())
    put(folder / "tokenizer_config.json", chat_template=TEMPLATE)
    assert apart(folder) < SAME
    assert Backend.load(str(folder), device_name="cpu").not_applied == ()
    with published_copy(ModelFiles(folder, "r"), "model") as copy:
        assert not (copy / "chat_template.jinja").exists()


def test_a_command_names_it(tmp_path: Path) -> None:
    folder = save_tiny(tmp_path / "m")
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    said = run("why", TEXTS[0], TEXTS[1], "--model", str(folder))
    assert said.returncode == 0
    assert "template of chats" in said.stderr


SEVERAL = [{"name": "default", "template": TEMPLATE}, {"name": "rag", "template": NAMED}]


@pytest.mark.parametrize("content", ["x" * (MOST_CHARACTERS + 1), SEVERAL, None])
def test_a_template_that_is_not_handed_on(content: Any, tmp_path: Path) -> None:
    folder = save_tiny(tmp_path / "m")
    if content is None:
        (folder / "additional_chat_templates").mkdir()
        (folder / "additional_chat_templates" / "rag.jinja").write_text(NAMED)
    else:
        put(folder / "tokenizer_config.json", chat_template=content)
    assert only_template(folder) is None
    assert "template of chats" in " ".join(Backend.load(str(folder), device_name="cpu").not_applied)
    with pytest.raises(ModelError, match="template of chats"), published_copy(ModelFiles(folder, "r"), "model"):
        pass


@pytest.mark.parametrize(
    ("values", "takes_last"),
    [
        ({"architectures": ["RobertaForCausalLM"]}, True),
        ({"architectures": ["RobertaForCausalLM"], "is_causal": False}, False),
        ({"architectures": ["RobertaForMaskedLM", "RobertaForCausalLM"]}, False),
        ({"architectures": []}, False),
    ],
)
def test_without_modules_the_architecture_decides_the_pooling(
    values: dict[str, Any], takes_last: bool, tmp_path: Path
) -> None:
    folder = save_tiny(tmp_path / "m", "roberta")
    put(folder / "config.json", **values)
    assert apart(folder) < SAME
    own = Backend.load(str(folder), device_name="cpu")
    pooling = next(step for step in own.loaded.in_words() if step.step == "Pooling")
    assert ("last" in pooling.how, pooling.source == "config.json") == (takes_last, takes_last)
    publish(folder, pooling_module())
    assert apart(folder) < SAME
    assert Backend.load(str(folder), device_name="cpu").own_pooling == "mean"


@pytest.mark.parametrize("strategy", ["fixed", "min"])
def test_queries_that_are_filled_are_named(strategy: str, tmp_path: Path) -> None:
    folder = publish(save_tiny(tmp_path / "m"), pooling_module())
    put(folder / "sentence_bert_config.json", query_expansion={"strategy": strategy, "length": 32, "attend": True})
    assert apart(folder, "document") < SAME
    assert apart(folder, "query") > 1e-3
    (said,) = Backend.load(str(folder), device_name="cpu").not_applied
    assert "query_expansion" in said
    with published_copy(ModelFiles(folder, "r"), "model") as copy:
        theirs, again = (SentenceTransformer(str(each), device="cpu").encode_query(TEXTS[0]) for each in (folder, copy))
    np.testing.assert_allclose(again, theirs, atol=1e-6)


def test_a_tokenizer_without_a_mask_is_named(tmp_path: Path) -> None:
    folder = publish(save_tiny(tmp_path / "m"), pooling_module())
    put(folder / "tokenizer_config.json", model_input_names=["input_ids"])
    assert apart(folder) < SAME  # each text alone
    (said,) = Backend.load(str(folder), device_name="cpu").not_applied
    assert "no attention mask" in said
