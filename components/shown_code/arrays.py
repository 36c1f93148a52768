"""How to get the arrays of a figure without this project: by transformers or sentence-transformers, in one of four texts.

Where the numbers come from many texts or from a training, the code begins with a file: the table of a figure, as Share
saves it, or the folder of the run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from components.model.catalog import EMBEDDED_KEY, RUN_PREFIX, RUN_START
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
Kind = Literal["numbers", "texts", "flags"]
# A cell of a column; Share puts an apostrophe before a text that a spreadsheet would take for a formula.
CELLS: Mapping[Kind, str] = {
    "numbers": 'np.array([float(row[{column}] or "nan") for row in rows])',
    "texts": '[re.sub(r"^\'(?=[\\s\\u200b-\\u200f\\ufeff]*[-=+@＝＋－＠]|[\\t\\r\\n])", "", row[{column}]) for row in rows]',
    "flags": 'np.array([row[{column}] == "True" for row in rows])',
}
Functions = Sequence[Callable[..., Any]]


@dataclass(frozen=True)
class Input:
    """What a model reads in one pass: texts, or texts that are each read together with a second one."""

    backend: Backend
    texts: Sequence[str]
    max_length: int | None = None  # tokens
    pairs: Sequence[str | None] | None = None
    prompt: str | None = None  # put before each text; None for what the model's files put there
    source: Sequence[str] = ()  # the statements that read `texts` from a file, and `pairs`, in place of those above

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

    def lengths(self, *given: str) -> AnyCode:
        """The number of tokens before truncation of texts, or of pairs of texts: each of `given` is their names in the code."""
        each = ", ".join(f"tokenizer({names})" for names in given)
        count = f'values = np.array([[len(ids) for ids in read["input_ids"]] for read in [{each}]])'
        return self._code("", (Tokenization.lengths,), (count, "print(values)  # [column, row]"))

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
        given = [f"texts = {literal(written)}", *pairs]
        start = self.source.index("") if self.source else 0  # of the statements, below the imports
        if self.source:
            given = [
                *self.source[start + 1 :],
                *([f"texts = [{literal(prompt)} + text for text in texts]"] if prompt else []),
            ]
        has_inputs = bool(run) or "inputs" in called
        settings = self.backend.loaded.encoder_settings.tokenizer
        loading = "dtype=torch.float32" + ', attn_implementation="eager"' * (run == ATTENTIONS)
        if len(modules) and getattr(self.backend.loaded.encoder.config, "chunk_size_feed_forward", 0):
            loading += ", chunk_size_feed_forward=0"  # all tokens in one call
        hooks = HOOKS_OF_CALLS if self.backend.structure.shares_blocks else HOOKS
        lines = [
            TRANSFORMERS,
            *self.source[:start],
            *(["import numpy as np"] if run or "np" in called else []),
            *(["import torch"] if run else []),
            f"from transformers import {'AutoModel, ' * bool(run)}AutoTokenizer",
            "",
            model_line(self.backend),
            *given,
            f"tokenizer = {call('AutoTokenizer.from_pretrained', 'MODEL', **settings)}",
            *([f"model = AutoModel.from_pretrained(MODEL, {loading}).eval()"] if run else []),
            *([f"inputs = {call('tokenizer', 'texts', *(['pairs'] if pairs else []), **options)}"] * has_inputs),
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


def embedded(
    backend: Backend, source: Sequence[str], prompt: str, length: int, of: Functions, *statements: str
) -> Code:
    """Code from the vectors `vectors` [text, dim] of the `texts` that `source` reads from a file."""
    has_prompts = any((prompt, *backend.sentence_config.prompts.values()))
    lines = [
        SENTENCE_TRANSFORMERS,
        *source[: source.index("")],
        "import numpy as np",
        "import torch",
        "from sentence_transformers import SentenceTransformer",
        *source[source.index("") :],
        model_line(backend),
        f"model = SentenceTransformer(MODEL, {FLOAT32})",
        f"model.max_seq_length = {length}",
        f"vectors = model.encode(texts{f', prompt={literal(prompt)}' if has_prompts else ''})  # [text, dim]",
    ]
    return _with_functions(lines, of, statements)


def sparse(backend: Backend, query: str, text: str, max_length: int | None, *statements: str) -> Code:
    """Code from SPLADE's weights `queries` and `documents` [1, piece] of a query and a text."""
    lines = [
        SENTENCE_TRANSFORMERS,
        "import numpy as np",
        "import torch",
        "from sentence_transformers import SparseEncoder",
        "",
        model_line(backend),
        f"model = SparseEncoder(MODEL, {FLOAT32})",
        f"model.max_seq_length = {backend.tokenization.check_length(max_length)}",
        f"queries = model.encode_query([{literal(query)}]).to_dense().numpy()  # [1, piece]",
        f"documents = model.encode_document([{literal(text)}]).to_dense().numpy()",
    ]
    if backend.splade is not None and backend.splade.similarity == "cosine":
        lines.append("queries, documents = (each / np.linalg.norm(each) for each in (queries, documents))")
    return _with_functions(lines, (), statements)


