"""What differs between architectures: sizes, parts, positions, and what is refused."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
import torch
from transformers import BertModel, GPT2Config, GPT2Model

from components.errors import ModelError
from components.model.architecture import record, support
from components.model.architecture.parameters import ParameterPart, parameter_parts, totals_by_part
from components.model.backend import Backend
from tests.support import tiny
from tests.support.closeness import assert_close


@pytest.fixture(scope="module", params=tiny.ARCHITECTURES)
def model(request):
    return tiny.tiny_model(request.param)[0]


def counts(model):
    return {(part.group, part.part): part.count for part in parameter_parts(model)}


def test_parts_sum_to_all_parameters(model):
    parts = parameter_parts(model)
    assert sum(part.count for part in parts) == record.facts_of(model.config, model).parameters
    assert sum(part.count for part in parts) == sum(parameter.numel() for parameter in model.parameters())
    assert len({(part.group, part.part) for part in parts}) == len(parts)


def test_totals_count_each_parameter_once(model):
    totals = totals_by_part(parameter_parts(model))
    assert sum(totals.values()) == sum(parameter.numel() for parameter in model.parameters())
    final_norm = record.modules_of(model).final_norm
    norms = [
        module
        for name, module in model.named_modules()
        if type(module).__name__.lower().endswith(("layernorm", "rmsnorm"))
        and (name != "encoder.LayerNorm" or module is final_norm)  # DeBERTa's is of its vectors for distances
    ]
    assert norms
    assert totals["norms"] == sum(parameter.numel() for norm in norms for parameter in norm.parameters())
    assert list(totals)[:4] == ["embeddings", "attention", "feed-forward", "norms"]


def test_blocks_are_alike_and_in_order(model):
    parts, structure = parameter_parts(model), record.modules_of(model).structure
    groups = list(dict.fromkeys(part.group for part in parts if part.group.startswith("Block")))
    assert groups == (["Blocks 0 to 1", "Block 2"] if structure.shares_blocks else ["Block 0", "Block 1", "Block 2"])
    assert parts[0].group == "Embeddings"
    blocks = [{part.part: part.count for part in parts if part.group == group} for group in groups]
    # Four square matrices, of which two are smaller if heads share keys; two matrices to 64 and back, or a third one as a
    # gate; two norms.
    gated = structure.has_gated_feed_forward
    biases = structure.has_projection_biases
    norm = 32 if structure.architecture in {"modernbert", "eurobert"} else 32 + 32  # these have no shift
    expected = {
        "attention": 2 * (32 * 32 + 32 * biases) + 2 * (32 * 32 // structure.heads_per_key + 32 * biases),
        "feed-forward": (3 if gated else 2) * 32 * 64 + (64 + 32) * (not gated),
        "layer norm": 2 * norm,
    }
    assert blocks[-1] == blocks[1] == expected
    without_first_norm = record.modules_of(model).blocks[0].attention_norm is None
    assert blocks[0] == expected | ({"layer norm": norm} if without_first_norm else {})


def test_the_parts_of_the_embedded_model(embedded):
    found = counts(embedded.encoder)
    assert found["Embeddings", "word"] == 30522 * 384
    assert found["Embeddings", "position"] == 512 * 384
    assert found["Embeddings", "segment"] == 2 * 384
    assert found["Embeddings", "layer norm"] == 2 * 384
    assert found["Pooler", "pooler"] == 384 * 384 + 384
    assert len({group for group, _ in found}) == 6 + 2
    assert sum(found.values()) == 22_713_216


def test_parts_that_only_some_architectures_have():
    found = {name: counts(tiny.tiny_model(name)[0]) for name in ("electra", "mpnet", "distilbert", "bert")}
    assert found["electra"]["Embeddings", "projection"] == 16 * 32 + 32
    assert found["mpnet"]["Shared by the blocks", "relative positions"] == 32 * 4
    assert ("Embeddings", "segment") not in found["distilbert"]
    assert ("Embeddings", "segment") not in found["mpnet"]
    assert not any(group in {"Pooler", "Shared by the blocks"} for group, _ in found["distilbert"])
    assert ParameterPart("Pooler", "pooler", 32 * 32 + 32) in parameter_parts(tiny.tiny_model("bert")[0])


def test_the_longest_input_is_read_off_the_position_table(model):
    """64 tokens fit and 65 do not, whatever rows the table keeps for padding."""
    longest = record.max_positions(model.config)
    assert longest == 64
    if not record.modules_of(model).structure.has_position_vectors:
        return  # the configuration says what the model was trained for; nothing else limits it
    ids = torch.full((1, longest + 1), 5)
    with torch.inference_mode():
        assert model(input_ids=ids[:, :longest]).last_hidden_state.shape == (1, 64, 32)
        with pytest.raises((IndexError, RuntimeError)):
            model(input_ids=ids)


def test_position_ids_are_those_the_model_reads(model):
    """By the table's own rows, and by layer 0, which the parts add up to."""
    padding = model.config.pad_token_id
    ids = torch.tensor([[5, 6, 7, 8, 9], [5, 6, 7, padding, padding]])
    modules, rows = record.modules_of(model), record.position_ids(model.config, ids)
    with torch.inference_mode():
        parts = record.embedding_parts(modules, model.config, ids, None)
        assert tuple(parts) == modules.structure.layer_zero_parts
        if "position" in parts:
            table = model.embeddings.position_embeddings.weight
            np.testing.assert_array_equal(parts["position"], table[rows.expand_as(ids)])
        state = sum(parts.values())
        for step in modules.layer_zero_steps:
            state = step(state)
        mask = (ids != padding).long()
        layer_0 = model(input_ids=ids, attention_mask=mask, output_hidden_states=True).hidden_states[0]
    real = mask.bool()  # DeBERTa sets padding to zero
    assert_close(state[real], layer_0[real])


