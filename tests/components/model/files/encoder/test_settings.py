"""From a text to its pieces, for folders whose settings stand in one of several places: as SentenceTransformer reads them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer

from components.analysis.why.token_ledger import token_ledger
from components.errors import ModelError
from components.model.backend import Backend
from components.model.files.decisions import ENCODER_FILES
from components.model.files.encoder.settings import read_encoder_settings
from components.model.files.sources import ModelFiles
from components.model.verification.comparison import own_vectors
from components.model.verification.published_copy import published_copy
from tests.support import tiny
from tests.support.rare_cases import but_a_few

LONG = "the cat sat on the red hat in the bank by the river we will walk"
OTHER = "a dog ran in the money. put the red hat in the bank by the river we will walk"
TEXTS = [LONG, OTHER, "The Cat SAT, é!", "the bank"]
SETTINGS = "sentence_bert_config.json"
Change = Callable[[Path], None]


def change(file: str, **values: Any) -> Change:
    """A function that puts values into a JSON file of a folder."""

    def apply(folder: Path) -> None:
        path = folder / file
        content = json.loads(path.read_text()) if path.exists() else {}
        path.write_text(json.dumps(content | values))

    return apply


def published(folder: Path, *changes: Change, architecture: str = "bert") -> Path:
    tiny.publish(tiny.save_tiny(folder, architecture), tiny.pooling_module())
    for apply in changes:
        apply(folder)
    return folder


TOKENIZER = "tokenizer_config.json"


def without_length(folder: Path) -> None:
    content = json.loads((folder / TOKENIZER).read_text())
    content.pop("model_max_length", None)
    (folder / TOKENIZER).write_text(json.dumps(content))


FOLDERS: dict[str, tuple[Change, ...]] = {
    "cut at the beginning": (change(SETTINGS, max_seq_length=9), change(TOKENIZER, truncation_side="left")),
    "cut at the beginning by the tokenizer's arguments": (
        change(SETTINGS, max_seq_length=9, tokenizer_args={"truncation_side": "left"}),
    ),
    "the same under today's name": (change(SETTINGS, max_seq_length=9, processor_kwargs={"truncation_side": "left"}),),
    "the tokenizer's length alone": (change(TOKENIZER, model_max_length=8),),
    "both lengths, the encoder's larger": (change(SETTINGS, max_seq_length=12), change(TOKENIZER, model_max_length=8)),
    "both lengths, the encoder's smaller": (change(SETTINGS, max_seq_length=6), change(TOKENIZER, model_max_length=8)),
    "an older name of the length, beside another": (
        change(SETTINGS, max_seq_length=12, tokenizer_args={"max_len": 7}),
    ),
    "an older name of the length, beside the tokenizer's": (
        change(TOKENIZER, model_max_length=9),
        change(SETTINGS, max_seq_length=None, tokenizer_args={"max_len": 7}),
    ),
    "an older name of the length, alone": (
        without_length,
        change(SETTINGS, max_seq_length=None, tokenizer_args={"max_len": 7}),
    ),
    "an older name of the length, beside none": (
        change(TOKENIZER, model_max_length=None),
        change(SETTINGS, max_seq_length=None, tokenizer_args={"max_len": 7}),
    ),
    "no length": (change(SETTINGS, max_seq_length=None), change(TOKENIZER, model_max_length=None)),
    "a length in the tokenizer's arguments": (
        change(SETTINGS, max_seq_length=12, tokenizer_args={"model_max_length": 7}),
    ),
    "a length of each call": (change(SETTINGS, max_seq_length=12, processing_kwargs={"text": {"max_length": 5}}),),
    "capitals kept by the tokenizer": (change(TOKENIZER, tokenizer_class="BertTokenizer", do_lower_case=False),),
    "capitals and accents removed": (change(TOKENIZER, tokenizer_class="BertTokenizer", do_lower_case=True),),
    "accents kept": (change(TOKENIZER, tokenizer_class="BertTokenizer", do_lower_case=True, strip_accents=False),),
    "capitals removed by the encoder's settings": (
        change(TOKENIZER, tokenizer_class="BertTokenizer", do_lower_case=False),
        change(SETTINGS, do_lower_case=True),
    ),
    "capitals kept by an argument": (
        change(TOKENIZER, tokenizer_class="BertTokenizer", do_lower_case=True),
        change(SETTINGS, tokenizer_args={"do_lower_case": False}),
    ),
    "other numbers of the configuration": (change(SETTINGS, config_args={"layer_norm_eps": 0.5}),),
}


def assert_equal(folder: Path) -> Backend:
    """Pieces and vectors of the folder are those of the library; the texts go through it one by one."""
    own, library = Backend.load(str(folder), device_name="cpu"), SentenceTransformer(str(folder), device="cpu")
    for text in TEXTS:
        ids = library.preprocess([text])["input_ids"][0].tolist()
        assert [token.id for token in own.tokenize([text])[0].tokens] == ids, text
        assert own.tokenization.encode_many([text])[0] == [ids]
    theirs = np.stack([library.encode(text) for text in TEXTS])
    options = own.embed_options(precision="float32")
    np.testing.assert_allclose(own.embed(TEXTS, options=options)[0, 0], theirs, atol=1e-5 * np.abs(theirs).max())
    return own


@pytest.mark.parametrize(
    ("kind", "architecture"),
    [
        *((kind, "bert") for kind in FOLDERS),
        *but_a_few(((kind, other) for kind in list(FOLDERS)[::3] for other in ("distilbert", "electra")), 2),
        *but_a_few((("cut at the beginning", other) for other in ("roberta", "mpnet", "xlm-roberta", "modernbert")), 2),
    ],
)
def test_pieces_and_vectors_are_those_of_the_library(kind: str, architecture: str, tmp_path: Path) -> None:
    own = assert_equal(published(tmp_path / "m", *FOLDERS[kind], architecture=architecture))
    # tokenizer.json, which removes capitals, is then not followed by the library.
    differs = kind.startswith("capitals kept")
    assert [text.startswith("Its tokenizer.json splits") for text in own.not_applied] == [True] * differs


@pytest.mark.parametrize("file", ENCODER_FILES)
def test_every_name_of_the_settings_file_is_read(file: str, tmp_path: Path) -> None:
    own = assert_equal(published(tmp_path / "m", change(file, max_seq_length=8, do_lower_case=False)))
    assert own.own_max_length == 8


def test_the_first_settings_file_that_says_anything_counts(tmp_path: Path) -> None:
    other = "sentence_roberta_config.json"
    folder = published(tmp_path / "m", change(SETTINGS), change(other, max_seq_length=8))
    assert assert_equal(folder).own_max_length == 8
    change(SETTINGS, max_seq_length=10)(folder)
    assert assert_equal(folder).own_max_length == 10


def test_without_a_list_of_modules_the_settings_are_not_read(tmp_path: Path) -> None:
    folder = published(tmp_path / "m", change(SETTINGS, max_seq_length=8))
    change("1_Pooling/config.json", pooling_mode="cls", pooling_mode_cls_token=True, pooling_mode_mean_tokens=False)(
        folder
    )
    (folder / "modules.json").unlink()
    own = assert_equal(folder)
    assert (own.own_max_length, own.own_pooling) == (64, "mean")
    (said,) = own.not_applied
    assert "max_seq_length in sentence_bert_config.json, 1_Pooling/config.json, and no modules.json" in said
    assert {step.source for step in own.loaded.in_words()}.isdisjoint({SETTINGS, "1_Pooling/config.json"})


def test_the_length_of_every_call_stands_above_that_of_texts(tmp_path: Path) -> None:
    lengths = {"common": {"max_length": 5}, "text": {"max_length": 9}}
    folder = published(tmp_path / "m", change(SETTINGS, processing_kwargs=lengths))
    assert assert_equal(folder).own_max_length == 5


@pytest.mark.parametrize(
    ("said", "word"),
    [
        ({"tokenizer_name_or_path": "google-bert/bert-base-cased"}, "tokenizer_name_or_path"),
        ({"transformer_task": "text-generation"}, "transformer_task"),
        ({"module_output_name": "sentence_embedding"}, "module_output_name"),
    ],
)
def test_every_row_that_is_not_applied_is_told(said: dict[str, str], word: str, tmp_path: Path) -> None:
    own = Backend.load(str(published(tmp_path / "m", change(SETTINGS, **said))), device_name="cpu")
    (sentence,) = own.not_applied
    assert word in sentence


def test_what_a_reranker_is_saved_with_is_applied(tmp_path: Path) -> None:
    said = {"text": {"method": "forward", "method_output_name": "logits"}}
    folder = published(
        tmp_path / "m", change(SETTINGS, transformer_task="sequence-classification", modality_config=said)
    )
    assert Backend.load(str(folder), device_name="cpu").not_applied == ()


def _encoder_apart(folder: Path) -> None:
    modules = json.loads((folder / "modules.json").read_text())
    modules[0]["path"] = "0_Transformer"
    (folder / "modules.json").write_text(json.dumps(modules))
    shutil.copytree(folder, folder / "0_Transformer", ignore=shutil.ignore_patterns("0_Transformer", "1_Pooling"))


def _own_class(number: int) -> Change:
    def apply(folder: Path) -> None:
        modules = json.loads((folder / "modules.json").read_text())
        modules[number]["type"] = f"custom_code.{modules[number]['type'].rpartition('.')[2]}"
        (folder / "modules.json").write_text(json.dumps(modules))

    return apply


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        (_encoder_apart, "in its folder 0_Transformer"),
        (_own_class(0), "Its Transformer is a class of custom_code"),
        (_own_class(1), "Its Pooling is a class of custom_code"),
        (lambda folder: (folder / "modules.json").write_text("{bad"), "cannot be read as a list of modules"),
    ],
)
def test_what_would_make_other_vectors_in_silence_is_refused(changed: Change, word: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=word):
        Backend.load(str(published(tmp_path / "m", changed)), device_name="cpu")


@pytest.mark.parametrize("content", [None, "{bad"])
def test_a_pooling_without_a_configuration_is_named(content: str | None, tmp_path: Path) -> None:
    folder = published(tmp_path / "m")
    path = folder / "1_Pooling" / "config.json"
    path.unlink() if content is None else path.write_text(content)
    (said,) = Backend.load(str(folder), device_name="cpu").not_applied
    assert "the configuration of its pooling is missing or cannot be read" in said


def test_what_is_kept_of_a_long_text_is_its_end(tmp_path: Path) -> None:
    folder = published(tmp_path / "m", *FOLDERS["cut at the beginning"])
    own = Backend.load(str(folder), device_name="cpu")
    first, second = own.tokenize([LONG, OTHER])
    assert [token.piece for token in first.tokens] == [
        *("[CLS]", "bank", "by", "the", "river", "we", "will", "walk", "[SEP]")
    ]
    assert [token.id for token in second.tokens] == [token.id for token in first.tokens]
    (cut,) = first.dropped
    assert cut.is_beginning
    assert cut.start == 0
    assert LONG.startswith(cut.text)
    begin, end = first.read_span()
    assert (begin, end) == (len(cut.text), len(LONG))
    assert LONG[first.tokens[1].start :] == LONG[begin:].lstrip()
    trace = own.trace([LONG, OTHER])
    assert token_ledger(trace, own.facts.layers, "mean").cosine == pytest.approx(1, abs=1e-6)


def test_pairs_lose_their_beginnings_as_in_transformers(tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    folder = published(tmp_path / "m", change(TOKENIZER, truncation_side="left"))
    own, library = Backend.load(str(folder), device_name="cpu"), AutoTokenizer.from_pretrained(folder)
    for length in (6, 9, 14, 25):
        theirs = library(LONG, OTHER, truncation=True, max_length=length)["input_ids"]
        (sentence,) = own.tokenize([LONG], [OTHER], length)
        assert [token.id for token in sentence.tokens] == theirs
        assert own.tokenization.encode_pairs([LONG], [OTHER], length)[0][0] == theirs
        for cut in sentence.dropped:
            assert (OTHER if cut.of_pair else LONG).startswith(cut.text)


def test_a_very_long_text_is_read_at_its_end(tmp_path: Path) -> None:
    folder = published(tmp_path / "m", *FOLDERS["cut at the beginning"])
    own = Backend.load(str(folder), device_name="cpu")
    book = "the river ran. " * 20_000 + LONG
    ids = [token.id for token in own.tokenize([LONG])[0].tokens]
    assert own.tokenization.encode_many([book]) == ([ids], [True])
    sentence = own.tokenization.tokenize(book)
    assert [token.id for token in sentence.tokens] == ids
    assert sentence.surface(len(ids) - 2) == "walk"
    assert sentence.dropped[0].tokens == own.tokenization.lengths([book])[0] - len(ids)


def test_one_pair_has_one_cosine_on_all_pages(tmp_path: Path) -> None:
    """Traces, bulk vectors and the ledger read a text to the same length; more is read only where it is asked for."""
    folder = published(tmp_path / "m", change(SETTINGS, max_seq_length=7))
    own = Backend.load(str(folder), device_name="cpu")
    pair = ["the cat sat on the red hat", "the cat sat on the bank by the river"]
    vectors = own.embed(pair, options=own.embed_options(precision="float32"))[0, 0].astype(np.float64)
    cosine = vectors[0] @ vectors[1] / np.prod(np.linalg.norm(vectors, axis=1))
    assert cosine == pytest.approx(1, abs=1e-6)
    assert token_ledger(own.trace(pair), own.facts.layers, "mean").cosine == pytest.approx(cosine, abs=1e-5)
    assert [len(sentence) for sentence in own.tokenize(pair)] == [7, 7]
    assert len(own.inside(pair[1]).sentence) == 7
    longer = own.trace(pair, max_length=30)
    assert token_ledger(longer, own.facts.layers, "mean").cosine < 0.99
    assert own.tokenization.max_length == 64


def test_padding_on_the_left_is_said_where_it_moves_positions(tmp_path: Path) -> None:
    folder = published(tmp_path / "m", change(TOKENIZER, padding_side="left"))
    (said,) = assert_equal(folder).not_applied
    assert "positions" in said
    rotating = published(tmp_path / "r", change(TOKENIZER, padding_side="left"), architecture="eurobert")
    own, library = Backend.load(str(rotating), device_name="cpu"), SentenceTransformer(str(rotating), device="cpu")
    assert not own.not_applied
    theirs = library.encode(TEXTS)
    options = own.embed_options(precision="float32")
    np.testing.assert_allclose(own.embed(TEXTS, options=options)[0, 0], theirs, atol=1e-4)


def test_a_tokenizer_json_that_the_library_does_not_follow_is_named(tmp_path: Path) -> None:
    folder = tiny.save_tiny(tmp_path / "m", "multilingual")
    (folder / TOKENIZER).unlink()
    own = assert_equal(folder)
    (said,) = own.not_applied
    assert "Its tokenizer.json splits" in said
    assert "do_lower_case" in said
    change(TOKENIZER, do_lower_case=False)(folder)
    assert not assert_equal(folder).not_applied


def test_a_cased_vocabulary_that_is_read_in_small_letters_is_named(tmp_path: Path) -> None:
    folder = tiny.save_tiny(tmp_path / "m")
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *tiny.WORDS[:-4], "The", "Cat", "Bank", "River"]
    for file in ("tokenizer.json", TOKENIZER):
        (folder / file).unlink()
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")
    (said,) = assert_equal(folder).not_applied
    assert "4 of its 28 pieces have capitals" in said
    change(TOKENIZER, do_lower_case=False)(folder)
    assert not assert_equal(folder).not_applied


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"tokenizer_args": {"vocab_file": "/etc/passwd"}}, "processor_kwargs.vocab_file"),
        ({"model_args": {"variant": "fp16"}}, "model_kwargs.variant"),
        ({"model_args": {"dtype": "torch.float16"}}, "float16"),
        ({"config_args": {"name_or_path": "x"}}, "config_kwargs.name_or_path"),
        ({"processing_kwargs": {"text": {"add_special_tokens": False}}}, "processing_kwargs.text.add_special_tokens"),
        (
            {"processing_kwargs": {"text": {"padding": "max_length", "max_length": 48, "padding_side": "left"}}},
            "padding_side",
        ),
        ({"processing_kwargs": {"common": {"return_attention_mask": False}}}, "common.return_attention_mask"),
        ({"config_args": {"dtype": "bfloat16"}}, "bfloat16"),
        ({"model_kwargs": {"use_safetensors": False}}, "model_kwargs.use_safetensors"),
        ({"modality_config": {"message": {}}}, "modality_config"),
        ({"tokenizer_name_or_path": "bert-base"}, ""),
    ],
)
def test_what_is_not_applied_is_named(values: dict[str, Any], named: str, tmp_path: Path) -> None:
    own = Backend.load(str(published(tmp_path / "m", change(SETTINGS, **values))), device_name="cpu")
    assert named in " ".join(own.not_applied)


@pytest.mark.parametrize(
    "values",
    [
        {"tokenizer_args": {"use_fast": True, "trust_remote_code": True}},
        {"model_args": {"attn_implementation": "sdpa", "torch_dtype": "auto", "trust_remote_code": True}},
        {"processing_kwargs": {"text": {"padding": True, "truncation": True}}},
        {
            "processing_kwargs": {
                "text": {"padding_side": "right", "return_attention_mask": True, "return_tensors": "pt"}
            }
        },
        {"model_args": {"use_safetensors": True}, "config_args": {"dtype": "float32"}},
        {"modality_config": {"text": {"method": "forward", "method_output_name": "last_hidden_state"}}},
        {"tokenizer_args": "x", "model_args": None, "processing_kwargs": []},
    ],
)
def test_what_changes_nothing_is_not_named(values: dict[str, Any], tmp_path: Path) -> None:
    assert not Backend.load(str(published(tmp_path / "m", change(SETTINGS, **values))), device_name="cpu").not_applied


@pytest.mark.parametrize(
    "values",
    [
        {"tokenizer_args": {"padding_side": "middle"}},
        {"config_args": {"num_hidden_layers": 10**9}},
        {"processing_kwargs": {"common": {"max_length": -3}}},
        {"max_seq_length": "many"},
    ],
)
def test_values_beyond_their_bounds_are_refused(values: dict[str, Any], tmp_path: Path) -> None:
    folder = published(tmp_path / "m", change(SETTINGS, **values))
    with pytest.raises(ModelError, match="can be"):
        read_encoder_settings(folder, "x")


@pytest.mark.parametrize("gives", [True, False])
def test_segments_of_a_single_text_are_those_of_its_frame(gives: bool, tmp_path: Path) -> None:
    """As XLNet's tokenizer frames a text, in segment 1 of a BERT; a tokenizer that gives no segments says nothing of them."""
    names = ["input_ids", *(["token_type_ids"] if gives else []), "attention_mask"]

    def in_segment_1(folder: Path) -> None:
        content = json.loads((folder / "tokenizer.json").read_text())
        for part in content["post_processor"]["single"]:
            for piece in part.values():
                piece["type_id"] = 1
        (folder / "tokenizer.json").write_text(json.dumps(content))

    own = assert_equal(published(tmp_path / "m", in_segment_1, change(TOKENIZER, model_input_names=names)))
    trace = own.trace(TEXTS[:2])
    mean = np.stack(
        [trace.hidden_states[-1, row, : len(sentence)].mean(axis=0) for row, sentence in enumerate(trace.sentences)]
    )
    theirs = SentenceTransformer(str(tmp_path / "m"), device="cpu").encode(TEXTS[:2])
    np.testing.assert_allclose(mean, theirs, atol=1e-5)
    assert {token.segment for token in trace.sentences[0].tokens} == {int(gives)}


