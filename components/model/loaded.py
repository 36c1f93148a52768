"""The loaded model: its weights, its tokenizer, the device they are on, and the one lock around a forward pass.

Traces, bulk vectors and token vectors are computed with it; `Backend` combines them. Two module trees share one set of
weights. The fast one uses PyTorch's fused attention, which gives no attention weights; the other (a copy whose
parameters are the same tensors) uses eager attention and runs only when attentions are needed. Switching one
shared model back and forth would be a race between sessions.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from components import counters
from components.arrays import Float32, Int64
from components.errors import ModelError
from components.model import loading
from components.model.architecture.modules import EncoderModules
from components.model.architecture.record import facts_of, modules_of
from components.model.architecture.structure import Offer, Structure
from components.model.catalog import ModelFacts, ModelSpec
from components.model.device import failures_in_words, on_device, rules_of, turns_at
from components.model.files import hub
from components.model.files.checked_copy import TOKENIZER, left_out, read_tokenizer
from components.model.files.decisions import CONFIG, ENCODER_FILES, MODULES, TOP
from components.model.files.encoder import adapter
from components.model.files.encoder.casing import difference
from components.model.files.encoder.chat_template import told_of_template
from components.model.files.encoder.settings import EncoderSettings, read_encoder_settings, sentences
from components.model.files.other_vectors import LateInteraction, Splade, read_late_interaction, read_splade
from components.model.files.published import read_json
from components.model.files.sentence_config import (
    Role,
    SentenceConfig,
    length_file,
    length_for,
    longest_text,
    prompt_for,
    read_sentence_config,
    with_prompt,
    with_prompts,
)
from components.model.files.static_files import static_folder
from components.model.files.weight_sizes import WEIGHTS, half_precision
from components.model.guesses import included
from components.model.head import (
    MODE_NAMES,
    MODES,
    HeadNotApplied,
    HeadSettings,
    PublishedHead,
    read_head,
    takes_last_token,
)
from components.model.not_applied import StepInWords, is_cross_encoder, not_applied, unused_prompts, vector_in_words
from components.model.tokenization import Tokenization
from components.model.trace import POOLINGS, Pooling

HANDOVER_SECONDS = 0.0005  # enough for a thread that waits to take the lock


class LoadedModel:
    """An encoder in memory with the settings it was published with. Safe to share between threads.

    `spec` is the catalog entry with its facts filled in, and `revision` identifies the weights. `forward_passes` counts
    all passes run so far. `head` makes the model's own vectors where that is more than a plain pooling, else it is None;
    `poolings` contains "own" only with it. `splade` and `late_interaction` say how a model that was published for weights of
    pieces, or for a vector per token, gives them; None for others, and for those that cannot be applied, for which
    `not_given` has the reason. `not_applied` says in sentences which published parts are not used, or only in some places.
    `structure` says what kind of encoder it is, and `modules` where its modules are.
    """

    def __init__(
        self,
        spec: ModelSpec,
        revision: str,
        encoder: Any,
        tokenizer: Any,
        folder: Path | None = None,
        put: str | None = None,
    ) -> None:
        """`folder` holds the published files; None for a model that was created in memory.

        `put` is put before every text, in place of the published prompts.
        """
        self.encoder = encoder.eval()
        self.sentence_config: SentenceConfig = with_prompts(
            read_sentence_config(folder), spec.prompts if spec.with_prompts else ()
        )
        self.facts: ModelFacts = facts_of(encoder.config, encoder, longest_text(self.sentence_config))
        self.modules: EncoderModules = modules_of(encoder)  # of `encoder`; a copy of it needs a record of its own
        self.structure: Structure = self.modules.structure
        self.spec = replace(spec, facts=self.facts, masked_lm=loading.publishes_masked_lm(encoder.config))
        self.revision = revision
        self.device: torch.device = next(encoder.parameters()).device
        self._turns = turns_at(self.device)
        self.lock = self._turns.lock  # hooks placed on a shared model fire for everybody's passes
        # Held while a head is built, which waits for other models that are being built: passes need not wait with it.
        self._building_head = threading.Lock()
        rows = int(encoder.get_input_embeddings().num_embeddings)
        self.encoder_settings: EncoderSettings = read_encoder_settings(folder, spec.title)
        self.has_chosen_prompts = put is not None or spec.with_prompts
        if put is not None:
            self.sentence_config = with_prompt(self.sentence_config, put)
        self.tokenization = Tokenization(
            tokenizer,
            self.facts.max_positions,
            self.facts.segments > 1,
            rows,
            self.sentence_config.max_length,
            longest_text(self.sentence_config),
        )
        self.has_no_list = folder is not None and not (folder / MODULES).is_file()
        head_problem: str | None = None
        try:
            self.head: PublishedHead | None = read_head(
                folder, self.sentence_config.modules, self.facts.hidden_size, self._head_settings()
            )
        except HeadNotApplied as problem:
            self.head, head_problem = None, str(problem)
        # Without blocks no token collects the others, as [CLS] does, and the mean is all that such a model was made for.
        plain: tuple[Pooling, ...] = POOLINGS if self.structure.has_blocks else ("mean",)
        if self.structure.is_causal:
            plain = ("last",)
        self.poolings: tuple[Pooling, ...] = plain if self.head is None else (*plain, "own")
        own = self.sentence_config.pooling
        self.own_pooling: Pooling = "own" if self.head is not None else own if own in plain else plain[0]
        # The layers whose text vectors are offered.
        last = self.facts.layers
        self.text_layers: range = range(last, last + 1) if self.structure.is_causal else range(last + 1)
        published_as = self.sentence_config.published_as
        names = tuple(map(str, getattr(encoder.config, "architectures", None) or ()))
        self.splade: Splade | None = None
        self.late_interaction: LateInteraction | None = None
        self.not_given = ""
        try:
            self.splade = read_splade(folder, self.sentence_config.modules) if self.spec.masked_lm else None
            self.late_interaction = read_late_interaction(
                folder, self.sentence_config, self.tokenization, self.facts.hidden_size
            )
        except HeadNotApplied as problem:
            self.not_given = str(problem)
        self.not_applied = (
            not_applied(
                self.sentence_config.modules,
                names,
                published_as,
                head_problem,
                gives_own=self.splade is not None or self.late_interaction is not None,
                not_given=self.not_given,
                takes_last_token=self.structure.is_causal,
            )
            + unused_prompts(self.sentence_config)
            + left_out(folder, spec.title)
            + _told_of_files(folder, spec.title, tokenizer)
            + self._told_of_queries(folder)
            + self._told_of_padding(tokenizer)
            + _told_of_chance(tokenizer)
            + _told_of_lengths_of_rows(folder)
            + self._told_of_length()
            + _told_of_rotation(encoder.config)
            + _told_of_masks(folder, tokenizer)
            + _told_of_list(spec, folder)
            + _told_of_precision(spec, folder)
        )
        self.is_cross_encoder = is_cross_encoder(spec.key, encoder.config, published_as, self.sentence_config.modules)
        if self.is_cross_encoder and prompt_for(self.sentence_config, None):
            self.not_applied += (
                f"Its scores are computed with its prompt “{prompt_for(self.sentence_config, None)[:80]}” before each query. "
                "Views that show a pair's tokens, and what single words add, read the pair without it.",
            )
        self.own_max_length = self.tokenization.own_length
        self.forward_passes = 0
        self.folder = folder
        self._eager: Any = None
        self._masked_lm: Any = None
        self._pair_scorer: Any = None
        self._next_sentence: torch.nn.Linear | None = None

    def _told_of_length(self) -> tuple[str, ...]:
        """That a published length is longer than what is read, where no table of positions ends before it."""
        most = self.tokenization.max_length
        if longest_text(self.sentence_config) <= most or self.structure.has_position_vectors:
            return ()
        return (
            f"Its files give texts up to {longest_text(self.sentence_config):,} tokens. Here they are cut after {most:,}, for "
            "which there is memory; sentence-transformers reads on.",
        )

    def _told_of_padding(self, tokenizer: Any) -> tuple[str, ...]:
        """That padding on the left moves positions in the library, where they are counted from the first place of a row."""
        rows = getattr(self.encoder.config, "max_position_embeddings", self.facts.max_positions)
        counts_places = self.structure.has_position_vectors and rows == self.facts.max_positions
        if getattr(tokenizer, "padding_side", "right") != "left" or not counts_places:
            return ()
        return (
            "Its tokenizer pads on the left. In sentence-transformers the positions of a text then depend on how long the "
            "other texts of its batch are; here, as for a text alone, they count from its first token.",
        )

    def _told_of_queries(self, folder: Path | None) -> tuple[str, ...]:
        """That queries of a model with one vector for a text are filled with tokens in the library."""
        settings = read_encoder_settings(folder)
        if not settings.expands_queries or self.late_interaction is not None or self.not_given:  # which is said of it
            return ()
        return (
            f"Its {settings.file} sets query_expansion, by which sentence-transformers fills each query with further tokens. "
            "This is not applied: queries are read as they are.",
        )

    def _head_settings(self) -> HeadSettings:
        published = self.sentence_config
        return HeadSettings(
            published.truncate_dim,
            published.similarity != "cosine",
            any(published.prompts.values()),
            self.structure.is_causal,
            self.has_no_list and takes_last_token(self.encoder.config),
            self.facts.layers if published.gives_all_layers else None,
        )

    def in_words(self) -> tuple[StepInWords, ...]:
        """How the model turns a text into a vector, each step with the file that says so."""
        head = self.head
        return vector_in_words(
            self.sentence_config,
            self.own_max_length,
            MODE_NAMES[MODES[self.own_pooling]] if head is None else head.pooling_name,
            () if head is None else (*head.steps_before, *head.step_names),
            length_file(self.folder),
            self.has_chosen_prompts,
            CONFIG if self._head_settings().takes_last_token else "",
        )

    def prompt_tokens(self, prompt: str) -> int:
        """How many leading tokens of a text belong to the prompt before it, the special token before both included.

        As sentence-transformers counts them: the prompt's tokens by itself, without the special token after it.
        """
        if not prompt:
            return 0
        tokens = self.tokenization.tokenize(prompt).tokens
        is_special = bool(tokens) and (tokens[-1].special or tokens[-1].id in self.tokenization.special_ids)
        return len(tokens) - is_special

    def own_length(self, role: Role | None) -> int:
        """The length of a text in this role, as published: tokens, special ones included."""
        return min(length_for(self.sentence_config, role) or self.own_max_length, self.tokenization.max_length)

    def need(self, offer: Offer) -> None:
        """Raise ModelError unless the model has what is to be computed: blocks, or vectors of tokens."""
        reason = self.structure.why_not(offer)
        if reason:
            raise ModelError(
                "unsupported",
                f"{self.spec.title} {reason}.",
                "This is computed only for encoders with blocks."
                if offer == "blocks"
                else "This is computed only from the vectors of tokens.",
                "Pick an encoder, such as the included one.",
            )

    def check_pass(self) -> None:
        """Run one short text, which is not counted. Raises ModelError if the vectors are not finite; else as torch does."""
        ids, mask, segments = self.tokenization.arrays([self.tokenization.tokenize("a b")])
        with self.lock, torch.inference_mode():
            last = self.encoder(**self.tensors(ids, mask, segments)).last_hidden_state
            if not bool(torch.isfinite(last).all()):
                raise loading.not_finite(self.spec.title)

    def vector_size(self, poolings: Sequence[str]) -> int:
        """The length of the sentence vectors of these poolings when one array holds them all.

        The model's own vector may be shorter or longer than a hidden state. Among others, the shorter ones are padded with
        zeros, which changes neither a cosine nor a dot product nor a distance.
        """
        hidden = self.facts.hidden_size
        if self.head is None or "own" not in poolings:
            return hidden
        return self.head.size if set(poolings) == {"own"} else max(hidden, self.head.size)

    @contextmanager
    def forward_pass(self) -> Iterator[None]:
        """A turn in which one pass is computed, which is counted."""
        with self.turn():
            self.forward_passes += 1
            counters.forward_passes.add()
            yield

    @contextmanager
    def turn(self) -> Iterator[None]:
        """The lock and inference mode around all that is computed on the device: a pass, or what a head makes of one.

        What is computed in it is best read to the CPU in a function of its own: then the next pass finds its memory free.

        Long work is many passes, and other threads' passes go in between: a thread that takes a lock again as soon as it has
        released it would leave all others waiting until its work is done.

        Raises ModelError where the accelerator has too little memory (kind "memory") or has failed (kind "device").
        """
        self._turns.take()
        try:
            # inference_mode is thread-local, so it is entered here and not once at start.
            with failures_in_words(self.device), torch.inference_mode():
                yield
        finally:
            self.lock.release()
            if self._turns.are_awaited:
                time.sleep(HANDOVER_SECONDS)

    def let_others_in(self) -> None:
        """Called within a pass, between two of its steps: passes of other threads that wait go first.

        The caller may not have hooks in place then that would do anything in a pass of another thread. On a device with memory
        of its own nobody goes first: what this pass holds there would lie beside what another one needs.
        """
        if rules_of(self.device).has_own_memory:
            return
        self.lock.release()
        time.sleep(HANDOVER_SECONDS)
        self._turns.take()

    def tensors(self, ids: Int64, mask: Int64 | None, segments: Int64 | None) -> dict[str, torch.Tensor]:
        """The encoder's arguments on its device, each int64 [sentence, token]; None is left out."""
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": segments}
        given = {name: torch.from_numpy(array) for name, array in inputs.items() if array is not None}
        return dict(zip(given, on_device(tuple(given.values()), self.device), strict=True))

    def eager(self) -> Any:
        """The encoder with eager attention, on the same tensors; created when first needed."""
        with self.lock:
            if self._eager is None:
                self._eager = loading.eager_twin(self.encoder)
            return self._eager

    def masked_lm(self) -> Any:
        """The encoder with its masked-LM head and eager attention; of the included model an adapted one, with the head of this
        project (components.model.guesses.included). Raises ModelError where there is none.
        """
        with self._building_head:
            if self._masked_lm is None:
                if self.folder is None or not self.spec.can_guess:
                    raise loading.no_masked_lm(self.spec.title)
                with self.lock:  # no hooks of a pass are copied
                    twin = loading.eager_twin(self.encoder)
                self._masked_lm = self._with_head(
                    loading.masked_lm(self.folder, twin, self.spec.title)
                    if self.spec.masked_lm
                    else included.masked_lm(twin)
                )
            return self._masked_lm

    def pair_scorer(self) -> Any:
        """The encoder with its scoring head. Raises ModelError if none was published."""
        with self._building_head:
            if self._pair_scorer is None:
                self._pair_scorer = self._with_head(
                    loading.pair_scorer(self.folder, self.encoder, self.structure, self.spec.title)
                )
            return self._pair_scorer

    def next_sentence_head(self) -> torch.nn.Linear:
        """The head for next-sentence prediction. Raises ModelError if none was published."""
        with self._building_head:
            if self._next_sentence is None:
                head = loading.next_sentence_head(self.folder, self.encoder, self.spec.title)
                self._next_sentence = self._with_head(head)
            return self._next_sentence

    def _with_head(self, module: Any) -> Any:
        """A head, or the encoder with one, all of it on the device. Raises ModelError for weights that are not finite."""
        with self.lock, failures_in_words(self.device):
            loading.check_finite(module, self.spec.title)
            return module.to(self.device).eval()


