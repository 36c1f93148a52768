"""Tiny seeded encoders of every supported architecture, built from configs: fast, and no network.

Sizes are chosen so that a mixed-up axis shows: 3 layers, 4 heads, 32 dimensions, 20-odd words.
"""

from __future__ import annotations

import copy
import functools
import itertools
import json
import tempfile
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import (
    AlbertConfig,
    AlbertModel,
    AutoModelForMaskedLM,
    BertConfig,
    BertForMaskedLM,
    BertModel,
    CamembertConfig,
    CamembertModel,
    Data2VecTextConfig,
    Data2VecTextModel,
    DebertaV2Config,
    DebertaV2Model,
    DistilBertConfig,
    DistilBertModel,
    ElectraConfig,
    ElectraModel,
    ErnieConfig,
    ErnieModel,
    EuroBertConfig,
    EuroBertModel,
    ModernBertConfig,
    ModernBertModel,
    MPNetConfig,
    MPNetModel,
    NomicBertConfig,
    NomicBertModel,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaModel,
    RobertaPreLayerNormConfig,
    RobertaPreLayerNormModel,
    XLMRobertaConfig,
    XLMRobertaModel,
    XLMRobertaXLConfig,
    XLMRobertaXLModel,
)

from components.model.loading import BUILDING

WORDS = [
    *("the", "a", "cat", "dog", "bank", "river", "money", "sat", "ran", "walk", "##ing", "##ed", "red", "hat", "on"),
    *("in", "by", ".", ",", "!", "?", "é", "你", "x", "##x", "we", "will", "put"),
]
LIKE_BERT = ("bert", "distilbert", "roberta", "electra", "mpnet", "multilingual", "xlm-roberta", "camembert")
OTHERS = (
    *("data2vec-text", "ernie", "xlm-roberta-xl", "roberta-prelayernorm", "albert", "modernbert"),
    *("deberta-v2", "nomic_bert", "eurobert"),
)
ARCHITECTURES = (*LIKE_BERT, *OTHERS)
# One of each structure, as components/model/architecture/families tells them apart: BERT's; positions counted from behind
# the padding; numbers for distances; shared weights; norms first; rotation with windows and fused projections; vectors for
# distances; rotation with norms after; rotation with norms first and shared keys. The rest differs from one of these in
# names of modules and in what is summed at layer 0: there, one case of a kind is enough.
DISTINCT = (
    *("bert", "roberta", "mpnet", "albert", "xlm-roberta-xl"),
    *("modernbert", "deberta-v2", "nomic_bert", "eurobert"),
)


def with_cases(cases: Sequence[Any], others: Sequence[Any] = ()) -> list[tuple[str, Any]]:
    """Every architecture with a case: those of DISTINCT with all of them, the rest with one each, in turn.

    `others` are the cases for the rest, by default the same.
    """
    turn = itertools.cycle(others or cases)
    return [(name, case) for name in ARCHITECTURES for case in (cases if name in DISTINCT else (next(turn),))]


def wordpiece_tokenizer(lowercase: bool = True) -> PreTrainedTokenizerFast:
    """BERT's kind: [CLS] a [SEP] b [SEP], with token types."""
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    tokenizer = Tokenizer(models.WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0",
        pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=64,
        cls_token="[CLS]",
        sep_token="[SEP]",
        pad_token="[PAD]",
        unk_token="[UNK]",
        mask_token="[MASK]",
    )


def byte_level_tokenizer() -> PreTrainedTokenizerFast:
    """RoBERTa's kind: byte-level pieces, <s> a </s></s> b </s>, padding id 1."""
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    pieces = special + sorted(pre_tokenizers.ByteLevel.alphabet()) + ["Ġb", "an", "Ġban", "Ġbank"]
    vocabulary = {piece: i for i, piece in enumerate(pieces)}
    merges = [("Ġ", "b"), ("a", "n"), ("Ġb", "an"), ("Ġban", "k")]
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=64,
        cls_token="<s>",
        sep_token="</s>",
        bos_token="<s>",
        eos_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
        mask_token="<mask>",
    )