@pytest.mark.parametrize(("stored", "said"), [("bfloat16", None), ("float16", None), (None, "float16")])
def test_weights_that_the_library_uses_in_half_precision_are_named(
    stored: str | None, said: str | None, tmp_path: Path
) -> None:
    folder = published(tmp_path / "m")
    assert Backend.load(str(folder), device_name="cpu").not_applied == ()
    if stored is not None:
        path = folder / "model.safetensors"
        half = {name: tensor.to(getattr(torch, stored)) for name, tensor in load_file(path).items()}
        save_file(half, path, metadata={"format": "pt"})
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps({key: config[key] for key in config if "dtype" not in key}))
    else:
        change("config.json", dtype=said)(folder)
    own = Backend.load(str(folder), device_name="cpu")
    (sentence,) = own.not_applied
    assert f"published in {stored or said}" in sentence
    exact = SentenceTransformer(str(folder), device="cpu", model_kwargs={"dtype": torch.float32}).encode(TEXTS)
    assert np.abs(own.embed(TEXTS, options=own.embed_options(precision="float32"))[0, 0] - exact).max() < 1e-5
    halved = SentenceTransformer(str(folder), device="cpu").encode(TEXTS).astype(np.float32)
    assert np.abs(halved - exact).max() > 1e-4