def test_the_modules_of_a_block_are_where_the_record_says(model):
    """Each is a part of its own block; between them they hold all of a block but the first dense layers."""
    modules = record.modules_of(model)
    assert len(modules.blocks) == 3
    names = {id(module): name for name, module in model.named_modules()}
    paths = {number: f"{modules.blocks_path}.{number}." for number in modules.structure.block_weights}
    for number, block in zip(modules.structure.block_weights, modules.blocks, strict=True):
        for projection in (block.query, block.key, block.value):
            assert projection.weight.shape == (projection.size, 32)
            assert names[id(projection.linear)].startswith(paths[number])
        fused = block.query.linear is block.key.linear is block.value.linear
        assert fused == modules.structure.has_fused_projections
        assert fused == (block.key.first > 0)
        assert (block.query.bias is not None) == modules.structure.has_projection_biases
        for module in (block.attention_dense, block.feed_forward_dense, block.feed_forward_norm):
            assert names[id(module)].startswith(paths[number])
        assert (block.attention_dense.out_features, block.feed_forward_dense.out_features) == (32, 32)
        assert tuple(block.feed_forward_norm.weight.shape) == (32,)


def refusal(folder):
    with pytest.raises(ModelError) as caught:
        Backend.load(str(folder), device_name="cpu")
    return caught.value


def with_config(folder, **changes):
    """The folder with other values in its config.json."""
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    return folder


@pytest.fixture
def folder(tiny_folder, tmp_path):
    return shutil.copytree(tiny_folder("bert"), tmp_path / "model")


def test_a_decoder_of_another_family_is_refused(tmp_path):
    GPT2Model(GPT2Config(n_embd=32, n_layer=1, n_head=2, vocab_size=40, n_positions=16)).save_pretrained(tmp_path)
    tiny.byte_level_tokenizer().save_pretrained(tmp_path)
    problem = refusal(tmp_path)
    assert problem.kind == "unsupported"
    assert "'gpt2'" in problem.problem
    assert "bert, distilbert, roberta" in problem.expected


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"model_type": "llama"}, "a token sees only those before it"),
        ({"model_type": "t5", "is_encoder_decoder": True}, "a kind with an encoder and a decoder"),
        ({"model_type": "gemma3_text", "use_bidirectional_attention": True}, "a token sees all others"),
        ({"model_type": "qwen3"}, "lists last-token pooling"),
        ({"model_type": "bert", "is_causal": True}, "a token sees only those before it (is_causal)"),
        ({"model_type": "luke"}, "together with entities"),
        ({"model_type": "new", "auto_map": {"AutoModel": "modeling.NewModel"}}, "such code is never run"),
        ({"model_type": "deberta-v2", "conv_kernel_size": 3}, "a convolution after its first block"),
        ({"model_type": "deberta-v2", "relative_attention": True, "pos_att_type": "c2p"}, "both products"),
        ({"model_type": "albert", "inner_group_num": 2}, "groups of several blocks"),
    ],
)
def test_why_a_model_is_refused_and_what_works_instead(values, reason):
    with pytest.raises(ModelError) as caught:
        support.check_supported_file(values, "some model")
    assert reason in caught.value.problem
    assert caught.value.problem.endswith(".")
    assert caught.value.fix.startswith("Pick")


