"""How to get the arrays of a figure without this project: by transformers or sentence-transformers, in one of four texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from components.model.catalog import EMBEDDED_KEY
from components.model.files.sentence_config import prompt_for
from components.model.tokenization import Tokenization
from components.shown_code.code import AnyCode, Code, Command
from components.shown_code.written import call, literal, remark

if TYPE_CHECKING:
    from components.model.backend import Backend

EMBEDDED_ON_HUB = "sentence-transformers/all-MiniLM-L6-v2"  # the same weights
REVISION = 12  # characters that are written of the checksum of a model's weights
TRANSFORMERS = "# How to get the arrays, in a way that is independent of this dashboard: by transformers."
SENTENCE_TRANSFORMERS = (
    "# How to get the vectors or scores, in a way that is independent of this dashboard: by sentence-transformers."
)
FLOAT32 = 'model_kwargs={"dtype": torch.float32}'  # as here; else weights keep the precision of their files
PASS = """\
with torch.inference_mode():
    outputs = model(**inputs, {option}=True)
{name} = torch.stack(outputs.{name}).numpy()  # {axes}"""
STATES = PASS.format(option="output_hidden_states", name="hidden_states", axes="[layer, sentence, token, dim]")
ATTENTIONS = PASS.format(option="output_attentions", name="attentions", axes="[block, sentence, head, query, key]")
SPECIAL = 'special = inputs.pop("special_tokens_mask").numpy().astype(bool)  # [sentence, token], padding too'
KEEP = 'keep = inputs["attention_mask"].numpy().astype(bool)  # [sentence, token], all but padding'
HOOKS = """\
given, found = {{}}, {{}}  # what some modules of the model get and give: [sentence, token, dim] each
for name in {names}:
    def note(module, arguments, output, name=name):
        given[name], found[name] = arguments[0].numpy(), output.numpy()
    model.get_submodule(name).register_forward_hook(note)"""
# Of modules that several blocks share, in each of their calls.
HOOKS_OF_CALLS = """\
given, found = {{}}, {{}}  # what some modules of the model get and give in each call: [call][sentence, token, dim]
for name in {names}:
    def note(module, arguments, output, name=name):
        given[name], found[name] = [*given.get(name, []), arguments[0].numpy()], [*found.get(name, []), output.numpy()]
    model.get_submodule(name).register_forward_hook(note)"""
_WORD = re.compile(r"\w+")
Functions = Sequence[Callable[..., Any]]


@dataclass(frozen=True)
class Input:
    """What a model reads in one pass: texts, or texts that are each read together with a second one."""

    backend: Backend
    texts: Sequence[str]
    max_length: int | None = None  # tokens
    pairs: Sequence[str | None] | None = None
    prompt: str | None = None  # put before each text; None for what the model's files put there

    def states(self, of: Functions, *statements: str, modules: Sequence[str] = ()) -> AnyCode:
        """Code from `hidden_states` [layer, sentence, token, dim] and, where they are named, the masks `keep` and `special`.

        `of` are the functions that the statements call, the one that gives the numbers last. `modules` are the library's names
        of those of which the statements read `given` and `found`, what they get and give.
        """
        return self._code(STATES, of, statements, modules)

    def attentions(self, of: Functions, *statements: str, modules: Sequence[str] = ()) -> AnyCode:
        """Code from `attentions` [block, sentence, head, query, key]; `of` and `modules` as in `states`."""
        return self._code(ATTENTIONS, of, statements, modules)

    def tensors(self) -> AnyCode:
        """The tensors that the model gets."""
        of_each = "values = {name: tensor.numpy() for name, tensor in inputs.items()}"
        return self._code("", (Tokenization.arrays,), (of_each, "print(values)  # [sentence, token] each"))

    def _code(self, run: str, of: Functions, statements: Sequence[str], modules: Sequence[str] = ()) -> AnyCode:
        prompt = prompt_for(self.backend.sentence_config, None) if self.prompt is None else self.prompt
        called = {word for line in statements for word in _WORD.findall(line)}
        special = "special" in called
        if not is_elsewhere(self.backend) or (special and prompt):  # whose tokens count as special here
            return Command(of[-1])
        seconds = [] if self.pairs is None else [pair for pair in self.pairs if pair is not None]
        written = [text if seconds else prompt + text for text in self.texts]
        options = {
            "padding": True,
            "truncation": True,
            "max_length": self.backend.tokenization.check_length(self.max_length, bool(seconds)),
            "return_special_tokens_mask": special or None,
            "return_tensors": "pt",
        }
        pairs = [f"pairs = {literal(seconds)}"] if seconds else []
        settings = self.backend.loaded.encoder_settings.tokenizer
        loading = "dtype=torch.float32" + ', attn_implementation="eager"' * (run == ATTENTIONS)
        if len(modules) and getattr(self.backend.loaded.encoder.config, "chunk_size_feed_forward", 0):
            loading += ", chunk_size_feed_forward=0"  # all tokens in one call
        hooks = HOOKS_OF_CALLS if self.backend.structure.shares_blocks else HOOKS
        lines = [
            TRANSFORMERS,
            *(["import numpy as np", "import torch"] if run else []),
            f"from transformers import {'AutoModel, ' * bool(run)}AutoTokenizer",
            "",
            model_line(self.backend),
            f"texts = {literal(written)}",
            *pairs,
            f"tokenizer = {call('AutoTokenizer.from_pretrained', 'MODEL', **settings)}",
            *([f"model = AutoModel.from_pretrained(MODEL, {loading}).eval()"] if run else []),
            f"inputs = {call('tokenizer', 'texts', *(['pairs'] if pairs else []), **options)}",
            *([SPECIAL] if special else []),
            *([KEEP] if "keep" in called else []),
            *([hooks.format(names=literal(list(modules)))] if modules else []),
            *([run] if run else []),
        ]
        return _with_functions(lines, of, statements)


