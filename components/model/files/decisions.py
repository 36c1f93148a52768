"""What is done with each setting of a published folder: the one table of decisions, which docs/models.md prints.

sentence-transformers, transformers and tokenizers read these files. For each module and each key that they read, one row says
what this program does with it: it is applied, so that vectors equal `SentenceTransformer(folder).encode`; or it is refused, and
the model is not loaded; or it is not applied, and that is said wherever this model's numbers are shown; or it changes no number
here. tests/components/model/files/test_decisions.py reads the keys from the installed libraries: one that has no row fails.

    python -m components.model.files.decisions   writes docs/models.md
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

from components.folders import ASSETS, whole_file
from components.model.files import allowed, tokenizer_files

Outcome = Literal["applied", "refused", "not applied", "no effect"]
PATH = ASSETS.parent / "docs" / "models.md"

TOP = "config_sentence_transformers.json"
MODULES = "modules.json"
ENCODER = "sentence_bert_config.json"
CONFIG, TOKENIZER = "config.json", "tokenizer_config.json"
FOLDER = "the folder"  # of files as a whole, in place of one file's keys
# The names that ENCODER may have, in the order in which sentence-transformers looks for them: the first that exists is read.
ENCODER_FILES = (
    ENCODER,
    *(
        f"sentence_{kind}_config.json"
        for kind in ("roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
    ),
)


@dataclass(frozen=True)
class Decision:
    """What is done with one key of a file or of a module's configuration, or with a module itself."""

    source: str  # a file, or the class of a module, whose keys stand in its own folder's config.json
    key: str  # empty for a module itself
    outcome: Outcome
    # Applied: what it sets. Refused: what such a folder is. Not applied: the sentence that is shown. No effect: why.
    note: str
    instead: str = ""  # of what is refused: what would work
    # Of what is refused or not applied: values with which it asks for nothing.
    harmless: tuple[Any, ...] = (None, False, "", 0, [], {})

    def asks(self, value: Any) -> bool:
        """Whether a value of this key asks for something."""
        return not any(value == one and type(value) is type(one) for one in self.harmless)


def _rows(source: str, outcome: Outcome, notes: Mapping[str, str], **more: Any) -> tuple[Decision, ...]:
    return tuple(Decision(source, key, outcome, note, **more) for key, note in notes.items())


def _each(source: str, outcome: Outcome, keys: Iterable[str], note: str) -> tuple[Decision, ...]:
    return tuple(Decision(source, key, outcome, note) for key in sorted(keys))


def _refused(source: str, note: str, instead: str, keys: str = "") -> tuple[Decision, ...]:
    """A module that is refused, with its keys."""
    return tuple(Decision(source, key, "refused", note, instead) for key in ("", *keys.split()))


_TRAINING = "Only training uses it."
_SIZE = "A size, which must agree with the weights."
_ENCODER_INSTEAD = "Pick an encoder with Transformer and Pooling modules, such as the included model."
_WORDS = "It averages vectors of whole words, without an encoder."
_VISION = "It reads images and texts (CLIP)."
_LATE = "How a late-interaction model (ColBERT) reads queries and documents; used by MaxSim."
_OLD_ENCODER = (
    "The encoder beside modules.json, under the name of an old version, which sentence-transformers 6 does not load any more. "
    "In a folder of its own it is refused."
)

