"""A loaded encoder and its forward pass: the one narrow contract between models and everything else.

Two module trees share one set of weights. The fast one uses PyTorch's fused attention, which gives no
attention weights; the other (a copy whose parameters are the very same tensors) uses eager attention and
runs only when attentions are asked for. Switching one shared model back and forth would be a race between
sessions. One lock covers every forward pass, because hooks placed on a shared model fire for everybody.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from components.arrays import Float32, Int64, read_only
from components.errors import InputError
from components.model import architecture, device, inside, loading
from components.model.catalog import EMBEDDED_KEY, ModelFacts, ModelSpec, parse_model, with_facts
from components.model.embedding.embedder import Embedder, EmbedOptions, EmbedReport, Precision, Sink
from components.model.embedding.token_vectors import TokenVectors, token_vectors
from components.model.files import sources
from components.model.files.hub import Progress
from components.model.files.sentence_config import Role, SentenceConfig, read_sentence_config
from components.model.inside import InsideBlocks, OutputProjection
from components.model.store import TraceStore
from components.model.tokenization import Tokenization, check_texts
from components.model.trace import EmbeddingParts, MaskLogits, Pooling, TokenizedSentence, Trace


@dataclass(frozen=True)
class TraceOptions:
    """What a trace is asked for besides hidden states; part of its key in the store."""

    attentions: bool = False
    max_length: int | None = None  # tokens; None: the model's maximum
    mask_logits: bool = False


class Backend:
    """A model ready to be asked. Safe to share between threads; results are read-only.

    `spec` is the catalog entry with its facts filled in, `revision` identifies the weights, and
    `forward_passes` counts the passes run so far (moving a slider must not change it).
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
    ) -> None:
        self.encoder = model.eval()
        self._eager: Any = None
        self._masked_lm: Any = None
        self._projection: OutputProjection | None = None
        self._folder = folder
        self.lock = threading.RLock()  # held around hook, forward, remove
        self.facts: ModelFacts = architecture.facts_of(model.config, model)
        self.spec = with_facts(spec, self.facts, loading.publishes_masked_lm(model.config))
        self.revision = revision
        self.device: torch.device = next(model.parameters()).device
        self.store = TraceStore() if store is None else store
        self.tokenization = Tokenization(tokenizer, self.facts.max_positions, self.facts.segments > 1)
        self.has_pooler = getattr(model, "pooler", None) is not None
        self.parameter_parts = tuple(architecture.parameter_parts(model))
        self.sentence_config: SentenceConfig = read_sentence_config(folder)
        self.own_pooling: Pooling = self.sentence_config.pooling or "mean"
        self.own_max_length = min(
            self.sentence_config.max_length or self.tokenization.max_length, self.tokenization.max_length
        )
        self.forward_passes = 0
        self.embedder = Embedder(self)

    @classmethod
    def load(
        cls,
        model: str | ModelSpec = EMBEDDED_KEY,
        store: TraceStore | None = None,
        device_name: str | None = None,
        progress: Progress | None = None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Backend:
        """Load a model by catalog key, hub id or folder. Raises ModelError or InputError."""
        spec = parse_model(model) if isinstance(model, str) else model
        target = device.choose_device(device_name)
        files = sources.find_files(spec, progress, cancelled)
        encoder, tokenizer = loading.from_pretrained(files.folder, spec.title)
        return cls(spec, files.revision, encoder.to(target), tokenizer, store, files.folder)

    def trace(
        self,
        texts: Sequence[str],
        pairs: Sequence[str | None] | None = None,
        attentions: bool = False,
        max_length: int | None = None,
        mask_logits: bool = False,
    ) -> Trace:
        """One forward pass over a set of sentences (or pairs), kept in the store for everybody.

        Raises InputError for what cannot be shown: no text, more than 64 sentences or 20,000 characters,
        half characters, a length outside the model's, a result larger than the whole store.
        """
        check_texts(texts, pairs)
        options = TraceOptions(attentions, max_length, mask_logits)
        key = (self.spec.key, self.revision, str(self.device), tuple(texts), tuple(pairs or ()), options)
        return self.store.get(key, lambda: self.run(texts, pairs, options))

    def inside(
        self, text: str, pair: str | None = None, max_length: int | None = None, attentions: bool = True
    ) -> InsideBlocks:
        """What happens inside each block for one sentence or pair: one pass, kept in the store like a trace.

        Without `attentions` the pass takes the fast path. Raises InputError where `trace` does for one sentence.
        """
        check_texts([text], [pair])
        key = ("inside", self.spec.key, self.revision, str(self.device), text, pair, max_length, attentions)
        return self.store.get(key, lambda: self._run_inside(text, pair, max_length, attentions))

    def tokenize(
        self, texts: Sequence[str], pairs: Sequence[str | None] | None = None, max_length: int | None = None
    ) -> tuple[TokenizedSentence, ...]:
        """The tokens of a set of sentences, without a forward pass."""
        check_texts(texts, pairs)
        seconds = pairs if pairs is not None else [None] * len(texts)
        return tuple(
            self.tokenization.tokenize(text, pair, max_length) for text, pair in zip(texts, seconds, strict=True)
        )

    def embed_options(
        self,
        layers: Sequence[int] | None = None,
        poolings: Sequence[str] | None = None,
        max_length: int | None = None,
        precision: Precision = "auto",
        role: Role | None = None,
    ) -> EmbedOptions:
        """What `embed` is to do, in full. Left out: the last layer, the model's own pooling and maximum length.

        `role` puts the model's own prompt for queries or documents in front, where it has one. Raises InputError.
        """
        return self.embedder.options(layers, poolings, max_length, precision, role)

    def embed(
        self,
        texts: Sequence[str],
        layers: Sequence[int] | None = None,
        poolings: Sequence[str] | None = None,
        *,
        options: EmbedOptions | None = None,
        token_budget: int | None = None,
        progress: Progress | None = None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Float32:
        """Sentence vectors in bulk, float32 [layer, pooling, sentence, dim], not normalised, not kept in the store.

        `options` (see `embed_options`) goes before `layers` and `poolings`. `progress(done, total)` counts
        sentences. Raises InputError, and Cancelled once `cancelled()` is true.
        """
        chosen = options or self.embed_options(layers, poolings)
        return self.embedder.embed(texts, chosen, token_budget, progress, cancelled)

    def embed_into(
        self,
        texts: Sequence[str],
        options: EmbedOptions,
        sink: Sink,
        *,
        token_budget: int | None = None,
        progress: Progress | None = None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> EmbedReport:
        """The same by batches: `sink(rows [n], vectors [layer, pooling, n, dim])`, rows being places in `texts`."""
        return self.embedder.stream(texts, options, sink, token_budget, progress, cancelled)

    def embed_weighted(
        self,
        texts: Sequence[str],
        weights: Float32,
        options: EmbedOptions,
        progress: Progress | None = None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Float32:
        """Means weighted by each token's own weight, float32 [layer, text, dim], not normalised; for example by idf.

        `weights` is float32 [vocabulary], by token id, none negative; special tokens have theirs as well. A text whose
        weights sum to 0 gets its plain mean. The poolings of the options are not read. Raises as `embed` does.
        """
        return self.embedder.embed_weighted(texts, weights, options, progress, cancelled)

    def token_vectors(
        self,
        texts: Sequence[str],
        layers: Sequence[int] | None = None,
        word: str | None = None,
        **options: Any,
    ) -> TokenVectors:
        """Vectors of a seeded sample of a corpus's tokens, or of every occurrence of `word`.

        Options are those of components.model.embedding.token_vectors: a limit, a seed, a folder, progress, cancel.
        """
        return token_vectors(self, texts, layers, word, **options)

    def word_embeddings(self) -> Float32:
        """The model's static vectors, one for each piece of the vocabulary, float32 [piece, dim]; read-only."""
        weights: Float32 = self.encoder.get_input_embeddings().weight.detach().to("cpu", torch.float32).numpy()
        return read_only(weights.view())

    def run(
        self,
        texts: Sequence[str],
        pairs: Sequence[str | None] | None = None,
        options: TraceOptions = TraceOptions(),
    ) -> Trace:
        """The forward pass itself, neither looked up nor kept in the store."""
        sentences = self.tokenize(texts, pairs, options.max_length)
        ids, mask, segments = self.tokenization.arrays(sentences)
        self._check_size(ids.shape, options)
        tensors = self._tensors(ids, mask, segments)
        # inference_mode is thread-local, so it is entered here and not once at start.
        with self.lock, torch.inference_mode():
            wrapper = self._module(options)
            self.forward_passes += 1
            output = wrapper(**tensors, output_hidden_states=True, output_attentions=options.attentions)
            hidden = _stack(output.hidden_states)
            parts = architecture.embedding_parts(self.encoder, tensors["input_ids"], tensors.get("token_type_ids"))
            pooled = self._pool(output)
            attentions = _stack(output.attentions) if options.attentions else None
            logits = self._mask_logits(output, ids) if options.mask_logits else None
            embeddings = EmbeddingParts(
                _numpy(parts[0]),
                _numpy(parts[1].expand_as(parts[0])),
                None if parts[2] is None else _numpy(parts[2]),
            )
        return Trace(
            model=self.spec.key,
            revision=self.revision,
            sentences=sentences,
            input_ids=ids,
            attention_mask=mask,
            token_type_ids=segments,
            hidden_states=hidden,
            attentions=attentions,
            embedding_parts=embeddings,
            pooler_output=pooled,
            mask_logits=logits,
        )

    def _run_inside(self, text: str, pair: str | None, max_length: int | None, attentions: bool) -> InsideBlocks:
        sentences = self.tokenize([text], [pair], max_length)
        width = len(sentences[0])
        self._refuse_beyond_the_store(inside.size_in_bytes(self.facts, width, attentions), 1, width)
        tensors = self._tensors(*self.tokenization.arrays(sentences))
        with self.lock, torch.inference_mode():
            module = self._module(TraceOptions(attentions=attentions))
            if self._projection is None:
                self._projection = inside.output_projection(module)
            self.forward_passes += 1
            found: Any = inside.run_with_hooks(module, tensors, attentions)
        return InsideBlocks(sentence=sentences[0], projection=self._projection, **found)

    def _tensors(self, ids: Int64, mask: Int64, segments: Int64 | None) -> dict[str, torch.Tensor]:
        """The encoder's arguments, on its device."""
        inputs = {"input_ids": ids, "attention_mask": mask}
        if segments is not None:
            inputs["token_type_ids"] = segments
        return {name: torch.from_numpy(array).to(self.device) for name, array in inputs.items()}

    def _check_size(self, shape: tuple[int, ...], options: TraceOptions) -> None:
        sentences, tokens = shape
        facts = self.facts
        parts = 3 if facts.segments else 2  # of layer 0: word, position, segment
        need = 4 * sentences * tokens * facts.hidden_size * (facts.layers + 1 + parts)
        need += 4 * sentences * facts.hidden_size + 40 * sentences * tokens  # pooler; ids and masks
        if options.attentions:
            need += 4 * sentences * tokens * tokens * facts.heads * facts.layers
        if options.mask_logits:  # made for every token, though only the masks' are kept
            need += 4 * sentences * tokens * facts.vocabulary_size
        self._refuse_beyond_the_store(need, sentences, tokens)

    def _refuse_beyond_the_store(self, need: int, sentences: int, tokens: int) -> None:
        if need > self.store.limit:
            raise InputError(
                f"{sentences} sentences of up to {tokens} tokens take {need / 2**20:,.0f} MiB in this model.",
                f"At most {self.store.limit / 2**20:,.0f} MiB are kept.",
                "Shorten the longest sentence, lower the maximum length, or remove some sentences.",
            )

    def _module(self, options: TraceOptions) -> Any:
        """The module tree that gives what is asked for; called with the lock held."""
        if options.mask_logits:
            if self._masked_lm is None:
                if self._folder is None or not self.spec.masked_lm:
                    raise loading.no_masked_lm(self.spec.title)
                self._masked_lm = loading.masked_lm(self._folder, self.encoder, self.spec.title)
            return self._masked_lm
        if not options.attentions:
            return self.encoder
        if self._eager is None:
            self._eager = loading.eager_twin(self.encoder)
        return self._eager

    def _pool(self, output: Any) -> Float32 | None:
        if not self.has_pooler:
            return None
        pooled = getattr(output, "pooler_output", None)
        if pooled is None:  # the masked-LM model leaves the pooler out
            pooled = self.encoder.pooler(output.hidden_states[-1])
        return _numpy(pooled)

    def _mask_logits(self, output: Any, ids: np.ndarray) -> MaskLogits:
        places = np.argwhere(ids == self.tokenization.mask_id)
        rows = torch.from_numpy(places).to(self.device)
        return MaskLogits(
            tuple((int(sentence), int(token)) for sentence, token in places),
            _numpy(output.logits[rows[:, 0], rows[:, 1]]),
        )


def _numpy(tensor: torch.Tensor) -> Float32:
    """A tensor as a float32 array on the CPU that owns its memory."""
    return np.array(tensor.detach().to("cpu", torch.float32).numpy(), copy=True)


def _stack(tensors: Sequence[torch.Tensor]) -> Float32:
    """Tensors of one shape as one float32 array with a new first axis, without a second copy of them all."""
    stacked = np.empty((len(tensors), *tensors[0].shape), dtype=np.float32)
    for index, tensor in enumerate(tensors):
        stacked[index] = tensor.detach().to("cpu", torch.float32).numpy()
    return stacked