@pytest.mark.parametrize("kinds", ["p2c|c2p", ["p2c", "c2p"]])
def test_a_deberta_v3_is_read_however_its_file_spells_its_products(kinds):
    support.check_supported_file(
        {"model_type": "deberta-v2", "relative_attention": True, "pos_att_type": kinds, "position_buckets": 256}, "v3"
    )


@pytest.mark.parametrize(
    "values",
    [
        {"model_type": "nomic_bert", "n_layer": 24, "n_embd": 768, "rotary_emb_base": 1_000},
        {"model_type": "nomic_bert", "n_layer": 12, "n_embd": 768, "rotary_emb_base": 10_000},
        {"model_type": "nomic_bert", "n_layer": 12, "n_embd": 768, "activation_function": "gelu"},
        {"model_type": "nomic_bert", "num_hidden_layers": 12, "num_experts": 8},
        {"model_type": "albert", "num_hidden_layers": 2, "num_hidden_groups": 4},
        {"model_type": "deberta-v2", "relative_attention": True, "pos_att_type": 5},
    ],
)
def test_a_file_that_the_library_would_read_otherwise_is_refused(values):
    with pytest.raises(ModelError) as caught:
        support.check_supported_file(values, "some model")
    assert caught.value.kind == "unsupported"
    assert "some model has" in caught.value.problem


def test_a_modernbert_that_says_it_has_no_position_vectors_is_read():
    support.check_supported_file({"model_type": "modernbert", "position_embedding_type": "sans_pos"}, "Ettin")


def test_a_bert_that_decodes_is_refused(folder):
    assert refusal(with_config(folder, is_decoder=True)).kind == "unsupported"


def test_relative_positions_are_refused(folder):
    problem = refusal(with_config(folder, position_embedding_type="relative_key"))
    assert problem.kind == "unsupported"
    assert "'relative_key'" in problem.problem


def test_a_model_that_needs_code_of_its_own_is_refused_and_the_code_is_not_run(folder, tmp_path):
    trace = tmp_path / "the code was run"
    (folder / "modeling_own.py").write_text(f"open({str(trace)!r}, 'w').close()\n")
    own = {"AutoConfig": "modeling_own.OwnConfig", "AutoModel": "modeling_own.OwnModel"}
    problem = refusal(with_config(folder, model_type="own-bert", auto_map=own))
    assert problem.kind == "unsupported"
    assert "'own-bert'" in problem.problem
    assert not trace.exists()


def test_code_beside_a_supported_model_is_not_run(folder, tmp_path):
    trace = tmp_path / "the code was run"
    (folder / "modeling_own.py").write_text(f"open({str(trace)!r}, 'w').close()\n")
    own = {"AutoConfig": "modeling_own.OwnConfig", "AutoModel": "modeling_own.OwnModel"}
    backend = Backend.load(str(with_config(folder, auto_map=own)), device_name="cpu")
    assert type(backend.encoder) is BertModel
    assert not trace.exists()


def test_a_model_type_that_transformers_does_not_know_is_refused(folder):
    problem = refusal(with_config(folder, model_type="of next year"))
    assert problem.kind == "unsupported"
    assert "'of next year'" in problem.problem


def test_a_configuration_that_names_no_type_is_refused(folder):
    (folder / "config.json").write_text("{}")
    assert refusal(folder).kind == "damaged"


def test_every_supported_type_has_a_tiny_model():
    """So that "supported" is what the tests of this folder cover."""
    assert {tiny.tiny_model(name)[0].config.model_type for name in tiny.ARCHITECTURES} == set(support.SUPPORTED)


def test_nomic_bert_with_the_names_of_its_own_code(tmp_path):
    """Where both kinds of names say the same, the model is read, as its library computes it, and no code of its own."""
    folder = tiny.save_tiny(tmp_path, "nomic_bert")
    expected = Backend.load(str(folder), device_name="cpu").trace(["the cat sat"]).hidden_states
    path = folder / "config.json"
    published = json.loads(path.read_text())
    published |= {"n_layer": 3, "n_embd": 32, "n_head": 4, "n_inner": 64, "n_positions": 8192, "rotary_emb_base": 1000}
    published |= {"activation_function": "swiglu", "rotary_emb_fraction": 1.0, "qkv_proj_bias": False, "prenorm": False}
    published |= {"auto_map": {"AutoModel": "nomic-ai/nomic-bert-2048--modeling_hf_nomic_bert.NomicBertModel"}}
    path.write_text(json.dumps(published))
    backend = Backend.load(str(folder), device_name="cpu")
    assert np.array_equal(backend.trace(["the cat sat"]).hidden_states, expected)
    assert backend.facts.layers == 3
    assert support.check_supported_file({"model_type": "nomic_bert", "n_layer": 12, "n_head": 12}, "x") is None