def _told_of_files(folder: Path | None, name: str, tokenizer: Any) -> tuple[str, ...]:
    """What of the encoder's settings is not applied, and how its own tokenizer.json differs from the one that was built."""
    settings = read_encoder_settings(folder, name)
    if folder is None or static_folder(folder) is not None or not hub.has_tokenizer(folder):
        return sentences(settings)
    content = read_tokenizer(folder, name) if (folder / TOKENIZER).is_file() else None
    different = difference(tokenizer, content, settings.is_lowered)
    return tuple(filter(None, (*sentences(settings), different, *told_of_template(folder), *_told_of_damage(folder))))


def _told_of_damage(folder: Path) -> tuple[str, ...]:
    """Files with settings that are no JSON, at which sentence-transformers stops."""
    files = [file for file in (TOP, *ENCODER_FILES) if (folder / file).is_file() and read_json(folder / file) is None]
    if not files or not (folder / MODULES).is_file():
        return ()
    return (f"Its {' and '.join(files)} cannot be read: no JSON in UTF-8 without a mark. Nothing of it is applied.",)


def _told_of_rotation(config: Any) -> tuple[str, ...]:
    """That the rotation of positions changes with the length of a batch, where config.json asks for a kind that does."""
    rope = getattr(config, "rope_parameters", None)
    parts = [rope, *(part for part in rope.values() if isinstance(part, dict))] if isinstance(rope, dict) else []
    kinds = {str(part.get("rope_type")) for part in parts} & {"dynamic", "longrope"}
    return tuple(
        f"Its positions are rotated by “{kind}”, which changes once a text of a batch is longer than its training. "
        "The vectors of the other texts of this batch then change too, here and in sentence-transformers."
        for kind in sorted(kinds)
    )