def mpnet_tokenizer() -> PreTrainedTokenizerFast:
    """MPNet's kind: BERT's pieces between RoBERTa's special tokens, <s> a </s></s> b </s>, padding id 1."""
    pieces = ["<s>", "<pad>", "</s>", "[UNK]", "<mask>", *WORDS]
    tokenizer = Tokenizer(models.WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return _between_sentence_marks(tokenizer, unk_token="[UNK]")


def unigram_tokenizer() -> PreTrainedTokenizerFast:
    """XLM-RoBERTa's kind: pieces that carry their space as "▁", <s> a </s></s> b </s>, padding id 1."""
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    words = ["▁the", "▁bank", "▁cat", "▁river", "▁sat", "▁", *"abcdehiknorstuv", "é", "你"]
    pieces = [(piece, 0.0) for piece in special] + [(word, -1.0 - i / 10) for i, word in enumerate(words)]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=3))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    return _between_sentence_marks(tokenizer, unk_token="<unk>")


def _between_sentence_marks(tokenizer: Tokenizer, unk_token: str) -> PreTrainedTokenizerFast:
    """<s> a </s>, pairs <s> a </s></s> b </s>; <s> is 0, <pad> 1, </s> 2."""
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", 0), ("</s>", 2)],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=64,
        cls_token="<s>",
        sep_token="</s>",
        bos_token="<s>",
        eos_token="</s>",
        pad_token="<pad>",
        unk_token=unk_token,
        mask_token="<mask>",
    )


_LIKE_ROBERTA: dict[str, tuple[Any, Any]] = {
    "roberta": (RobertaConfig, RobertaModel),
    "xlm-roberta": (XLMRobertaConfig, XLMRobertaModel),
    "camembert": (CamembertConfig, CamembertModel),
    "data2vec-text": (Data2VecTextConfig, Data2VecTextModel),
    "xlm-roberta-xl": (XLMRobertaXLConfig, XLMRobertaXLModel),
    "roberta-prelayernorm": (RobertaPreLayerNormConfig, RobertaPreLayerNormModel),
}


def tiny_tokenizer(architecture: str) -> PreTrainedTokenizerFast:
    """The kind of tokenizer that models of this architecture come with."""
    if architecture in {"roberta", "data2vec-text", "roberta-prelayernorm"}:
        return byte_level_tokenizer()
    if architecture in {"xlm-roberta", "camembert", "xlm-roberta-xl"}:
        return unigram_tokenizer()
    if architecture == "mpnet":
        return mpnet_tokenizer()
    return wordpiece_tokenizer(lowercase=architecture != "multilingual")


def undisturbed(make: Callable[[], Any]) -> Any:
    """A model from `make`, which seeds torch's generator: made again until two are equal.

    The generator is that of all threads, which may draw from it in between. None of them loads a model meanwhile:
    transformers ties no weights then, in any thread.
    """
    with BUILDING:
        before, after = make(), make()
        while not _are_equal(before, after):
            before, after = after, make()
    return after


def _are_equal(first: Any, second: Any) -> bool:
    others = second.state_dict()
    return all(torch.equal(tensor, others[name]) for name, tensor in first.state_dict().items())


def tiny_model(architecture: str, seed: int = 0) -> tuple[Any, PreTrainedTokenizerFast]:
    """A seeded model in eval mode and its tokenizer. It is one's own: to change it changes no other test's."""
    model, drawn = _made_once(architecture, seed)
    torch.set_rng_state(drawn)
    return copy.deepcopy(model), tiny_tokenizer(architecture)


@functools.cache
def _made_once(architecture: str, seed: int) -> tuple[Any, torch.Tensor]:
    """The model, and the state of torch's generator once it is made: what a test draws next is the same in each run."""
    tokenizer = tiny_tokenizer(architecture)
    return undisturbed(lambda: _seeded(architecture, tokenizer, seed)), torch.get_rng_state()