def predicted(
    backend: Backend,
    query: str | Sequence[str],
    texts: Sequence[str],
    label: int | None,
    max_length: int | None,
    of: Functions,
    *statements: str,
) -> AnyCode:
    """Code from `values` [text], a cross-encoder's scores of a query, or of one for each text, before any sigmoid."""
    if not is_published(backend):
        return Command(of[-1])
    length = backend.tokenization.check_length(max_length, is_pair=True)
    is_one = isinstance(query, str)
    pairs = "[(query, text) for text in texts]" if is_one else "list(zip(queries, texts, strict=True))"
    lines = [
        SENTENCE_TRANSFORMERS,
        "import torch",
        "from sentence_transformers import CrossEncoder",
        "",
        model_line(backend),
        f"query = {literal(query)}" if is_one else f"queries = {literal(list(query))}",
        f"texts = {literal(list(texts))}",
        f"model = CrossEncoder(MODEL, max_length={length}, {FLOAT32})",
        f"asked = {pairs}",
        "scores = model.predict(asked, activation_fn=torch.nn.Identity())",
        f"values = scores if scores.ndim == 1 else scores[:, {label or 0}]",
    ]
    return _with_functions(lines, of, statements)


def file_of(key: str) -> str:
    """The name under which Share saves the table of a figure."""
    return f"bert-internals-{key}.csv"


def columns(key: str, of: Mapping[str, tuple[str, Kind]]) -> list[str]:
    """The statements that read columns of a figure's table; `of` gives for each name in the code the column and its kind."""
    texts = {name: column for name, (column, kind) in of.items() if kind == "texts"}
    names, from_columns = ", ".join(texts), literal(list(texts.values()))
    read = [f"{name} = {CELLS[kind].format(column=literal(column))}" for name, (column, kind) in of.items()]
    if len(texts) > 1:
        each = CELLS["texts"].format(column="column")
        read = [line for line, name in zip(read, of, strict=True) if name not in texts]
        read.append(f"{names} = ({each} for column in {from_columns})")
    return [
        "import csv",
        *(["import re"] if texts else []),
        "",
        "# The file that “Share”, “Files”, “Download as CSV” saves:",
        f'rows = list(csv.DictReader(open({literal(file_of(key))}, encoding="utf-8-sig", newline="")))',
        *read,
    ]


def of_table(key: str, of: Mapping[str, tuple[str, Kind]], functions: Functions, *statements: str) -> Code:
    """Code from `columns` of a figure's table alone."""
    head = ["# How to get the arrays: from the table of a figure, as Share saves it.", "import numpy as np"]
    return Code("\n".join([*head, *columns(key, of)]), tuple(functions), statements)


def of_watch(run: str, steps: Sequence[int], functions: Functions, *statements: str) -> Code:
    """Code from `sentences` and `tokens`, of each step [layer, sentence or token, dim]: what a training run has kept."""
    lines = [
        "# How to get the arrays: from the folder of the training run. With `train --out DIR` it is DIR/run.",
        "import numpy as np",
        "",
        f"RUN = {literal(run)}",
        f'steps = [np.load(f"{{RUN}}/watch/{{step}}.npz") for step in {literal(list(steps))}]',
        'sentences, tokens = ([kept[name] for kept in steps] for name in ("sentences", "tokens"))',
    ]
    return Code("\n".join(lines), tuple(functions), statements)


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
    """Whether sentence-transformers loads the model by a name or from a folder: not the included cross-encoder, an adapter."""
    return backend.spec.key == EMBEDDED_KEY or backend.spec.source != "embedded"


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
    about += ", below the folder of training runs" if backend.spec.source == "run" else ""
    return f"MODEL = {literal(model_name(backend))}  {remark(about)}"


def model_name(backend: Backend) -> str:
    """The hub's name of a model, or its folder; a training run's model or start is below the folder of runs."""
    if backend.spec.source == "run":
        name = backend.spec.key.removeprefix(RUN_PREFIX)
        return f"{name.removesuffix(RUN_START)}/{'start' if name.endswith(RUN_START) else 'model'}"
    return EMBEDDED_ON_HUB if backend.spec.source == "embedded" else backend.spec.hub_id
