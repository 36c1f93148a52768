"""The model to train: built from a published encoder, given an adapter, saved so that sentence-transformers can load it.

An encoder becomes transformer -> pooling (-> Dense); the modules that the encoder was published with behind its transformer
(another pooling, Dense, LayerNorm) are replaced, and its prompts, similarity, number of dimensions and Normalize kept. A
cross-encoder gets a classifier with one output; if none was published it starts at random.

Low-rank adapters (Hu et al. 2021) leave a weight matrix W as it is and learn a small difference beside it:

    W' = W + (alpha / rank) B A        A [rank, in], B [out, rank]; B starts at zero

They are placed on every matrix of every block, and merged into W when the result is saved, so that whoever loads the model
needs no adapter library. Weights that have no published value (a new classifier or Dense layer) are trained whole.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from components.arrays import Float32
from components.errors import ModelError, first_line
from components.model import device
from components.model.architecture.families import decoder
from components.model.architecture.record import max_positions, modules_of
from components.model.architecture.support import check_supported, check_supported_file
from components.model.catalog import parse_model, spec_of
from components.model.embedding.batch_pooling import pooled_states
from components.model.files import hub, sources
from components.model.files.allowed import POOLING_MODES
from components.model.files.checked_copy import check_sentence_files, checked_copy, read_config
from components.model.files.encoder.adapter import has_adapter, read_adapter
from components.model.files.encoder.settings import EncoderSettings, read_encoder_settings
from components.model.files.sentence_config import SentenceConfig, read_sentence_config
from components.model.files.static_files import static_folder
from components.model.loading import BUILDING, check_finite, check_sizes, head_weights, usable
from components.model.trace import POOLINGS
from components.training.run_folder import WatchToken

if TYPE_CHECKING:
    from components.training.objectives import ModelKind
    from components.training.settings import TrainingSettings

WEIGHTS = "model.safetensors"
HEAD = "head.safetensors"  # beside the adapter: weights that were trained whole
ADAPTED = (torch.nn.Linear,)


@dataclass(frozen=True, eq=False)
class WatchedTexts:
    """Vectors of some sentences and of their tokens in every layer."""

    sentences: Float32  # [layer, sentence, dim], by the run's pooling, before any Dense module
    tokens: Float32  # [layer, token, dim], of all sentences one after another, special tokens excluded
    labels: tuple[WatchToken, ...]  # [token]


def build(settings: TrainingSettings, kind: ModelKind) -> Any:
    """The model that training starts from: a SentenceTransformer or a CrossEncoder, float32, on the chosen device.

    Seed torch before: new weights are drawn at random. Raises ModelError if the model's files are not on this machine, or
    cannot be used, and InputError for a name that no model can have.
    """
    from transformers import AutoConfig

    spec = parse_model(settings.model)
    files = sources.find_files(spec)
    folder = files.folder
    strict = {"local_files_only": True, "trust_remote_code": False}
    if static_folder(folder) is not None:
        raise ModelError(
            "unsupported",
            f"{spec.title} has no blocks: it is a table with one vector for each piece of its vocabulary.",
            "Only encoders with blocks are trained here.",
            "Pick an encoder, such as the included one.",
        )
    with usable(spec.title):
        values = read_config(folder, spec.title)
        if values.get("model_type") in decoder.TITLES:
            raise ModelError(
                "unsupported",
                f"{spec.title} is a decoder, in which a token sees only those before it.",
                "Only encoders are trained here.",
                "Pick an encoder, such as the included one.",
            )
        check_supported_file(values, spec.title)
        check_sentence_files(folder, spec.title)
        with checked_copy(folder, spec.title) as checked:
            config = AutoConfig.from_pretrained(checked, **strict)
            check_supported(config, spec.title)
            check_sizes(checked, config, spec.title)
            longest = min(settings.max_length, max_positions(config))
            published = _weight_names(checked)
            arguments = read_encoder_settings(folder, spec.title)
            with BUILDING:
                model = (
                    _encoder(checked, settings, longest, read_sentence_config(files.adapter or folder), arguments)
                    if kind == "encoder"
                    else _cross_encoder(checked, settings, longest)
                )
    core = model.transformers_model
    core.name_or_path = core.config._name_or_path = str(folder)  # an adapter's file names it; the copy is gone
    # The included cross-encoder's, or one beside the weights of somebody else's model: training goes on from their sum.
    adapter_folder = files.adapter or (folder if has_adapter(folder) else None)
    if adapter_folder is not None:
        read_adapter(adapter_folder, spec.title).merge(core.base_model, spec.title)
        if kind == "cross-encoder":
            core.load_state_dict(head_weights(adapter_folder, spec.title), strict=False)
    check_finite(core, spec.title)
    record = modules_of(core.base_model)
    if kind == "cross-encoder" and record.structure.scores_from_pooler and record.pool is None:
        raise ModelError(
            "unsupported",
            f"{spec.title} has no pooler here, which its scores would be computed from.",
            "A cross-encoder of this architecture could be trained, but not be loaded again.",
            "Train a sentence encoder, or pick another model.",
        )
    new = [name for name, _ in core.named_parameters() if not _is_published(name, published, core.base_model_prefix)]
    if any(name.startswith(f"{modules_of(core.base_model).blocks_path}.") for name in _of_encoder(new, core)):
        # The library reads files whose names are not those of the modules (Nomic BERT's): it says itself what it misses.
        missing = _missing_of_encoder(folder)
        new = [name for name in new if not _of_encoder([name], core) or _of_encoder([name], core)[0] in missing]
    if kind == "encoder" and any(name.startswith("pooler.") for name in new):
        core.pooler = None  # random and never used: it would be saved as if it meant something
        new = [name for name in new if not name.startswith("pooler.")]
    if kind == "encoder" and new:
        raise ModelError(
            "damaged",
            f"{spec.title} lacks {len(new)} of its weights, for example {new[0]}.",
            "A model needs weights for every part of the encoder.",
            "Pick another model.",
        )
    if settings.damage:
        _damage(core, settings)
    if settings.dropout is not None:
        for module in core.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = settings.dropout
    if settings.adapter:
        _add_adapter(core, settings, set(new))
    return model.to(device.choose_device())


def _of_encoder(names: Sequence[str], core: Any) -> list[str]:
    """Those of these parameters of a model that belong to its encoder, by their names within it."""
    if core.base_model is core:
        return list(names)
    prefix = f"{core.base_model_prefix}."
    return [name.removeprefix(prefix) for name in names if name.startswith(prefix)]


def _missing_of_encoder(folder: Path) -> set[str]:
    """The names of the encoder's parameters for which the files have no value, as the library reads them."""
    from transformers import AutoModel

    with checked_copy(folder, "the model") as checked, BUILDING:
        report = AutoModel.from_pretrained(
            checked, local_files_only=True, trust_remote_code=False, use_safetensors=True, output_loading_info=True
        )[1]
    return {str(name) for name in report["missing_keys"]}