Saved = tuple[dict[str, bytes], torch.Tensor]  # the content of each file, and the state of torch's generator
_saved: dict[Hashable, Saved] = {}


def saved_once(folder: Path, key: Hashable, save: Callable[[Path], None]) -> Path:
    """The folder, with the files that `save` writes into an empty one: the same for the same key, which is saved once."""
    if key not in _saved:
        with tempfile.TemporaryDirectory() as place:
            save(Path(place))
            files = {path.name: path.read_bytes() for path in Path(place).iterdir()}
        _saved[key] = files, torch.get_rng_state()
    files, drawn = _saved[key]
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    torch.set_rng_state(drawn)
    return folder


def _seeded(architecture: str, tokenizer: PreTrainedTokenizerFast, seed: int) -> Any:
    torch.manual_seed(seed)
    sizes: dict[str, Any] = {
        "vocab_size": len(tokenizer),
        "hidden_size": 32,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "intermediate_size": 64,
        "max_position_embeddings": 64,
        "pad_token_id": tokenizer.pad_token_id,
        "initializer_range": 0.3,  # large, so that wrong positions or masks show
    }
    if architecture in {"bert", "multilingual"}:
        model: Any = BertModel(BertConfig(**sizes))
    elif architecture == "distilbert":
        model = DistilBertModel(
            DistilBertConfig(
                vocab_size=len(tokenizer),
                dim=32,
                n_layers=3,
                n_heads=4,
                hidden_dim=64,
                max_position_embeddings=64,
                pad_token_id=tokenizer.pad_token_id,
                initializer_range=0.3,
            )
        )
    elif architecture in _LIKE_ROBERTA:
        config_class, model_class = _LIKE_ROBERTA[architecture]
        model = model_class(config_class(**{**sizes, "max_position_embeddings": 66, "type_vocab_size": 1}))
    elif architecture == "electra":
        model = ElectraModel(ElectraConfig(**sizes, embedding_size=16))
    elif architecture == "mpnet":
        model = MPNetModel(MPNetConfig(**{**sizes, "max_position_embeddings": 66}))
    elif architecture == "ernie":
        model = ErnieModel(ErnieConfig(**sizes, use_task_id=True))
    elif architecture == "albert":  # two sets of weights for three blocks
        model = AlbertModel(AlbertConfig(**sizes, embedding_size=16, num_hidden_groups=2, inner_group_num=1))
    elif architecture == "modernbert":  # a window of two tokens on either side, so that short texts go beyond it
        ids = {"bos_token_id": 2, "cls_token_id": 2, "eos_token_id": 3, "sep_token_id": 3}
        model = ModernBertModel(ModernBertConfig(**sizes, **ids, local_attention=4, global_attn_every_n_layers=2))
    elif architecture == "deberta-v2":  # as v3: four distances of their own on either side, then shared ones
        distances = {
            "relative_attention": True,
            "position_buckets": 4,
            "norm_rel_ebd": "layer_norm",
            "share_att_key": True,
        }
        kinds = {"pos_att_type": ["p2c", "c2p"], "position_biased_input": False, "type_vocab_size": 0}
        model = DebertaV2Model(DebertaV2Config(**sizes, **distances, **kinds))
    elif architecture == "nomic_bert":
        model = NomicBertModel(NomicBertConfig(**sizes))
    elif architecture == "eurobert":  # two heads share their keys
        ids = {"bos_token_id": 2, "eos_token_id": 3, "mask_token_id": 4}
        model = EuroBertModel(EuroBertConfig(**sizes, **ids, num_key_value_heads=2))
    else:
        raise ValueError(architecture)
    for module in model.modules():  # norms that change something, so that none could be left out unnoticed
        if architecture in OTHERS and "norm" in type(module).__name__.lower() and hasattr(module, "weight"):
            torch.nn.init.uniform_(module.weight, 0.5, 1.5)
    return model.eval()


def save_tiny(folder: Path, architecture: str = "bert", seed: int = 0) -> Path:
    """A tiny model and its tokenizer saved as a folder that the dashboard can open."""

    def save(place: Path) -> None:
        for part in tiny_model(architecture, seed):
            part.save_pretrained(place)

    return saved_once(folder, ("encoder", architecture, seed), save)