TABLE: tuple[Decision, ...] = (
    *_rows(
        MODULES,
        "applied",
        {
            "type": "The class of each module, recognised by its name; nothing is imported.",
            "path": "The folder of each module, which must be within the model's.",
            "name": "Of two modules with one name, the later takes the place of the earlier, which is named. Where the encoder "
            "or the pooling is lost by it, sentence-transformers fails, and the model is refused.",
        },
    ),
    *_rows(
        MODULES,
        "no effect",
        {
            "idx": "The modules are applied in the order of the list.",
            "kwargs": "Names of arguments that a caller could give to encode; none is given.",
        },
    ),
    *_rows(
        TOP,
        "applied",
        {
            "prompts": "The texts put before queries, documents and others, by their names.",
            "default_prompt_name": "The prompt of every text that is neither a query nor a document.",
            "similarity_fn_name": "cosine, dot, euclidean or manhattan: what Search ranks by. Without it, the cosine.",
            "truncate_dim": "A vector is its first so many numbers.",
            "model_type": "What the model was published for.",
            "activation_fn": "What follows the logit of a model that scores pairs.",
            "max_active_dims": "How many weights of a sparse vector are kept.",
            **dict.fromkeys(
                (
                    *("query_prefix", "document_prefix", "query_length", "document_length", "query_expansion"),
                    *("do_query_expansion", "attend_to_expansion_tokens", "attend_to_mask_tokens", "skiplist_words"),
                ),
                _LATE,
            ),
        },
    ),
    *_rows(
        TOP,
        "no effect",
        {
            "__version__": "The versions that wrote the folder.",
            "requirements": "Versions of packages; nothing of the folder is run.",
            "keep_in_fp32_modules": "All weights are float32 here.",
        },
    ),
    *_rows(
        ENCODER,
        "applied",
        {
            "max_seq_length": "The most tokens of a text. It stands before model_max_length of the tokenizer.",
            "query_length": "The most tokens of a query, where it is shorter than max_seq_length.",
            "document_length": "The most tokens of a document, likewise.",
            "do_lower_case": "Texts are written in small letters before they are cut into pieces.",
            "query_expansion": f"{_LATE} Of a model that gives a text one vector it is named as not applied.",
            "tokenizer_args": "Settings of the tokenizer, of those that are listed for tokenizer_config.json.",
            "processor_kwargs": "The same under today's name; model_max_length in it stands before max_seq_length, and max_len "
            "counts where no other file gives a length. model_max_length: null is refused: the library fails at long texts.",
        },
    ),
    Decision(
        ENCODER,
        "transformer_task",
        "not applied",
        "Its encoder is to give something else than hidden states (transformer_task). This is not applied.",
        harmless=(None, "feature-extraction", "fill-mask", "sequence-classification"),
    ),
    Decision(
        ENCODER,
        "module_output_name",
        "not applied",
        "Its encoder is to give something else than its tokens' vectors (module_output_name). This is not applied: the "
        "hidden states are used.",
        harmless=(None, "token_embeddings", "scores"),
    ),
    *_rows(
        ENCODER,
        "not applied",
        {
            "tokenizer_name_or_path": "It names another folder's tokenizer (tokenizer_name_or_path). This is not applied: its "
            "own is used.",
        },
    ),
    # What of these is not applied is named by components.model.files.encoder.settings, key by key.
    *_rows(
        ENCODER,
        "applied",
        {
            "modality_config": "That texts are read, and the last hidden states used. Anything else is named as not applied.",
            "processing_kwargs": "max_length of text or common, which then stands before max_seq_length. Other keys that could "
            "change a number are named as not applied, padding_side: left and return_attention_mask: false too.",
            **dict.fromkeys(
                ("config_args", "config_kwargs"),
                "In place of what config.json says, of the keys that are listed for it. Others, and another precision than "
                "float32, are named as not applied.",
            ),
            **dict.fromkeys(
                ("model_args", "model_kwargs"),
                "Weights are float32 here, whatever the precision, and are read from safetensors; speed and memory change no "
                "number. Other keys, and use_safetensors: false, are named as not applied.",
            ),
        },
    ),
    *_rows(
        ENCODER,
        "no effect",
        {
            "unpad_inputs": "How a batch is laid out in memory.",
            "backend": "torch computes; a folder cannot choose.",
            "cache_dir": "Nothing is downloaded by it.",
        },
    ),
    *_each(
        "Transformer",
        "applied",
        [""],
        "The encoder beside modules.json; in a folder of its own it is refused. Its settings stand in "
        "sentence_bert_config.json, see above.",
    ),
    *(Decision(kind, "", "applied", _OLD_ENCODER) for kind in ("BERT", "RoBERTa", "DistilBERT", "ALBERT", "XLNet")),
    *_rows(
        "Pooling",
        "applied",
        {
            "": "From the tokens' vectors to one vector.",
            "pooling_mode": "cls, max, mean, mean_sqrt_len_tokens, weightedmean or lasttoken; the vectors of several are "
            "joined, in the order of the list.",
            "include_prompt": "Whether the tokens of a prompt count.",
            **dict.fromkeys(allowed.POOLING_FLAGS, "The same as pooling_mode, in older folders; joined in this order."),
            **dict.fromkeys(("embedding_dimension", "word_embedding_dimension"), _SIZE),
        },
    ),
    *_rows(
        "Normalize",
        "applied",
        {
            "": "Vectors are scaled to length 1, before they are cut to truncate_dim.",
            **dict.fromkeys(
                ("module_input_name", "module_output_name"), "Which vectors: of the text, or of its tokens."
            ),
        },
    ),
    *_rows(
        "Dense",
        "applied",
        {
            "": "Matrix, bias, activation, after the pooling or, for every token, before it.",
            **dict.fromkeys(("in_features", "out_features"), _SIZE),
            "bias": "Whether it adds a bias.",
            "activation_function": f"One of {', '.join(allowed.ACTIVATIONS)}. Another of torch.nn is not applied, with a "
            "sentence; of any other name Tanh is taken, as sentence-transformers does; null is refused, at which it fails.",
            "use_residual": "Whether its input is added to its result.",
            **dict.fromkeys(
                ("module_input_name", "module_output_name"), "Which vectors: of the text, or of its tokens."
            ),
        },
    ),
    *_rows(
        "LayerNorm",
        "applied",
        {"": "Mean 0 and variance 1, then scale and shift, after the pooling.", "dimension": _SIZE},
    ),
    *_rows(
        "WeightedLayerPooling",
        "applied",
        {
            "": "A token's vector is a weighted mean of several layers', where the encoder gives all of them.",
            "layer_start": "The first of these layers.",
            "num_hidden_layers": "The last of these layers.",
            **dict.fromkeys(("embedding_dimension", "word_embedding_dimension"), _SIZE),
        },
    ),
    *_rows("Dropout", "no effect", {"": _TRAINING, "dropout": _TRAINING}),
    *_rows(
        "StaticEmbedding", "applied", {"": "A table with a vector for each piece, whose mean is the text's vector."}
    ),
    *_rows(
        "MLMTransformer",
        "applied",
        {"": "The encoder with its masked-LM head; its settings stand in sentence_bert_config.json."},
    ),
    *_rows(
        "SpladePooling",
        "applied",
        {
            "": "Weights of pieces (SPLADE), used by the ranking “SPLADE”.",
            "pooling_strategy": "max or sum.",
            "activation_function": "relu or log1p_relu.",
            **dict.fromkeys(("embedding_dimension", "word_embedding_dimension"), _SIZE),
        },
    ),
    *_rows(
        "MultiVectorMask",
        "applied",
        {
            "": "Which tokens of a late-interaction model keep a vector.",
            **dict.fromkeys(("skiplist_words", "skiplist_tasks", "keep_only_token_ids"), _LATE),
        },
    ),
    *_rows(
        "HierarchicalTokenPooling",
        "not applied",
        dict.fromkeys(
            ("", "pool_factor", "num_protected_tokens", "normalize_embeddings", "tasks"),
            "It joins vectors of tokens that are alike (HierarchicalTokenPooling). This is not applied.",
        ),
    ),
    *_rows(
        "LambdaTokenPooling",
        "not applied",
        dict.fromkeys(("", "tasks"), "It has code of its own that joins vectors of tokens. This is not applied."),
    ),
    *_rows(
        "LogitScore",
        "not applied",
        dict.fromkeys(
            ("", "true_token_id", "false_token_id", "module_input_name"),
            "It was published as a reranker that reads its score from a decoder's next word. This is not applied.",
        ),
    ),
    *_rows(
        "SparseAutoEncoder",
        "not applied",
        dict.fromkeys(
            ("", "input_dim", "hidden_dim", "k", "k_aux", "normalize", "dead_threshold"),
            "It was published with a sparse autoencoder after pooling (CSR). This is not applied: the pooled vectors are used "
            "without it.",
        ),
    ),
    *_refused(
        "SparseStaticEmbedding",
        "It gives each piece of the vocabulary a fixed weight, without an encoder.",
        "Rank by BM25, or pick a model with an encoder.",
        "frozen",
    ),
    *_refused(
        "CNN",
        "It was published with a convolution over its tokens' vectors (CNN).",
        _ENCODER_INSTEAD,
        "in_embedding_dimension in_word_embedding_dimension out_channels kernel_sizes stride_sizes",
    ),
    *_refused(
        "LSTM",
        "It was published with a recurrent network (LSTM) over its tokens' vectors.",
        _ENCODER_INSTEAD,
        "embedding_dimension word_embedding_dimension hidden_dim num_layers dropout bidirectional",
    ),
    *_refused(
        "BoW",
        "It counts words (bag of words), without an encoder.",
        "Search has a bag of words of its own; for vectors, pick an encoder.",
        "vocab word_weights unknown_word_weight cumulative_term_frequency",
    ),
    *_refused(
        "WordEmbeddings",
        _WORDS,
        "Pick a static model with a StaticEmbedding module, or an encoder.",
        "tokenizer_class update_embeddings max_seq_length",
    ),
    *_refused(
        "WordWeights",
        "It weighs whole words (WordWeights), which an encoder's pieces are not.",
        _ENCODER_INSTEAD,
        "vocab word_weights unknown_word_weight",
    ),
    *_refused(
        "CLIPModel",
        _VISION,
        "Pick an encoder for texts, such as the included model.",
        "transformer_task modality_config module_output_name processing_kwargs unpad_inputs query_length document_length "
        "query_expansion",
    ),
    *_refused(
        "Router",
        "It has one encoder for queries and another for documents (Router, once Asym).",
        "Load the folder of one of its encoders, or pick a model with one encoder.",
        "default_route allow_empty_key route_mappings",
    ),
    *_refused(
        "Asym",
        "It has one encoder for queries and another for documents (Router, once Asym).",
        "Load the folder of one of its encoders, or pick a model with one encoder.",
    ),
    *_each(
        CONFIG, "applied", allowed.CONFIG, "Handed to transformers, within bounds; beyond them the model is refused."
    ),
    *_each(
        CONFIG,
        "not applied",
        allowed.TOLD_OF_CONFIG,
        "It could read other files, run code, or load another model. What it would have done is named.",
    ),
    *_each(CONFIG, "no effect", allowed.UNUSED_OF_CONFIG, "Training, speed, or the form of results."),
    *_each(TOKENIZER, "applied", tokenizer_files.CONFIG, "Handed to transformers, within bounds; beyond them refused."),
    *_each(
        TOKENIZER,
        "not applied",
        tokenizer_files.TOLD_OF_CONFIG,
        "It could read other files, run code, or build another tokenizer. What it would have done is named.",
    ),
    Decision(
        TOKENIZER,
        "chat_template",
        "not applied",
        "sentence-transformers then writes each text as a message of a chat, with the template's words and special tokens "
        "around it. This is not applied: the text itself is read.",
        "With modules.json the text itself is read there too. The template may stand in chat_template.jinja.",
    ),
    *_each(
        TOKENIZER,
        "no effect",
        tokenizer_files.UNUSED_OF_CONFIG,
        "Chat, languages of a translation, training, speed, or what is said while loading.",
    ),
)