def _damage(core: Any, settings: TrainingSettings) -> None:
    """Add Gaussian noise to every matrix of the blocks: W' = W + damage * std(W) * N(0, 1), the same for the same seed."""
    random = torch.Generator().manual_seed(settings.seed)  # of its own: what is drawn later stays the same
    with torch.no_grad():
        blocks = _blocks_of(core)
        for module in core.modules():
            if isinstance(module, ADAPTED) and module in blocks:
                weight = module.weight
                noise = torch.randn(weight.shape, generator=random, dtype=weight.dtype)
                weight.add_(settings.damage * weight.std() * noise)


def _blocks_of(core: Any) -> set[torch.nn.Module]:
    """All modules within the blocks of an encoder, or of the encoder of a cross-encoder."""
    encoder = core.base_model
    return set(encoder.get_submodule(modules_of(encoder).blocks_path).modules())


def _encoder(
    folder: Path, settings: TrainingSettings, longest: int, published: SentenceConfig, arguments: EncoderSettings
) -> Any:
    """The encoder with the run's pooling, and with what it was published with besides: prompts, similarity, size, scaling."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Dense, Normalize, Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling

    strict = {"local_files_only": True, "trust_remote_code": False}
    transformer = Transformer(
        str(folder),
        model_kwargs={**strict, "use_safetensors": True, "dtype": torch.float32},
        processor_kwargs={**strict, **arguments.tokenizer, "model_max_length": longest},
        config_kwargs=strict,
        max_seq_length=longest,
        do_lower_case=arguments.is_lowered,
    )
    hidden = int(transformer.get_embedding_dimension())
    pooling = next((module for module in published.modules if module.kind == "Pooling"), None)
    modes = () if pooling is None else pooling.pooling_modes
    # The published pooling where no setting has a name for it, unless another than the usual one was chosen.
    is_other = len(modes) > 1 or bool(set(modes) - set(POOLINGS))
    keeps = is_other and settings.pooling == "mean" and set(modes) <= set(POOLING_MODES)
    counts_prompt = pooling is None or bool((pooling.config or {}).get("include_prompt", True))
    modules: list[torch.nn.Module] = [
        transformer,
        Pooling(hidden, modes if keeps else settings.pooling, counts_prompt),
    ]
    if settings.projection is not None:
        dense = Dense(hidden, settings.projection, bias=True, activation_function=torch.nn.Identity())
        # Rows that are orthogonal keep most of the angles, where the usual random start would lose them.
        torch.nn.init.orthogonal_(dense.linear.weight)
        torch.nn.init.zeros_(dense.linear.bias)
        modules.append(dense)
    if any(module.kind == "Normalize" for module in published.modules):
        modules.append(Normalize())
    default = published.default_prompt
    return SentenceTransformer(
        modules=modules,
        device="cpu",
        prompts=dict(published.prompts),
        default_prompt_name=default if default in {*published.prompts, "query", "document"} else None,
        similarity_fn_name=published.similarity if published.says_similarity else None,
        truncate_dim=published.truncate_dim,
    )


def _cross_encoder(folder: Path, settings: TrainingSettings, longest: int) -> Any:
    from sentence_transformers import CrossEncoder
    from transformers.utils import logging as transformers_logging

    transformers_logging.set_verbosity_error()  # else it reports the new classifier as missing
    return CrossEncoder(
        str(folder),
        num_labels=1,
        max_length=longest,
        device="cpu",
        local_files_only=True,
        model_kwargs={"use_safetensors": True, "dtype": torch.float32},
    )


def mining_model(settings: TrainingSettings, model: Any) -> Any:
    """The encoder whose vectors find wrong answers before training: the model itself, or what a cross-encoder is made of.

    Raises ModelError if the files of the cross-encoder's model are not on this machine, or cannot be used.
    """
    from sentence_transformers import SentenceTransformer

    if isinstance(model, SentenceTransformer):
        return model
    spec = parse_model(settings.model)
    folder = sources.find_files(spec).folder
    with usable(spec.title), checked_copy(folder, spec.title) as checked:
        published, arguments = read_sentence_config(folder), read_encoder_settings(folder, spec.title)
        encoder = _encoder(checked, settings, int(model.max_seq_length), published, arguments)
        if has_adapter(folder):
            read_adapter(folder, spec.title).merge(encoder.transformers_model.base_model, spec.title)
        return encoder.to(model.device)


def _weight_names(folder: Path) -> set[str]:
    from safetensors import safe_open

    names: set[str] = set()
    for part in hub.weight_parts(folder) or (WEIGHTS,):
        with safe_open(folder / part, framework="numpy") as file:
            names.update(file.keys())
    return names


def _is_published(name: str, published: set[str], prefix: str) -> bool:
    """Whether a parameter has a value in the files, which may or may not have the prefix of the bare encoder."""
    # Checkpoints converted from TensorFlow call LayerNorm's parameters gamma and beta.
    old = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
    return any(
        spelling in published
        for known in (name, old)
        for spelling in (known, known.removeprefix(f"{prefix}."), f"{prefix}.{known}")
    )


def _add_adapter(core: Any, settings: TrainingSettings, new: set[str]) -> None:
    """Place an adapter on the matrices of all blocks, and on a published pooler; only it and new weights are trained."""
    from peft import LoraConfig

    owners = {name.rpartition(".")[0] for name in new}
    pooler = None if core.base_model is core else getattr(core.base_model, "pooler", None)  # an encoder's is not used
    adapted = _blocks_of(core) | (set() if pooler is None else set(pooler.modules()))
    targets = [
        name
        for name, module in core.named_modules()
        if isinstance(module, ADAPTED) and name not in owners and module in adapted
    ]
    core.add_adapter(
        LoraConfig(
            r=settings.adapter_rank,
            lora_alpha=settings.adapter_alpha,
            lora_dropout=settings.adapter_dropout,
            target_modules=targets,
            base_model_name_or_path=settings.model,
        )
    )
    head = set() if core.base_model is core else {name for name, _ in core.named_children()} - {core.base_model_prefix}
    for name, parameter in core.named_parameters():
        if name in new or name.partition(".")[0] in head:
            parameter.requires_grad_(True)


def count_parameters(module: torch.nn.Module) -> tuple[int, int]:
    """The number of parameters that are trained, and of all."""
    parameters = list(module.parameters())
    trained = sum(parameter.numel() for parameter in parameters if parameter.requires_grad)
    return trained, sum(parameter.numel() for parameter in parameters)


def write_trained(losses: torch.nn.Module, path: Path) -> None:
    """Write the trained parameters of the losses and of the model within them, as safetensors; all or nothing."""
    from safetensors.torch import save_file

    part = path.with_name(path.name + ".new")
    part.unlink(missing_ok=True)  # the library would write through a link
    save_file({name: parameter.detach().cpu().contiguous() for name, parameter in _trained(losses)}, part)
    part.replace(path)


def read_trained(losses: torch.nn.Module, path: Path) -> None:
    """Give the trained parameters the values of a file. Raises ModelError for a file of another model."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        values = load_file(path)
        with torch.no_grad():
            for name, parameter in _trained(losses):
                parameter.copy_(values.pop(name))
        if values:
            raise KeyError(next(iter(values)))
    except (OSError, SafetensorError, KeyError, RuntimeError) as problem:
        raise ModelError(
            "damaged",
            f"The checkpoint {path.parent.name} cannot be used: {first_line(problem)}.",
            "It must hold the weights of this run.",
            "Delete this run, and start a new one.",
        ) from problem