def _told_of_chance(tokenizer: Any) -> tuple[str, ...]:
    """That a tokenizer was published in the state in which it was trained, and splits by chance."""
    share = getattr(tokenizer.backend_tokenizer.model, "dropout", None)
    if not share:
        return ()
    return (
        f"Its tokenizer.json leaves out joins of pieces by chance (dropout {share:g}), so that in sentence-transformers a text "
        "has other pieces and another vector each time. This is not applied: none is left out.",
    )


def _told_of_lengths_of_rows(folder: Path | None) -> tuple[str, ...]:
    """That peft scales the rows of an adapted matrix, and transformers, which loads it for the library, may not."""
    config = None if folder is None or not adapter.has_adapter(folder) else read_json(folder / adapter.CONFIG)
    if not isinstance(config, dict) or config.get("use_dora") is not True:
        return ()
    return (
        "Its adapter sets the lengths of a matrix's rows (use_dora). They are applied as peft applies them; "
        "sentence-transformers 6.2 takes others, and its vectors differ.",
    )


def _told_of_masks(folder: Path | None, tokenizer: Any) -> tuple[str, ...]:
    """That a tokenizer gives no mask, so that the library's vector of a text depends on the others of its batch."""
    if folder is None or static_folder(folder) is not None or "attention_mask" in tokenizer.model_input_names:
        return ()
    return (
        "Its tokenizer gives no attention mask (model_input_names). In sentence-transformers the padding of a batch then "
        "counts as tokens, and a text's vector depends on the longer texts beside it. This is not applied: the vector is that "
        "of the text alone.",
    )