_BY_KEY: Mapping[tuple[str, str], Decision] = {(row.source, row.key): row for row in TABLE}


def decision(source: str, key: str = "") -> Decision | None:
    """The row of a key, or of a module itself; None for what no library reads."""
    return _BY_KEY.get((source, key))


def keys(source: str) -> frozenset[str]:
    """The keys of a file or of a module's configuration that have a row."""
    return frozenset(row.key for row in TABLE if row.source == source and row.key)


def is_applied(module: str) -> bool:
    """Whether a module of this class is applied, or has no effect."""
    row = decision(module)
    return row is not None and row.outcome in ("applied", "no effect")


def asked_for(source: str, values: Mapping[str, Any], outcome: Outcome) -> tuple[Decision, ...]:
    """The rows with this outcome that the values of a file ask for, in the order of the table."""
    return tuple(
        row
        for row in TABLE
        if row.source == source and row.outcome == outcome and row.key in values and row.asks(values[row.key])
    )


_PRECEDENCE = (
    "What a person chooses on the page or by an option of a command.",
    f"{TOP}: prompts, default prompt, similarity, number of dimensions.",
    f"{MODULES} and the config.json of each module's folder: pooling, Dense, LayerNorm, Normalize.",
    f"{ENCODER}, or the first of its older names that exists ({', '.join(ENCODER_FILES[1:])}): length, casing, tokenizer_args.",
    f"{TOKENIZER}: length, sides, casing; then tokenizer.json as it stands.",
    f"{CONFIG}: the encoder and the number of its positions, which no length may exceed where they are a table.",
    f"Without {MODULES}: an encoder whose tokens' vectors are averaged, without a prompt; where the first of "
    "the architectures ends in ForCausalLM, and is_causal is not false, the last token's vector.",
)


