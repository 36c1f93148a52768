"""A loaded encoder and its forward pass: the one narrow contract between models and everything else.

It combines the model itself (components.model.loaded), its bulk path (components.model.embedding) and the store of
traces. One lock covers every forward pass, because hooks placed on a shared model fire for everybody.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial, wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
import torch

from components.arrays import Float32, Float64, Int64, read_only
from components.errors import InputError, UserError
from components.jobs import IsStopped, ReportProgress
from components.model import device, inside, loading
from components.model.architecture.parameters import parameter_parts
from components.model.architecture.record import embedding_parts
from components.model.architecture.shapes import shapes_of
from components.model.architecture.structure import Structure
from components.model.catalog import EMBEDDED_KEY, ModelFacts, ModelSpec, parse_model
from components.model.contributions.block_norms import (
    AppliedNorm,
    BlockNorms,
    VectorNorm,
    applied_norms,
    block_norms,
    vector_norm,
)
from components.model.contributions.gradients import gradient_times_input
from components.model.contributions.path_products import available_references, path_products, reference_vectors
from components.model.elsewhere import Elsewhere
from components.model.embedding.embedder import Embedder
from components.model.embedding.multi_vectors import multi_vector_pieces, multi_vectors
from components.model.embedding.options import EmbedOptions
from components.model.embedding.pair_scores import label_names, pair_logits, score_pairs
from components.model.embedding.pair_vectors import embed_pairs
from components.model.embedding.sparse_vectors import expanded_pieces, sparse_matrix, sparse_vectors
from components.model.embedding.token_vectors import own_token_vectors, token_vectors
from components.model.files import sources
from components.model.files.encoder.adapter import read_adapter
from components.model.files.other_vectors import LateInteraction, Splade
from components.model.files.sentence_config import prompt_for
from components.model.guesses import passes
from components.model.guesses.masks import with_masks
from components.model.guesses.record import LayerGuesses, Surprises, TextGuesses
from components.model.inside import InsideBlocks, OutputProjection
from components.model.interventions import only_left as causal_mask
from components.model.interventions.activations import activations
from components.model.interventions.patched import patched_logits, patched_vectors
from components.model.loaded import LoadedModel, numpy_of, stacked
from components.model.one_block import feed_forward as inner_dimensions
from components.model.one_block.feed_forward import FeedForward
from components.model.one_block.queries_and_keys import QueriesAndKeys, queries_and_keys
from components.model.store import TraceStore
from components.model.tokenization import Truncation, check_texts
from components.model.trace import EmbeddingParts, MaskLogits, Pooling, TokenizedSentence, Trace, TraceOptions
from components.sizes import in_words

log = logging.getLogger(__name__)
HIDDEN_STATES_ALONE = TraceOptions()
KEPT_BYTES = 1 << 20  # of the guesses at the masks of many texts that are kept
_Subject = TypeVar("_Subject")
_Result = TypeVar("_Result")
_Arguments = ParamSpec("_Arguments")


class Backend:
    """A loaded model with its traces and its bulk path. Safe to share between threads; results are read-only.

    `spec` is the catalog entry with its facts filled in, `revision` identifies the weights, and
    `forward_passes` counts the passes run so far (moving a slider must not change it). `poolings` are those it offers,
    `own_pooling` the one it was published with, `not_applied` sentences on what of the model is not used here, and
    `is_cross_encoder` says that it was trained to score texts, not to make vectors.
    """

    precision = "float32"

    def __init__(
        self,
        spec: ModelSpec,
        revision: str,
        model: Any,
        tokenizer: Any,
        store: TraceStore | None = None,
        folder: Path | None = None,
        prompt: str | None = None,
    ) -> None:
        # A part and not a base class: models that are dropped could not be freed if the embedder pointed back to us,
        # because objects alive at `gc.freeze()` are never searched for circles.
        self.loaded = loaded = LoadedModel(spec, revision, model, tokenizer, folder, prompt)
        self.spec = loaded.spec
        self.facts: ModelFacts = loaded.facts
        self.structure: Structure = loaded.structure  # what the architecture has: pages ask it, never the model's name
        self.revision = loaded.revision
        self.encoder = loaded.encoder
        self.device: torch.device = loaded.device
        self.tokenization = loaded.tokenization
        self.sentence_config = loaded.sentence_config
        self.poolings: tuple[Pooling, ...] = loaded.poolings
        self.own_pooling: Pooling = loaded.own_pooling
        self.not_applied: tuple[str, ...] = loaded.not_applied
        self.is_cross_encoder: bool = loaded.is_cross_encoder
        self.own_max_length = loaded.own_max_length
        self.vector_size = loaded.vector_size
        self.text_layers = loaded.text_layers  # the layers whose text vectors it offers
        self.nbytes: int = loading.bytes_of(model, self.device)  # on the device
        self.weight_bytes: int = loading.weight_bytes(model)
        self.has_pooler = loaded.modules.pool is not None
        self.parameter_parts = tuple(parameter_parts(model))
        self.shapes = shapes_of(model)
        self.store = TraceStore() if store is None else store
        self.embedder = Embedder(loaded)
        # The bulk path; what each takes and gives is said there.
        self.embed_options = self.embedder.options
        self.embed_into = self.embedder.stream
        self.embed_with_report = self.embedder.collect
        self.embed_weighted = _on_device(Embedder.embed_weighted, self.embedder, self.device)
        self.token_vectors = _on_device(token_vectors, self.embedder, self.device)
        self.own_token_vectors = _on_device(own_token_vectors, self.embedder, self.device)
        self.embed_pairs = _on_device(embed_pairs, self.embedder, self.device)
        self.score_pairs = _on_device(score_pairs, self.embedder, self.device)
        self.pair_logits = _on_device(pair_logits, self.embedder, self.device)
        self.pair_labels = partial(label_names, self.embedder)
        # Only of models that were published for them: `splade`, or `late_interaction`, is not None.
        self.splade: Splade | None = loaded.splade
        self.late_interaction: LateInteraction | None = loaded.late_interaction
        self.sparse_matrix = _on_device(sparse_matrix, self.embedder, self.device)
        self.sparse_vectors = _on_device(sparse_vectors, self.embedder, self.device)
        self.expanded_pieces = _on_device(expanded_pieces, self.embedder, self.device)
        self.multi_vectors = _on_device(multi_vectors, self.embedder, self.device)
        # What a vector is made of (components.model.contributions).
        self.references = available_references(loaded)
        self.reference_vectors = _on_device(reference_vectors, loaded, self.device)
        self.path_products = _on_device(path_products, loaded, self.device)
        # Passes in which activations are replaced.
        self.activations = _on_device(activations, loaded, self.device)
        self.patched_vectors = _on_device(patched_vectors, loaded, self.device)
        self.patched_logits = _on_device(patched_logits, loaded, self.device)
        self.gradient_times_input = _on_device(gradient_times_input, loaded, self.device)
        self.multi_vector_pieces = _on_device(multi_vector_pieces, self.embedder, self.device)
        self._projection: OutputProjection | None = None
        self._block_norms: BlockNorms | None = None
        self._not_left: str | None = (
            None  # why its passes cannot look only left, empty if they can; None: not tried yet
        )

    @property
    def head_size(self) -> int:
        """How many numbers a head's query, key or value has, in a model with blocks."""
        return int(self.loaded.modules.blocks[0].attention_dense.in_features) // self.facts.heads

    @property
    def forward_passes(self) -> int:
        """Passes run so far, of traces and bulk vectors alike."""
        return self.loaded.forward_passes

    @classmethod
    def load(
        cls,
        model: str | ModelSpec = EMBEDDED_KEY,
        store: TraceStore | None = None,
        device_name: str | None = None,
        progress: ReportProgress = lambda done, total: None,
        is_stopped: IsStopped = lambda: False,
        prompt: str | None = None,
        make_room: Callable[[torch.device, int], None] = lambda target, nbytes: None,
    ) -> Backend:
        """Load a model by catalog key, hub id or folder. Raises ModelError or InputError.

        `prompt` is put before every text, in place of what the model's files say; None leaves these as they are.
        `make_room(device, nbytes)` is called before the weights go to the device, with the bytes they take there.
        """
        spec = parse_model(model) if isinstance(model, str) else model
        chosen_device = device.with_whole_sums(device.choose_device(device_name))
        files = sources.find_files(spec, progress, is_stopped)
        encoder, tokenizer = loading.from_pretrained(files.folder, spec.title)
        if files.adapter is not None:
            read_adapter(files.adapter, spec.title).merge(encoder, spec.title)
        folder = files.adapter or files.folder  # of the files that say how the model is used
        try:
            make_room(chosen_device, loading.bytes_of(encoder, chosen_device))
            with device.turns_at(chosen_device).lock:
                encoder.to(chosen_device)
            backend = cls(spec, files.revision, encoder, tokenizer, store, folder, prompt)
            backend.loaded.check_pass()
        except UserError:
            raise
        except Exception as problem:  # sizes that contradict each other: positions, segments, a special token, ...
            log.warning("%s could not be run", spec.title, exc_info=problem)
            size = in_words(loading.bytes_of(encoder, chosen_device), binary=True)
            failed = device.failure(problem, chosen_device, f"for {spec.title}, which takes {size}")
            raise failed or loading.unusable(spec.title, problem) from problem
        return backend

    def trace(
        self,
        texts: Sequence[str],
        pairs: Sequence[str | None] | None = None,
        attentions: bool = False,
        max_length: int | None = None,
        mask_logits: bool = False,
        prompt: str | None = None,
    ) -> Trace:
        """One forward pass over a set of sentences (or pairs), kept in the store for everybody.

        `prompt` as in `tokenize`.

        Raises InputError for what cannot be shown: no text, more than 64 sentences or 20,000 characters,
        invalid characters, a length outside the model's range, a result larger than the whole store.
        """
        check_texts(texts, pairs)
        options = TraceOptions(attentions, max_length, mask_logits, prompt)
        key = (self.spec.key, self.revision, str(self.device), tuple(texts), tuple(pairs or ()), options)
        return self.store.get(
            key, lambda: self._run_elsewhere(texts, pairs, options) or self.run(texts, pairs, options)
        )

    def guesses(
        self,
        text: str,
        pair: str | None = None,
        hidden: Sequence[int] = (),
        max_length: int | None = None,
        only_left: bool = False,
        k: int = 10,
        *,
        positions: Sequence[int] | None = None,
        layers: Sequence[int] | None = None,
        asked: Sequence[int] = (),
    ) -> LayerGuesses:
        """What the masked-LM head guesses at every token and layer, in one pass in which the `hidden` tokens are masks.

        Masks in the text are understood in the spellings of `with_masks`. Several masks are guessed independently of each
        other. `positions` and `layers` are all by default, `k` the number of guesses, `asked` ids whose place is wanted
        besides. Kept in the store. `only_left` as in `inside`.

        Raises ModelError for a model without a masked-LM head, or whose code takes no causal mask, InputError as `trace` does
        and for a hidden token that is special, IndexError for a position or layer that does not exist, ValueError for k < 1.
        """
        sentence, wanted = self._wanted(text, pair, max_length, only_left, k, layers, asked)
        read_at = tuple(range(len(sentence))) if positions is None else tuple(positions)
        places = (tuple(sorted(set(hidden))), read_at)
        self._refuse_guesses(wanted, read_at, sentence)
        return self.store.get(
            self._guess_key("guesses", sentence, places, wanted),
            lambda: passes.layer_guesses(self.loaded, sentence, *places, wanted),
        )

    def guesses_in_turn(
        self,
        text: str,
        pair: str | None = None,
        max_length: int | None = None,
        only_left: bool = False,
        k: int = 10,
        *,
        positions: Sequence[int] | None = None,
        layers: Sequence[int] | None = None,
        progress: ReportProgress = lambda done, total: None,
        is_stopped: IsStopped = lambda: False,
    ) -> LayerGuesses:
        """The same where each of the `positions`, by default every token but special ones, is hidden alone.

        A text of n tokens is read n times, in batches. `progress(done, total)` counts positions. Raises as `guesses`, and
        Stopped once `is_stopped()` is true.
        """
        sentence, wanted = self._wanted(text, pair, max_length, only_left, k, layers, ())
        read_at = passes.text_positions(sentence) if positions is None else tuple(positions)
        self._refuse_guesses(wanted, read_at, sentence)
        return self.store.get(
            self._guess_key("guesses in turn", sentence, read_at, wanted),
            lambda: passes.guesses_in_turn(self.loaded, sentence, read_at, wanted, progress, is_stopped),
        )

    def guesses_at_masks(
        self,
        texts: Sequence[str],
        k: int = 10,
        asked: Sequence[int] = (),
        max_length: int | None = None,
        progress: ReportProgress = lambda done, total: None,
        is_stopped: IsStopped = lambda: False,
    ) -> tuple[LayerGuesses, ...]:
        """What is guessed at the masks of many texts, at the last layer alone.

        Any number of texts; the guesses are kept in the store as long as they take at most KEPT_BYTES. `progress(done, total)`
        counts texts. Raises as `guesses`, and Stopped.
        """
        self.loaded.masked_lm()  # without a head nothing else is worth saying
        wanted = passes.Wanted((self.facts.layers,), k, tuple(asked))
        sentences = [self.tokenize([with_masks(text, self.tokenization)], max_length=max_length)[0] for text in texts]
        masks = sum(token.id == self.tokenization.mask_id for sentence in sentences for token in sentence.tokens)

        def compute() -> TextGuesses:
            return TextGuesses(passes.guesses_at_masks(self.loaded, sentences, wanted, progress, is_stopped))

        if wanted.size_in_bytes(masks) > KEPT_BYTES:
            return compute().of_texts
        read = tuple((sentence.text, tuple(token.id for token in sentence.tokens)) for sentence in sentences)
        key = ("guesses at masks", self.spec.key, self.revision, str(self.device), read, wanted)
        return self.store.get(key, compute).of_texts

    def surprises(
        self,
        text: str,
        pair: str | None = None,
        max_length: int | None = None,
        only_left: bool = False,
        progress: ReportProgress = lambda done, total: None,
        is_stopped: IsStopped = lambda: False,
    ) -> Surprises:
        """How surprised the model is by each token when it is hidden alone; pseudo-perplexity (Salazar et al. 2020).

        Raises as `guesses_in_turn`, on which it builds.
        """
        last = self.facts.layers
        return passes.surprises_of(
            self.guesses_in_turn(
                text, pair, max_length, only_left, layers=(last,), progress=progress, is_stopped=is_stopped
            )
        )

    def surprises_take_long(self, tokens: int) -> bool:
        """Whether `surprises` of one input of so many tokens should run in the background: it is read once for each token."""
        return tokens > passes.MANY_TOKENS

    def _wanted(
        self,
        text: str,
        pair: str | None,
        max_length: int | None,
        only_left: bool,
        k: int,
        layers: Sequence[int] | None,
        asked: Sequence[int],
    ) -> tuple[TokenizedSentence, passes.Wanted]:
        """The tokens of an input whose tokens are guessed, and what is read of it."""
        if k < 1:
            raise ValueError(f"k is {k}; expected 1 or more")
        self.loaded.masked_lm()  # without a head nothing else is worth saying
        if only_left and self.why_not_only_left():
            raise causal_mask.not_taken(self.spec.title)
        written = [None if each is None else with_masks(each, self.tokenization) for each in (text, pair)]
        (sentence,) = self.tokenize([written[0] or ""], [written[1]], max_length)
        chosen = range(self.facts.layers + 1) if layers is None else layers
        return sentence, passes.Wanted(tuple(chosen), min(k, self.facts.vocabulary_size), tuple(asked), only_left)

    def _guess_key(self, kind: str, sentence: TokenizedSentence, places: Any, wanted: passes.Wanted) -> Any:
        read = (sentence.text, sentence.pair, tuple(token.id for token in sentence.tokens))
        return (kind, self.spec.key, self.revision, str(self.device), read, places, wanted)

    def compute_elsewhere(self, elsewhere: Elsewhere) -> None:
        """From now on let another process compute traces and the vectors of many texts, where it can."""
        self.embedder.elsewhere = elsewhere

    def _run_elsewhere(
        self, texts: Sequence[str], pairs: Sequence[str | None] | None, options: TraceOptions
    ) -> Trace | None:
        if self.embedder.elsewhere is None:
            return None
        trace = self.embedder.elsewhere.trace(texts, pairs, options)
        return None if trace is None else replace(trace, head=self.loaded.head)

    def inside(
        self,
        text: str,
        pair: str | None = None,
        max_length: int | None = None,
        attentions: bool = True,
        score_terms: bool = False,
        only_left: bool = False,
    ) -> InsideBlocks:
        """What happens inside each block for one sentence or pair: one pass, kept in the store like a trace.

        Without `attentions` the pass takes the fast path. `score_terms`: also the terms for positions that are added to the
        scores, where the model has some; each is as large as the attentions. `only_left`: a token attends only to itself and
        to those before it, as in a decoder; the model was not trained so. Raises InputError under the same conditions as
        `trace`, and ModelError for a model whose code takes no such mask.
        """
        check_texts([text], [pair])
        terms = score_terms and self.structure.adds_to_scores
        key = ("inside", self.spec.key, self.revision, str(self.device), text, pair, max_length, attentions, terms)
        return self.store.get(
            (*key, only_left), lambda: self._run_inside(text, pair, max_length, attentions, terms, only_left)
        )

    def feed_forward(
        self,
        text: str,
        pair: str | None = None,
        max_length: int | None = None,
        block: int = 0,
        progress: ReportProgress = lambda done, total: None,
        is_stopped: IsStopped = lambda: False,
        only_left: bool = False,
    ) -> FeedForward:
        """The inner dimensions of feed-forward parts for one sentence or pair: one pass, kept in the store like a trace.

        They are those of all blocks; of a long input, only those of `block` (`one_block.feed_forward`). `only_left` as in
        `inside`. Raises InputError under the same conditions as `trace`, ModelError for a model whose blocks are not shown or
        whose code takes no such mask, IndexError for a block that does not exist, and Stopped once `is_stopped()` is
        true; `progress(done, total)` counts blocks.
        """
        self.loaded.need("blocks")
        (sentence,) = self.tokenize([text], [pair], max_length)
        kept = inner_dimensions.kept_blocks(self.loaded, len(sentence), block)
        size = inner_dimensions.size_in_bytes(self.loaded, len(sentence), len(kept))
        self._refuse_beyond_the_store(size, 1, len(sentence))
        key = ("feed forward", self.spec.key, self.revision, str(self.device), text, pair, max_length, kept, only_left)
        if only_left and self.why_not_only_left():  # no attention is computed that could be looked at
            raise causal_mask.not_taken(self.spec.title)
        return self.store.get(
            key, lambda: inner_dimensions.feed_forward(self.loaded, sentence, kept, progress, is_stopped, only_left)
        )

    def feed_forward_takes_long(self, tokens: int) -> bool:
        """Whether one input of so many tokens is a long one for `feed_forward`: only a block at a time is kept of it."""
        return len(inner_dimensions.kept_blocks(self.loaded, tokens, 0)) < self.facts.layers

    def queries_and_keys(
        self,
        text: str,
        pair: str | None,
        block: int,
        max_length: int | None = None,
        progress: ReportProgress = lambda done, total: None,
        is_stopped: IsStopped = lambda: False,
    ) -> QueriesAndKeys:
        """Queries and keys of one block, for inputs whose attentions would not fit; a pass through the blocks up to it.

        Not in the store, whose limit does not count here: the job that computes them keeps them. Raises InputError for texts
        that `trace` refuses, and as `one_block.queries_and_keys` does.
        """
        check_texts([text], [pair])
        (sentence,) = self.tokenize([text], [pair], max_length)
        return queries_and_keys(self.loaded, sentence, block, progress, is_stopped)

    def rotation_speeds(self, block: int) -> Float64:
        """By how many radians a block turns each pair of dimensions of queries and keys from one position to the next, [pair].

        Dimension d and d + head_dim / 2 are a pair. Raises ModelError for a model whose blocks are not shown, ValueError for
        one whose positions do not enter by rotation, IndexError for a block that does not exist.
        """
        self.loaded.need("blocks")
        rotations = self.loaded.modules.rotations
        if rotations is None:
            raise ValueError(f"{self.structure.title} does not rotate queries and keys")
        with self.loaded.turn():
            cosines, sines = (numpy_of(part)[1].astype(np.float64) for part in rotations(2)[block])
        return read_only(np.arctan2(sines, cosines)[: len(cosines) // 2])

    def attention_bytes(self, tokens: int) -> int:
        """The size of the attentions of all blocks and heads for one input of so many tokens."""
        return 4 * tokens * tokens * self.facts.heads * self.facts.layers

    def bytes_with_attentions(self, tokens: int) -> int:
        """The size of a trace of one input of so many tokens, with its attentions."""
        return self._trace_bytes((1, tokens), TraceOptions(attentions=True))

    def fits(self, tokens: int) -> bool:
        """Whether a trace of one input of so many tokens, with its attentions, fits into the store."""
        return self.bytes_with_attentions(tokens) <= self.store.limit

    def tokenize(
        self,
        texts: Sequence[str],
        pairs: Sequence[str | None] | None = None,
        max_length: int | None = None,
        truncation: Truncation = "longest_first",
        prompt: str | None = None,
    ) -> tuple[TokenizedSentence, ...]:
        """The tokens of a set of sentences, without a forward pass. Raises InputError as `Tokenization.tokenize` does.

        `prompt` is put before each text that is not read with another one; None is what the model's files put before every
        text (`default_prompt_name`), mostly nothing. Its tokens are special ones, which no character of the text stands for.
        """
        check_texts(texts, pairs)
        put = prompt_for(self.sentence_config, None) if prompt is None else prompt
        seconds = pairs if pairs is not None else [None] * len(texts)
        sentences = tuple(
            self._behind(put, text, max_length)
            if put and pair is None
            else self.tokenization.tokenize(text, pair, max_length, truncation)
            for text, pair in zip(texts, seconds, strict=True)
        )
        for number, sentence in enumerate(sentences, start=1):
            if not len(sentence):  # possible where no special tokens are added
                raise InputError(
                    f"Sentence {number} has no token in {self.spec.title}.",
                    "This model adds no special tokens, and its tokenizer drops every character of the sentence.",
                    "Type a word, or remove the line.",
                )
        return sentences

    def _behind(self, prompt: str, text: str, max_length: int | None) -> TokenizedSentence:
        """The tokens of a text behind a prompt, with the spans of the text alone."""
        whole, shift = self.tokenization.tokenize(prompt + text, None, max_length), len(prompt)
        is_own = [not token.special and token.end > shift for token in whole.tokens]
        first = min((token.word or 0 for token, own in zip(whole.tokens, is_own, strict=True) if own), default=0)
        tokens = tuple(
            replace(
                token,
                word=None if token.word is None else token.word - first,
                start=max(0, token.start - shift),
                end=token.end - shift,
            )
            if own
            else replace(token, special=True, word=None, start=0, end=0)
            for token, own in zip(whole.tokens, is_own, strict=True)
        )
        dropped = tuple(
            replace(cut, text=cut.text[max(0, shift - cut.start) :], start=max(0, cut.start - shift))
            for cut in whole.dropped
        )
        return TokenizedSentence(text, None, tokens, dropped, prompt, self.loaded.prompt_tokens(prompt))

    def next_sentence_probabilities(self, texts: Sequence[str], followers: Sequence[str]) -> Float32:
        """The probability that each of the `followers` follows the text of the same number, float32 [pair].

        It is that of BERT's next-sentence prediction (Devlin et al. 2019): the softmax of two logits, from the pooler's
        output. Raises ModelError for a model that was published without this head, InputError as `trace` does.
        """
        head = self.loaded.next_sentence_head()
        arrays = self.tokenization.arrays(self.tokenize(texts, followers))
        tensors = self.loaded.tensors(*arrays)
        with self.loaded.forward_pass():
            return read_only(numpy_of(head(self.encoder(**tensors).pooler_output).softmax(dim=-1)[:, 0]))

    def embed(
        self,
        texts: Sequence[str],
        layers: Sequence[int] | None = None,
        poolings: Sequence[str] | None = None,
        *,
        options: EmbedOptions | None = None,
        token_budget: int | None = None,
        progress: ReportProgress = lambda done, total: None,
        is_stopped: IsStopped = lambda: False,
    ) -> Float32:
        """Sentence vectors in bulk, float32 [layer, pooling, sentence, dim], not normalised, not kept in the store.

        With the pooling "own" (the model's own vector, if that is more than a plain pooling) dim is its size; among others
        it is the larger of hidden size and that, and shorter vectors end in zeros, which changes no similarity.

        `options` (see Embedder.options) replaces `layers` and `poolings`. `progress(done, total)` counts
        sentences. Raises InputError, and Stopped once `is_stopped()` is true.
        """
        chosen = options or self.embed_options(layers, poolings)
        return self.embed_with_report(texts, chosen, token_budget, progress, is_stopped)[0]

    def word_embeddings(self) -> Float32:
        """The model's static vectors, one for each piece of the vocabulary, float32 [piece, dim]; read-only."""
        weights: Float32 = self.encoder.get_input_embeddings().weight.detach().to("cpu", torch.float32).numpy()
        return read_only(weights.view())

    def block_norms(self) -> BlockNorms:
        """The norms that follow the parts of every block, none where norms come first, and the final one; shared, read-only."""
        if self._block_norms is None:
            self._block_norms = block_norms(self.loaded.modules)
        return self._block_norms

    def why_not_only_left(self) -> str:
        """Why its passes cannot look only left, as a sentence; empty if they can. Tried once, by two passes."""
        if self._not_left is None:
            self._not_left = causal_mask.reason_against(self.loaded)
        return self._not_left

    @property
    def first_position(self) -> int:
        """The row of the table of positions that belongs to an input's first token; 0 without such a table."""
        rows = getattr(self.encoder.config, "max_position_embeddings", self.facts.max_positions)
        return int(rows) - self.facts.max_positions if self.structure.has_position_vectors else 0

    def layer_zero_norm(self) -> VectorNorm | None:
        """The norm that makes layer 0 of the sum of its parts; None where there is none, or more follows."""
        if self.structure.layer_zero_steps != ("norm",):
            return None
        return vector_norm(self.loaded.modules.layer_zero_steps[0], self.structure.norm == "LayerNorm")

    def applied_norms(self, block: int) -> tuple[AppliedNorm, ...]:
        """All norms of a block, in the order in which they are applied. Raises IndexError for a block that does not exist."""
        return applied_norms(self.loaded.modules, block)

    def run(
        self,
        texts: Sequence[str],
        pairs: Sequence[str | None] | None = None,
        options: TraceOptions = HIDDEN_STATES_ALONE,
    ) -> Trace:
        """The forward pass itself, neither searched for nor kept in the store."""
        self.loaded.need("blocks" if options.attentions else "tokens")
        sentences = self.tokenize(texts, pairs, options.max_length, prompt=options.prompt)
        ids, mask, segments = self.tokenization.arrays(sentences)
        self._refuse_beyond_the_store(self._trace_bytes(ids.shape, options), *ids.shape)
        tensors = self.loaded.tensors(ids, mask, segments)
        module = self._module(options)
        with self.loaded.forward_pass():
            arrays = self._arrays(module, tensors, options, ids)
        return Trace(
            model=self.spec.key,
            revision=self.revision,
            sentences=sentences,
            input_ids=ids,
            attention_mask=mask,
            token_type_ids=segments,
            head=self.loaded.head,
            **arrays,
        )

    def _arrays(
        self, module: Any, tensors: dict[str, torch.Tensor], options: TraceOptions, ids: Int64
    ) -> dict[str, Any]:
        """What a trace holds of one pass, by name. Raises ModelError for vectors that are not finite."""
        output = module(**tensors, output_hidden_states=True, output_attentions=options.attentions)
        hidden = stacked(output.hidden_states)
        # A state that is not finite stays so up to the last layer: each block adds to what it gets.
        if not np.isfinite(hidden[-1]).all():
            raise loading.not_finite(self.spec.title)
        parts = embedding_parts(
            self.loaded.modules, self.encoder.config, tensors["input_ids"], tensors.get("token_type_ids")
        )
        return {
            "hidden_states": hidden,
            "attentions": stacked(output.attentions) if options.attentions else None,
            "embedding_parts": EmbeddingParts(**{part: numpy_of(vectors) for part, vectors in parts.items()}),
            "pooler_output": self._pool(output),
            "mask_logits": self._mask_logits(output, ids) if options.mask_logits else None,
        }

    def _run_inside(
        self, text: str, pair: str | None, max_length: int | None, attentions: bool, terms: bool, only_left: bool
    ) -> InsideBlocks:
        self.loaded.need("blocks")
        sentences = self.tokenize([text], [pair], max_length)
        tokens = len(sentences[0])
        kept_terms = inside.terms_of(self.structure) if terms else 0
        size = inside.size_in_bytes(self.facts, tokens, attentions, kept_terms, self.head_size)
        self._refuse_beyond_the_store(size, 1, tokens)
        tensors = self.loaded.tensors(*self.tokenization.arrays(sentences))
        with_weights = attentions or only_left  # the weights show whether the mask was taken
        module = self._module(TraceOptions(attentions=with_weights))
        with self.loaded.forward_pass():
            if self._projection is None:
                self._projection = inside.output_projection(self.loaded.modules, self.facts.heads)
            arrays: Any = inside.run_with_hooks(module, tensors, with_weights, terms, only_left)
        if only_left:
            causal_mask.check_attentions(arrays["attentions"], self.spec.title)
        if not attentions:
            arrays["attentions"] = None
        return InsideBlocks(sentence=sentences[0], projection=self._projection, only_left=only_left, **arrays)

    def _trace_bytes(self, shape: tuple[int, ...], options: TraceOptions) -> int:
        sentences, tokens = shape
        facts = self.facts
        parts = len(self.structure.layer_zero_parts)
        size = 4 * sentences * tokens * facts.hidden_size * (facts.layers + 1 + parts)
        size += 4 * sentences * facts.hidden_size + 40 * sentences * tokens  # pooler; ids and masks
        if options.attentions:
            size += sentences * self.attention_bytes(tokens)
        if options.mask_logits:  # computed for every token, though only those of the masks are kept
            size += 4 * sentences * tokens * facts.vocabulary_size
        return size

    def _refuse_beyond_the_store(self, size: int, sentences: int, tokens: int) -> None:
        if size > self.store.limit:
            raise InputError(
                f"{sentences} sentences of up to {tokens} tokens take {in_words(size, binary=True)} in this model.",
                f"This server keeps at most {in_words(self.store.limit, binary=True)}.",
                "Shorten the longest sentence, lower the maximum length, or remove some sentences.",
            )

    def _refuse_guesses(self, wanted: passes.Wanted, positions: Sequence[int], sentence: TokenizedSentence) -> None:
        """Beyond the store, with what one block of a pass needs for its scores of all pairs of tokens, in eager attention."""
        tokens = len(sentence)
        within = passes.ATTENTIONS * self.attention_bytes(tokens) // max(1, self.facts.layers)
        self._refuse_beyond_the_store(wanted.size_in_bytes(len(positions)) + within, 1, tokens)

    def _module(self, options: TraceOptions) -> Any:
        """The module tree that computes what the options ask for."""
        if options.mask_logits:
            if not self.spec.masked_lm:  # the included model's guesses are those of an adapted encoder
                raise loading.no_masked_lm(self.spec.title)
            return self.loaded.masked_lm()
        return self.loaded.eager() if options.attentions else self.encoder

    def _pool(self, output: Any) -> Float32 | None:
        if self.loaded.modules.pool is None:
            return None
        pooled = getattr(output, "pooler_output", None)
        if pooled is None:  # the masked-LM model leaves the pooler out
            pooled = self.loaded.modules.pool(output.hidden_states[-1])
        return numpy_of(pooled)

    def _mask_logits(self, output: Any, ids: Int64) -> MaskLogits:
        positions = np.argwhere(ids == self.tokenization.mask_id)  # [mask, (sentence, token)]
        rows, columns = device.on_device([torch.from_numpy(positions.T)], self.device)[0]
        return MaskLogits(
            tuple((int(sentence), int(token)) for sentence, token in positions), numpy_of(output.logits[rows, columns])
        )


def _on_device(
    function: Callable[Concatenate[_Subject, _Arguments], _Result], subject: _Subject, target: torch.device
) -> Callable[_Arguments, _Result]:
    """A function with its first argument given; a failure of the device, in whatever it does, is said in words."""

    @wraps(function)
    def call(*given: _Arguments.args, **named: _Arguments.kwargs) -> _Result:
        with device.failures_in_words(target):
            return function(subject, *given, **named)

    return call