def _told_of_precision(spec: ModelSpec, folder: Path | None) -> tuple[str, ...]:
    """That sentence-transformers computes in the precision in which weights are stored."""
    if folder is None or spec.source == "embedded" or read_encoder_settings(folder).is_float32:
        return ()
    config = read_json(folder / "config.json")
    said = config.get("dtype", config.get("torch_dtype")) if isinstance(config, dict) else None
    place = static_folder(folder) or folder
    stored = half_precision(next(iter([*sorted(place.glob("model*.safetensors"))]), place / WEIGHTS))
    precision = said if said in ("float16", "bfloat16") else "" if said == "float32" else stored
    if not precision:
        return ()
    return (
        f"Its weights are published in {precision}, in which sentence-transformers computes unless it is told otherwise. Here "
        "they are used in float32: the numbers are more exact, and differ from the library's in the third digit or so.",
    )


def _told_of_list(spec: ModelSpec, folder: Path | None) -> tuple[str, ...]:
    """That a cached model may have been published as more than the encoder that is here."""
    if spec.source != "hub" or spec.masked_lm or folder is None or not hub.may_lack_list(spec.hub_id, folder):
        return ()
    return (
        "Only its encoder is on this machine, and the hub could not be asked for the rest (modules.json): whether it was "
        "published with another pooling, prompts or length is not known. The mean of all tokens' vectors is used.",
    )


def numpy_of(tensor: torch.Tensor) -> Float32:
    """A tensor as a float32 array on the CPU that owns its memory."""
    return np.array(tensor.detach().to("cpu", torch.float32).numpy(), copy=True)


def stacked(tensors: Sequence[torch.Tensor]) -> Float32:
    """Tensors of one shape as one float32 array with a new first axis, without a second copy of them all."""
    result = np.empty((len(tensors), *tensors[0].shape), dtype=np.float32)
    for index, tensor in enumerate(tensors):
        result[index] = tensor.detach().to("cpu", torch.float32).numpy()
    return result