def written() -> str:
    """The document: the order of precedence, and the table."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# Models as published"
    yield ""
    yield "Written from the table of decisions by `python -m components.model.files.decisions`; do not edit it by hand."
    yield ""
    yield "A folder of other people's is used as it was published: whatever its files set is applied, so that vectors equal"
    yield "`SentenceTransformer(folder).encode`, or it is refused by name, or it is named as not applied on every page that"
    yield "shows this model's numbers and by every command."
    yield ""
    yield "## What comes first"
    yield ""
    for number, said in enumerate(_PRECEDENCE, 1):
        yield f"{number}. {said}"
    yield ""
    yield "## Checking a model"
    yield ""
    yield "`python -m components verify MODEL [TEXTS]` embeds three texts, or those of a file, by sentence-transformers itself"
    yield "and here, and says whether the vectors are equal: as plain texts, as queries and as documents, to 1e-5 of a"
    yield "vector's length. The exit status is 0 if they are, 1 if not, and 2 for a model that is not compared. `--json -`"
    yield "gives `equal`, `largest_difference`, `lowest_cosine`, `not_applied` and `texts`. The library runs in a process of"
    yield "its own, with a limit on memory and time, and is given a checked copy of the folder: no code, no pickle, no file"
    yield "outside it; a template of chats, where the library renders texts by one, runs in the library's sandbox. A folder"
    yield "with a key that is not safe to hand on is not compared, with the reason; nor are models that"
    yield "give no vectors of texts (cross-encoders, sparse and late-interaction models), folders with an adapter, and models"
    yield "too large to be held twice. The dashboard does the same with each model that is not included, once, in the"
    yield "background, and the pages say what came of it (`BERT_INTERNALS_VERIFY=0` turns it off)."
    yield ""
    yield "## The table"
    for source, rows in groupby(TABLE, lambda row: row.source):
        yield ""
        yield f"### {source}"
        yield ""
        yield "| Key | Decision | |"
        yield "|---|---|---|"
        for (outcome, note, instead), same in groupby(rows, lambda row: (row.outcome, row.note, row.instead)):
            named = ", ".join(f"`{row.key}`" if row.key else "the module" for row in same)
            yield f"| {named} | {outcome} | {' '.join(filter(None, (note, instead)))} |"


if __name__ == "__main__":
    with whole_file(PATH) as file:
        file.write(written().encode())