def _trained(losses: torch.nn.Module) -> Iterator[tuple[str, torch.nn.Parameter]]:
    """Each trained parameter once, though several losses share one model."""
    return ((name, parameter) for name, parameter in losses.named_parameters() if parameter.requires_grad)


def save(model: Any, settings: TrainingSettings, folder: Path, adapter_folder: Path) -> None:
    """Save the model in sentence-transformers' format, and its adapter, if it has one, apart in peft's.

    The adapter is merged into the model's weights, so the model cannot be trained further after this. Both folders are
    written completely or not at all; what they held before is replaced.
    """
    core = model.transformers_model
    if getattr(core, "peft_config", None):
        part = _fresh(adapter_folder)
        core.save_pretrained(part)
        _write_head(model, part)
        _replace(part, adapter_folder)
        merge_adapter(core)
    part = _fresh(folder)
    model.save_pretrained(str(part), create_model_card=False)
    # Where the dashboard, and earlier versions of sentence-transformers, look for the length.
    path = part / "sentence_bert_config.json"
    content = json.loads(path.read_text(encoding="utf-8")) | {"max_seq_length": int(model.max_seq_length)}
    path.write_text(json.dumps(content, indent=1), encoding="utf-8")
    kind, start = type(model).__name__, spec_of(settings.model)
    name = start.title if start.source == "embedded" else start.key
    call = f"from sentence_transformers import {kind}\n\nmodel = {kind}({folder.name!r})\n"
    (part / "README.md").write_text(
        f"Trained from {name} with BERT Internals ({', '.join(settings.objectives)}).\n\n```python\n{call}```\n",
        encoding="utf-8",
    )
    _replace(part, folder)