def save_tiny_masked_lm(folder: Path, seed: int = 0) -> Path:
    """A tiny BertForMaskedLM with its trained head, saved as a folder."""

    def save(place: Path) -> None:
        model, tokenizer = tiny_model("bert", seed)

        def make() -> Any:
            torch.manual_seed(seed)
            return BertForMaskedLM(model.config).eval()

        undisturbed(make).save_pretrained(place)
        tokenizer.save_pretrained(place)

    return saved_once(folder, ("bert with its head", seed), save)


def save_masked_lm_of(folder: Path, architecture: str, seed: int = 3, rows: int | None = None) -> Path:
    """A tiny model of any architecture with a seeded masked-LM head, saved as a folder.

    `rows`: as many word vectors, more than the tokenizer has pieces.
    """

    def save(place: Path) -> None:
        model, tokenizer = tiny_model(architecture)
        if rows is not None:
            model.config.vocab_size = rows

        def make() -> Any:
            torch.manual_seed(seed)
            whole = AutoModelForMaskedLM.from_config(model.config).eval()
            for parameter in whole.parameters():
                torch.nn.init.normal_(parameter, std=0.3)
            for module in whole.modules():
                if "norm" in type(module).__name__.lower() and hasattr(module, "weight"):
                    torch.nn.init.uniform_(module.weight, 0.5, 1.5)
            return whole

        undisturbed(make).save_pretrained(place)
        tokenizer.save_pretrained(place)

    return saved_once(folder, ("masked", architecture, seed, rows), save)


Module = tuple[str, dict[str, Any]]  # kind and configuration of a sentence-transformers module


def publish(folder: Path, *modules: Module, library: str = "sentence_transformers.models", seed: int = 0) -> Path:
    """Put modules.json and these modules' folders beside an encoder, as sentence-transformers has always written them.

    Dense, LayerNorm and WeightedLayerPooling modules get seeded weights in the safetensors format.
    """
    numbers = torch.Generator().manual_seed(seed)
    listed = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}]
    for at, (kind, config) in enumerate(modules, start=1):
        path = folder / f"{at}_{kind}"
        path.mkdir()
        listed.append({"idx": at, "name": str(at), "path": path.name, "type": f"{library}.{kind}"})
        if config:
            (path / "config.json").write_text(json.dumps(config))
        if kind == "Dense":
            shape = (config["out_features"], config["in_features"])
            weights = {"linear.weight": torch.randn(shape, generator=numbers) / 4}
            if config.get("bias", True):
                weights["linear.bias"] = torch.randn(shape[:1], generator=numbers) / 4
            save_file(weights, path / "model.safetensors")
        elif kind == "LayerNorm":
            norm = {f"norm.{name}": torch.randn(config["dimension"], generator=numbers) for name in ("weight", "bias")}
            save_file(norm, path / "model.safetensors")
        elif kind == "WeightedLayerPooling":
            count = config["num_hidden_layers"] + 1 - config["layer_start"]
            save_file({"layer_weights": torch.rand(count, generator=numbers) + 0.1}, path / "model.safetensors")
    (folder / "modules.json").write_text(json.dumps(listed))
    return folder


def pooling_module(mode: str = "mean_tokens", size: int = 32, **more: Any) -> Module:
    """A Pooling module as older versions of sentence-transformers wrote it; `mode` ends the flag's name."""
    return "Pooling", {"word_embedding_dimension": size, f"pooling_mode_{mode}": True, **more}


def dense_module(inputs: int, outputs: int, activation: str | None = "Tanh", **more: Any) -> Module:
    """A Dense module with an activation function of torch.nn; None names none."""
    place = "linear" if activation == "Identity" else "activation"
    named = {} if activation is None else {"activation_function": f"torch.nn.modules.{place}.{activation}"}
    return "Dense", {"in_features": inputs, "out_features": outputs, "bias": True, **named, **more}