def test_an_adapter_alone_is_said_to_be_one(tmp_path: Path) -> None:
    folder = published(tmp_path / "m", change("adapter_config.json", peft_type="LORA"))
    (folder / "config.json").unlink()
    with pytest.raises(ModelError, match="is an adapter"):
        Backend.load(str(folder), device_name="cpu")


@pytest.mark.parametrize(
    "changes",
    [
        (change("1_Pooling/config.json", pooling_mode_cls_token=1, pooling_mode_mean_tokens=0),),
        (change(TOKENIZER, tokenizer_class="BertTokenizer", do_lower_case=False), change(SETTINGS, do_lower_case=1)),
        (
            change("1_Pooling/config.json", include_prompt=0),
            change("config_sentence_transformers.json", prompts={"a": "the river bank "}, default_prompt_name="a"),
        ),
    ],
)
def test_a_1_and_a_0_are_yes_and_no_as_in_the_library(changes: tuple[Change, ...], tmp_path: Path) -> None:
    folder = published(tmp_path / "m", *changes)
    plain = Backend.load(str(published(tmp_path / "plain")), device_name="cpu")
    theirs = SentenceTransformer(str(folder), device="cpu").encode(TEXTS, batch_size=1)
    own = Backend.load(str(folder), device_name="cpu")
    vectors = own_vectors(own, TEXTS, "")
    np.testing.assert_allclose(vectors, theirs, atol=1e-5 * np.abs(theirs).max())
    assert np.abs(vectors - own_vectors(plain, TEXTS, "")).max() > 1e-3
    with published_copy(ModelFiles(folder, "r"), "model") as copy:
        again = SentenceTransformer(str(copy), device="cpu").encode(TEXTS, batch_size=1)
    np.testing.assert_allclose(again, theirs, atol=1e-6)


@pytest.mark.parametrize(
    "at_layers",
    [change("config.json", output_hidden_states=1), change(SETTINGS, config_args={"output_hidden_states": 1})],
)
def test_a_1_that_the_library_fails_at_is_refused(at_layers: Change, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"output_hidden_states = 1"):
        Backend.load(str(published(tmp_path / "m", at_layers)), device_name="cpu")