def merge_adapter(core: Any) -> None:
    """Replace each adapted matrix of an encoder by W + (alpha / rank) B A."""
    from peft.tuners.lora import LoraLayer

    for name, layer in list(core.named_modules()):
        if isinstance(layer, LoraLayer):
            layer.merge()
            parent, _, child = name.rpartition(".")
            setattr(core.get_submodule(parent), child, layer.get_base_layer())
    core._hf_peft_config_loaded = False
    del core.peft_config


def _write_head(model: Any, folder: Path) -> None:
    """Write the weights that were trained whole, which belong to the adapter."""
    from safetensors.torch import save_file

    head = {
        name: parameter.detach().cpu().contiguous()
        for name, parameter in model.named_parameters()
        if parameter.requires_grad and ".lora_" not in name
    }
    if head:
        save_file(head, folder / HEAD)


def _fresh(folder: Path) -> Path:
    part = folder.with_name(folder.name + ".new")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(mode=0o700, parents=True)
    return part


def _replace(part: Path, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    part.replace(folder)


@contextmanager
def random_states_kept() -> Iterator[None]:
    """What is drawn within, by Python, NumPy or torch on any device, does not change what is drawn after it."""
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002 - what libraries draw from
    on_metal = torch.mps.get_rng_state() if torch.backends.mps.is_available() else None
    try:
        with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002
        if on_metal is not None:
            torch.mps.set_rng_state(on_metal)


def watch(model: Any, sentences: Sequence[str], settings: TrainingSettings) -> WatchedTexts:
    """Vectors of sentences in every layer of the model as it is now. Changes neither its mode nor any random state."""
    core = model.transformers_model
    encoder, tokenizer = core.base_model, model.tokenizer
    inputs = tokenizer(
        list(sentences),
        padding=True,
        truncation=True,
        max_length=int(model.max_seq_length),
        return_special_tokens_mask=True,
        return_tensors="pt",
    )
    special = inputs.pop("special_tokens_mask").bool()  # [sentence, token]; true for padding too
    was_training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            output = encoder(**inputs.to(encoder.device), output_hidden_states=True)
            layers = [state.float().cpu() for state in output.hidden_states]
    finally:
        model.train(was_training)
    keep = inputs["attention_mask"].bool().cpu()
    lengths = keep.sum(dim=1)
    pooled = pooled_states(layers, (settings.pooling,), keep, lengths, keep.float() / lengths[:, None])[:, 0]
    shown = ~special
    rows, positions = (axis.tolist() for axis in torch.nonzero(shown, as_tuple=True))
    pieces = [tokenizer.convert_ids_to_tokens(inputs["input_ids"][row].cpu().tolist()) for row in range(len(sentences))]
    return WatchedTexts(
        sentences=np.ascontiguousarray(pooled.numpy()),
        tokens=np.stack([state[shown].numpy() for state in layers]),
        labels=tuple(
            WatchToken(row, position, pieces[row][position]) for row, position in zip(rows, positions, strict=True)
        ),
    )


def versions() -> Mapping[str, str]:
    """The versions of the packages on which a result depends."""
    from importlib.metadata import version

    names = ("torch", "transformers", "sentence-transformers", "accelerate", "datasets", "peft", "numpy")
    return {name: version(name) for name in names}