def pieces(reads: Mapping[str, Input], sentence: int) -> AnyCode:
    """The pieces of one of the texts by some models' tokenizers, by the names that the figure gives them."""
    with_arguments = any(read.backend.loaded.encoder_settings.tokenizer for read in reads.values())
    if with_arguments or not all(is_elsewhere(read.backend) for read in reads.values()):
        return Command(Tokenization.tokenize)
    first = next(iter(reads.values()))
    lengths = [read.backend.tokenization.check_length(read.max_length) for read in reads.values()]
    lines = [
        TRANSFORMERS,
        "from transformers import AutoTokenizer",
        "",
        f"text = {literal(first.texts[sentence])}",
        f"models = {literal({name: model_name(read.backend) for name, read in reads.items()})}",
        "tokenizers = {name: AutoTokenizer.from_pretrained(model) for name, model in models.items()}",
    ]
    pairs = f"zip(tokenizers.items(), {literal(lengths)}, strict=True)"
    cut = "truncation=True, max_length=most"
    of_each = f"values = {{name: tokenizer(text, {cut}).tokens() for (name, tokenizer), most in {pairs}}}"
    return Code("\n".join(lines), (), (of_each, "print(values)"))


def encoded(
    backend: Backend,
    query: str,
    texts: Sequence[str],
    prompts: tuple[str, str],
    max_length: int,
    of: Functions,
    *statements: str,
) -> AnyCode:
    """Code from the vectors `queries` and `documents` [text, dim] of a query and of texts, each behind its prompt."""
    has_prompts = any((*prompts, *backend.sentence_config.prompts.values()))
    asked, stored = (f", prompt={literal(prompt)}" if has_prompts else "" for prompt in prompts)
    lines = [
        SENTENCE_TRANSFORMERS,
        "import numpy as np",
        "import torch",
        "from sentence_transformers import SentenceTransformer",
        "",
        model_line(backend),
        f"query = {literal(query)}",
        f"texts = {literal(list(texts))}",
        f"model = SentenceTransformer(MODEL, {FLOAT32})",
        f"model.max_seq_length = {max_length}",
        f"queries, documents = model.encode([query]{asked}), model.encode(texts{stored})  # [text, dim] each",
    ]
    return _with_functions(lines, of, statements)


def predicted(
    backend: Backend,
    query: str,
    texts: Sequence[str],
    label: int | None,
    max_length: int | None,
    of: Functions,
    *statements: str,
) -> AnyCode:
    """Code from `values` [text], a cross-encoder's scores of a query with some texts before any sigmoid."""
    if not is_published(backend):
        return Command(of[-1])
    length = backend.tokenization.check_length(max_length, is_pair=True)
    lines = [
        SENTENCE_TRANSFORMERS,
        "import torch",
        "from sentence_transformers import CrossEncoder",
        "",
        model_line(backend),
        f"query = {literal(query)}",
        f"texts = {literal(list(texts))}",
        f"model = CrossEncoder(MODEL, max_length={length}, {FLOAT32})",
        "scores = model.predict([(query, text) for text in texts], activation_fn=torch.nn.Identity())",
        f"values = scores if scores.ndim == 1 else scores[:, {label or 0}]",
    ]
    return _with_functions(lines, of, statements)


def both(first: AnyCode, second: AnyCode, kept: str) -> AnyCode:
    """The second code, below the arrays and statements of the first, of which the statement `kept` keeps what it needs."""
    if isinstance(first, Command) or isinstance(second, Command):
        return second if isinstance(first, Code) else first
    _, _, arrays = second.arrays.partition("\n\n")  # without the imports
    return replace(second, arrays="\n".join([first.arrays, *first.statements, kept, "", arrays]))


def _with_functions(lines: Sequence[str], of: Functions, statements: Sequence[str]) -> Code:
    """Both parts of a code; of the functions of the page those that the statements call."""
    called = {word for line in statements for word in _WORD.findall(line)}
    return Code("\n".join(lines), tuple(each for each in of if each.__name__ in called), tuple(statements))


def is_published(backend: Backend) -> bool:
    """Whether sentence-transformers loads the model by a name that it has elsewhere.

    Not so the included cross-encoder, an adapter of this project, and a model that was trained here.
    """
    return backend.spec.key == EMBEDDED_KEY or backend.spec.source not in ("embedded", "run")


def is_elsewhere(backend: Backend) -> bool:
    """Whether transformers alone loads the model as it is here, with all that its hidden states and attentions come from."""
    structure = backend.structure
    if not structure.has_blocks or structure.is_causal or not is_published(backend):
        return False
    settings = backend.loaded.encoder_settings
    return not (settings.is_lowered or settings.config)  # which a tokenizer, and a model, have no argument for


def model_line(backend: Backend) -> str:
    """The statement that names the model, with which weights they are."""
    about = f"{backend.spec.title}, revision {backend.revision.rpartition(':')[2][:REVISION]}"
    return f"MODEL = {literal(model_name(backend))}  {remark(about)}"


def model_name(backend: Backend) -> str:
    """The hub's name of a model, or its folder's."""
    return EMBEDDED_ON_HUB if backend.spec.source == "embedded" else backend.spec.hub_id
