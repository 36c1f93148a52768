"""The table of all settings: the address key and default of each, and how its value is read and written.

A value from an address is parsed and checked here; it is never evaluated or put into HTML.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from components.analysis.attention.head_patterns import PATTERNS
from components.analysis.maps.projection import METHODS, METRICS, MapOptions
from components.analysis.pair_scales import SCALES
from components.analysis.why.patch_codes import is_code
from components.model.catalog import (
    EMBEDDED_CROSS_ENCODER_KEY,
    EMBEDDED_KEY,
    RUN_PREFIX,
    catalog_spec,
    is_path,
    parse_model,
)
from components.model.embedding.options import MAX_TOKEN_VECTORS
from components.model.tokenization import MAX_CHARACTERS, MAX_SENTENCES, TRUNCATIONS, clean_text
from components.model.trace import EVERY_POOLING
from components.retrieval.failures.causes import CAUSES
from components.retrieval.learnt.learnt_ranking import COMBINATIONS
from components.retrieval.learnt.learnt_vectors import READINGS
from components.retrieval.search.exact import SIMILARITIES
from components.retrieval.search.lexical import KINDS
from components.training.data import DEMO
from components.training.objectives import OBJECTIVES
from components.training.settings import NEGATIVES, POOLINGS, PRESETS
from dashboard import access
from dashboard.ready_made import lessons, ready_made_sets

PAGES = (
    *("home", "tokens", "model", "layers", "heatmaps", "attention", "map"),
    *("search", "evaluate", "pairs", "why", "training"),
)
LEAST_LENGTH = 3  # tokens: [CLS], one token of the text, [SEP]


@dataclass(frozen=True)
class Setting:
    """One value of a session that an address can hold."""

    name: str  # the session key
    short: str  # the address key
    default: Any
    parse: Callable[[list[str]], Any]  # raises ValueError (or UserError) for an invalid value
    show: Callable[[Any], list[str]]
    pages: tuple[str, ...] = PAGES  # the pages that use it
    shared: bool = False  # read from the address of every page, also of pages that do not use it
    words: str = ""  # what people call it, where the name is not that
    if_chosen: bool = (
        False  # an address has it once it was chosen, even if it is the default: some view begins otherwise
    )

    @property
    def label(self) -> str:
        """What a message to people calls it, close to the label of its control."""
        return self.words or ("view" if self.short == "view" else self.name.replace("_", " "))


def _single(values: list[str]) -> str:
    if len(values) != 1:
        raise ValueError("it is given more than once")
    return values[0]


def _choice(name: str, short: str, options: tuple[str, ...], pages: tuple[str, ...], words: str = "") -> Setting:
    def parse(values: list[str]) -> str:
        value = _single(values)
        if value not in options:
            raise ValueError(f"it is not one of {', '.join(options)}")
        return value

    return Setting(name, short, options[0], parse, lambda value: [value], pages, words=words)


def _preset_choice(name: str, short: str, options: tuple[str, ...], words: str = "") -> Setting:
    """A choice of the Training page that is None, as the preset says, until a person chooses."""
    return replace(_choice(name, short, options, TRAINING, words=words), default=None)


def _flag(name: str, short: str, default: bool, pages: tuple[str, ...] = PAGES, words: str = "") -> Setting:
    def parse(values: list[str]) -> bool:
        value = _single(values)
        if value not in {"0", "1"}:
            raise ValueError("it is not 0 or 1")
        return value == "1"

    return Setting(name, short, default, parse, lambda value: [str(int(value))], pages, words=words)


def _number(
    name: str,
    short: str,
    default: int | None,
    most: int,
    pages: tuple[str, ...] = PAGES,
    least: int = 0,
    words: str = "",
) -> Setting:
    def parse(values: list[str]) -> int:
        return _whole_number(_single(values), most, least)

    return Setting(name, short, default, parse, lambda value: [str(value)], pages, words=words)


def _positions(name: str, short: str, pages: tuple[str, ...], unique: bool = False, words: str = "") -> Setting:
    def parse(values: list[str]) -> tuple[int, ...]:
        if len(values) > MAX_SENTENCES:
            raise ValueError(f"there are more than {MAX_SENTENCES}")
        return tuple(_whole_number(value, 100_000) for value in (dict.fromkeys(values) if unique else values))

    return Setting(name, short, (), parse, lambda value: [str(position) for position in value], pages, words=words)


def _text(
    name: str, short: str, pages: tuple[str, ...], default: str = "", most: int = 100, words: str = ""
) -> Setting:
    def parse(values: list[str]) -> str:
        return clean_text(_single(values))[:most]

    return Setting(name, short, default, parse, lambda value: [value], pages, words=words)


def _whole_number(text: str, most: int, least: int = 0) -> int:
    if not (text.isascii() and text.isdigit()) or not least <= int(text[:9]) <= most:
        raise ValueError(f"it is not a whole number from {least:,} to {most:,}")
    return int(text[:9])


def _thousandths(text: str) -> int:
    """A number with a sign. Raises ValueError."""
    if not re.fullmatch(r"-?[0-9]{1,7}", text):
        raise ValueError("it is not a whole number")
    return int(text)


def allowed_model(text: str) -> str:
    """The key of a model named in an address or in the picker.

    Both are checked here, because a browser may send a value that the picker does not offer. Raises ValueError (or
    UserError) for a model that is not allowed and for a name that no model can have.
    """
    name = text.strip()
    is_known = catalog_spec(name) is not None or name.startswith(RUN_PREFIX)
    if not access.free_models_allowed() and not is_known:
        # Refuse before looking anything up, so that nobody can find out which folders exist.
        raise ValueError("only the models of the list are allowed on this server")
    if is_path(name):
        name = str(access.server_path(name))
    return parse_model(name).key


def _model(name: str, short: str, default: str, pages: tuple[str, ...] = PAGES, words: str = "") -> Setting:
    def parse(values: list[str]) -> str:
        return allowed_model(_single(values))

    return Setting(name, short, default, parse, lambda value: [value], pages, shared=True, words=words)


def _parse_models(values: list[str]) -> tuple[str, ...]:
    """The keys of models to compare; a single empty text stands for none."""
    if values == [""]:
        return ()
    if len(values) > MOST_COMPARED - 1:
        raise ValueError(f"there are more than {MOST_COMPARED - 1}")
    return tuple(dict.fromkeys(allowed_model(value) for value in values))


def clean_sentences(lines: list[str]) -> tuple[str, ...]:
    """Lines as sentences, without empty lines and with invalid characters replaced; nothing else is changed."""
    return tuple(clean_text(line) for line in lines if line.strip())


def _parse_sentences(values: list[str]) -> tuple[str, ...]:
    sentences = clean_sentences([" ".join(value.splitlines()) for value in values])
    if len(sentences) > MAX_SENTENCES or sum(map(len, sentences)) > MAX_CHARACTERS:
        raise ValueError(f"there are more than {MAX_SENTENCES} sentences or {MAX_CHARACTERS:,} characters")
    return sentences


def _parse_runs(values: list[str]) -> tuple[str, ...]:
    """Codes of runs: "m.6.mean" is layer 6 of the model with mean pooling, "m2..." the second model, "bm25" a ranking.

    "rr.100.m.6.mean" is the first 100 hits of such a run, re-ranked by the cross-encoder, "ms.100..." by MaxSim, "mx.100..."
    by the second model's MaxSim; "sp.m" and "sp.m2" are SPLADE by either model.
    A single empty code stands for no runs.
    """
    if values == [""]:
        return ()
    if len(values) > MOST_RUNS:
        raise ValueError(f"there are more than {MOST_RUNS}")
    for value in values:
        code = re.fullmatch(
            rf"((rr|ms|mx)\.(?P<k>[1-9][0-9]{{0,3}})\.)?m2?\.[0-9]{{1,3}}\.({'|'.join(EVERY_POOLING)})", value
        )
        if value not in (*KINDS, "static", "sp.m", "sp.m2") and code is None:
            raise ValueError("it names no run")
        if code is not None and code["k"] and not LEAST_RUN_CANDIDATES <= int(code["k"]) <= MOST_RUN_CANDIDATES:
            raise ValueError(f"the candidates are not {LEAST_RUN_CANDIDATES} to {MOST_RUN_CANDIDATES:,}")
    return tuple(dict.fromkeys(values))


def _parse_patches(values: list[str]) -> tuple[str, ...]:
    """Codes of activations, as components.analysis.why.patch_codes.Patch has them: "t4.2", "h3.5", "a2", "f2"."""
    if len(values) > MOST_PATCHES:
        raise ValueError(f"there are more than {MOST_PATCHES}")
    for value in values:
        if not is_code(value):
            raise ValueError("it names no activation")
    return tuple(dict.fromkeys(values))


def clean_queries(text: str) -> tuple[str, ...]:
    """The lines of a text as queries, without empty lines."""
    return tuple(line.strip() for line in clean_text(text).splitlines() if line.strip())


def _parse_queries(values: list[str]) -> tuple[str, ...]:
    if len(values) > MOST_QUERIES:
        raise ValueError(f"there are more than {MOST_QUERIES:,}")
    return clean_queries("\n".join(" ".join(value.splitlines()) for value in values))


def _parse_corpus(values: list[str]) -> str:
    value = _single(values)
    if not re.fullmatch(r"[0-9a-f]{32}", value):
        raise ValueError("it does not identify a corpus")
    return value


def _parse_lesson(values: list[str]) -> tuple[str, int]:
    """A lesson and the number of its step, from 1: "two-banks.3"; without a number its first step."""
    key, _, step = _single(values).partition(".")
    lesson = lessons().get(key)
    if lesson is None:
        raise ValueError("there is no such lesson")
    return key, _whole_number(step or "1", len(lesson.steps), 1)


def _parse_class_code(values: list[str]) -> str:
    value = _single(values)
    if value != class_code(value):
        raise ValueError("it is not of letters, digits and hyphens")
    return value


def class_code(text: str) -> str:
    """The code of a class: what a person typed, without the characters that a code cannot have."""
    return re.sub(r"[^a-z0-9-]", "", text.strip().lower().replace(" ", "-"))[:MOST_CODE]


def _layers_view() -> Setting:
    setting = _choice("layers_view", "view", ("across", "within", "against", "sentences"), LAYERS)
    # In older links "tokens" stands for any comparison of tokens; "cmp" then names it.
    return replace(setting, parse=lambda values: "across" if values == ["tokens"] else setting.parse(values))


MOST_COMPARED = 4  # models beside each other, the session's own included
MOST_RUNS = 24
MOST_QUERIES = 1_000  # searched at once
LEAST_PAIRS, MOST_PAIRS = 10, 1_000  # of similar sentences
MOST_CODE = 24  # characters of a class's code
MOST_PATCHES = 12  # made together
MOST_EXPERIMENT_SEED = 9_999
LEAST_RUN_CANDIDATES, MOST_RUN_CANDIDATES = 2, 1_000  # of a query that a run re-ranks
LEARNING_RATES = ("1e-06", "5e-06", "1e-05", "2e-05", "5e-05", "0.0001", "0.0002", "0.0005", "0.001", "0.002", "0.005")
LEARNT_CS = ("0.00001", "0.0001", "0.001", "0.01", "0.1", "1", "10")
LAB_POOLINGS = ("mean", "cls", "max", "last4", "idf")
ENGINES = ("exact", "usearch", "milvus")
APPROXIMATIONS = (
    *("float16", "int8", "bits-1", "bits-4", "bits-10", "first-2", "first-4", "first-8"),
    *("hnsw-16", "hnsw-64", "hnsw-256"),
)
COMPARISONS = ("none", "setting", "model", "rerank", "maxsim", "splade", *KINDS, "static")
FAILURE_CAUSES = tuple(name.replace(" ", "-") for name in CAUSES)  # as in addresses
DEFAULT_SET = "bank"
DEFAULT_QUERY = "volcano erupted"
# A query, a document that answers it, and one that does not.
DEFAULT_TRIPLE = (
    "How do bees find their way home?",
    "Bees use the position of the sun to return to the hive.",
    "The family found a new home near the old mill.",
)
LAYERS, TOKENS, MODEL, HEATMAPS, ATTENTION = ("layers",), ("tokens",), ("model",), ("heatmaps",), ("attention",)
SEARCH, MAP, EVALUATE, PAIRS, TRAINING = ("search",), ("map",), ("evaluate",), ("pairs",), ("training",)
WHY = ("why",)
EVERYWHERE = (*PAGES, "lessons", "about")
WITH_SENTENCES = tuple(
    page for page in PAGES if page not in {"search", "evaluate", "pairs", "training"}
)  # these use a corpus or rows
WITH_PAIRS = (*TOKENS, *HEATMAPS, *ATTENTION, *MAP, *WHY)  # these show two sentences: A and B
WITH_TWO_MODELS = (*TOKENS, *LAYERS, *HEATMAPS, *SEARCH, *EVALUATE, *PAIRS)

SETTINGS: tuple[Setting, ...] = (
    # Shared: the sidebar shows each setting on the pages that use it
    _model("model", "m", EMBEDDED_KEY),
    _model("model2", "m2", "", WITH_TWO_MODELS, words="second model"),
    _model(
        "cross_encoder", "ce", EMBEDDED_CROSS_ENCODER_KEY, (*SEARCH, *EVALUATE, *PAIRS, *WHY), words="cross encoder"
    ),
    Setting(
        "sentences",
        "s",
        ready_made_sets()[DEFAULT_SET].sentences,
        _parse_sentences,
        lambda value: list(value) or [""],
        WITH_SENTENCES,
        shared=True,
    ),
    replace(_number("max_length", "len", None, 100_000, least=LEAST_LENGTH, words="maximum length"), shared=True),
    replace(_flag("projector", "proj", False, words="projector mode"), shared=True),
    # The open lesson, with the number of its step from 1, and the class whose answers are counted together
    Setting(
        "lesson",
        "lesson",
        (),
        _parse_lesson,
        lambda value: [f"{value[0]}.{value[1]}"] if value else [],
        EVERYWHERE,
        shared=True,
    ),
    Setting(
        "class_code", "class", "", _parse_class_code, lambda value: [value], EVERYWHERE, shared=True, words="class code"
    ),
    # Tokens of interest: one position for each sentence, [CLS] at 0
    _positions("tokens", "t", (*TOKENS, *MODEL, *LAYERS), words="chosen tokens"),
    # Tokens
    _choice("tokens_view", "view", ("pieces", "tensors", "decoding", "vocabulary", "compare"), TOKENS),
    # None: the first, or where two tokenizers are compared the sentence in which they differ most
    _number("sentence", "n", None, MAX_SENTENCES - 1, (*TOKENS, *MODEL)),
    replace(
        _text("vocabulary_query", "q", TOKENS, words="vocabulary search"), default=None
    ),  # None: the chosen token's piece or id
    _number("joint_token", "jt", None, 100_000, TOKENS, words="chosen token of the pair"),
    _choice("vocabulary_mode", "mode", ("begins with", "contains", "id"), TOKENS, words="kind of vocabulary search"),
    replace(_choice("other_tokenizer", "with", ("bytes", "characters", "model"), TOKENS), default=None),
    # Model
    _choice("model_view", "view", ("facts", "vectors", "zero", "inner", "compare", "catalog"), MODEL),
    _number("inner_block", "fb", 0, 1_000, MODEL, words="block"),
    # None: the second model, or else an included one
    Setting(
        "compared_models",
        "with",
        None,
        _parse_models,
        lambda value: list(value) or [""],
        MODEL,
        words="compared models",
    ),
    _choice("depth_curve", "cv", ("tokens", "words", "sentences", "steps"), MODEL, words="curve"),
    _number("depth_first_word", "w1", None, 100_000, MODEL, words="first word"),  # counted from 0 in its sentence
    _number("depth_second_word", "w2", None, 100_000, MODEL, words="second word"),
    _number("depth_other_sentence", "n2", None, MAX_SENTENCES - 1, MODEL, words="second sentence"),
    _flag("compare_measured", "meas", False, MODEL, words="measurements"),
    _choice("cka_pair", "cka", ("0-1", "0-2", "0-3", "1-2", "1-3", "2-3"), MODEL, words="compared layers"),
    _number("layer", "l", None, 1_000, (*MODEL, *LAYERS, *HEATMAPS, *MAP, *SEARCH, *EVALUATE, *WHY)),
    # Layers
    _layers_view(),
    _choice("comparison", "cmp", ("across", "within", "against"), LAYERS),  # only in older links
    _number("second_token", "t2", None, 100_000, LAYERS),
    _number("layers_sentence", "n", 0, MAX_SENTENCES - 1, LAYERS, words="sentence"),
    _flag("whole_word", "word", True, LAYERS, words="whole words"),
    # None: the model's own pooling
    replace(_choice("pooling", "pool", EVERY_POOLING, (*LAYERS, *HEATMAPS, *SEARCH, *EVALUATE, *WHY)), default=None),
    _flag("include_special", "sp", True, (*LAYERS, *HEATMAPS, *MAP), words="special tokens"),
    _flag("centred", "c", False, LAYERS, words="centred vectors"),
    _flag("show_baseline", "b", True, LAYERS, words="baseline"),
    _flag("percentiles", "pct", False, (*MODEL, *LAYERS, *HEATMAPS, *SEARCH)),
    # Sentences A and B of a pair (A counts from 0; B counts from 1, and 0 stands for none). Heatmaps and Attention read
    # them as one input as soon as there is a B; Tokens and Map show all sentences too, so that they need `reading`.
    replace(_number("sentence_a", "sa", 0, MAX_SENTENCES - 1, WITH_PAIRS, words="sentence A"), shared=True),
    replace(_number("sentence_b", "sb", None, MAX_SENTENCES, WITH_PAIRS, words="sentence B"), shared=True),
    replace(_choice("reading", "rd", ("alone", "together"), (*TOKENS, *MAP)), shared=True),
    # Heatmaps
    _choice("heatmaps_view", "view", ("blocks", "inside", "tokens", "pairs", "layers", "sentences"), HEATMAPS),
    _number("first_block", "b1", None, 1_000, HEATMAPS, words="left block"),
    _number("second_block", "b2", None, 1_000, HEATMAPS, words="right block"),
    _number("against", "ag", None, MAX_SENTENCES, HEATMAPS, words="sentence to compare with"),
    _number("also_against", "ag2", None, MAX_SENTENCES, HEATMAPS, words="second sentence to compare with"),
    _positions("partners", "pb", HEATMAPS, unique=True, words="sentences read with A"),
    _flag("own_scale", "own", False, HEATMAPS, words="separate colour scales"),
    _choice("one_side", "side", ("left", "right"), HEATMAPS, words="picture shown"),
    _flag("clustered", "clu", False, HEATMAPS, words="clustered order"),
    # Attention
    _choice(
        "attention_view",
        "view",
        ("head", "model", "neuron", "scores", "matrix", "glance", "patterns", "flow", "mask"),
        ATTENTION,
    ),
    # None: the head with the clearest pattern
    _number("block", "l", None, 1_000, ATTENTION),
    _number("head", "h", None, 1_000, ATTENTION),
    _choice("texts_filter", "f", ("all", "aa", "ab", "ba", "bb"), ATTENTION, words="attention from"),
    _choice("combination", "agg", ("one", "mean", "max"), ATTENTION, words="heads"),
    _positions("chosen_blocks", "bs", ATTENTION, unique=True),
    _positions("chosen_heads", "hs", ATTENTION, unique=True),
    _positions("queries", "qt", ATTENTION, unique=True, words="query tokens"),
    _flag("merge_words", "word", False, ATTENTION, words="whole words"),
    _choice("special_tokens", "sp", ("shown", "hidden", "renormalised"), ATTENTION),
    _choice("pattern", "p", PATTERNS, ATTENTION),
    _flag("pattern_over_all", "pa", False, ATTENTION, words="sentences of the pattern"),
    _choice("flow", "fl", ("rollout", "norms"), ATTENTION, words="method"),
    _number("flow_block", "fb", None, 1_000, ATTENTION, words="block"),
    _number("flow_token", "ft", None, 100_000, ATTENTION, words="token"),
    _choice("flow_figure", "ff", ("token", "all"), ATTENTION, words="figure"),
    _choice("flow_heads", "fh", ("together", "one"), ATTENTION, words="heads"),
    _number("masked", "mp", None, 100_000, ATTENTION, words="masked token"),
    _number("score_query", "sq", None, 100_000, ATTENTION, words="query"),
    _number("score_key", "sk", None, 100_000, ATTENTION, words="key of the curve"),
    _choice("long_cells", "cell", ("max", "mean"), ATTENTION, words="value of a cell"),
    _flag("flow_special", "fs", False, ATTENTION, words="special tokens"),
    _flag("mask_word", "mw", False, ATTENTION, words="whole word"),
    # Map
    _choice("map_view", "view", ("ends", "through", "senses"), MAP),
    _choice("map_source", "src", ("sentences", "corpus"), MAP, words="tokens of the map"),
    _choice("map_method", "by", ("auto", *METHODS), MAP, words="method of the map"),
    _choice("map_dims", "d", ("2", "3"), MAP, words="dimensions"),
    _number("map_neighbors", "nn", MapOptions.n_neighbors, 200, MAP, least=2, words="neighbours"),
    _number("map_min_dist", "md", round(100 * MapOptions.min_dist), 99, MAP, words="minimum distance"),  # hundredths
    _choice("map_metric", "met", METRICS, MAP, words="neighbours by"),
    _number("map_seed", "seed", 0, 9_999, MAP, words="seed"),
    _number("map_tokens", "n", 2_000, MAX_TOKEN_VECTORS, MAP, least=100, words="number of tokens"),
    _text("map_colour", "col", MAP, words="colour"),
    _flag("map_joint", "j", False, MAP, words="one map of both"),
    _number("map_first", "l1", 0, 1_000, MAP, words="first layer"),
    _text("map_find", "q", MAP, words="marked word"),
    _text("sense_word", "w", MAP, words="word"),
    _number("sense_layer", "sl", None, 1_000, MAP, words="layer of the map"),
    _choice("sense_source", "ws", ("demo", "corpus", "file"), MAP, words="sentences"),
    # The corpus, by a hash of its content: a link works while the server keeps the corpus, and reads no file
    Setting(
        "corpus",
        "corpus",
        "",
        _parse_corpus,
        lambda value: [value],
        (*SEARCH, *MAP, *EVALUATE, *PAIRS, *WHY),
        shared=True,
    ),
    # Search
    _choice("search_view", "view", ("results", "queries", "pairs", "corpus"), SEARCH),
    _flag("blind", "blind", False, SEARCH, words="blind comparison"),
    replace(_text("query", "q", (*SEARCH, *PAIRS), DEFAULT_QUERY, 1_000), if_chosen=True),
    _choice("similarity", "sim", SIMILARITIES, (*SEARCH, *EVALUATE)),
    _number("k", "k", 10, 100, (*SEARCH, *PAIRS), least=1, words="number of hits"),
    _choice("compare_with", "vs", COMPARISONS, SEARCH, words="comparison"),
    _number("reranked_hits", "cand", 100, 100, SEARCH, least=10, words="number of candidates"),
    _number("layer2", "l2", None, 1_000, SEARCH, words="layer of the comparison"),
    replace(
        _choice("pooling2", "pool2", EVERY_POOLING, SEARCH, words="pooling of the comparison"), default=None
    ),  # None: the model's own pooling
    _choice("similarity2", "sim2", SIMILARITIES, SEARCH, words="similarity of the comparison"),
    _choice("engine", "eng", ENGINES, SEARCH),
    _number("why", "why", None, 100_000_000, SEARCH, words="explained hit"),
    _choice("why_by", "wb", ("first", "second", "maxsim"), SEARCH, words="explained score"),
    Setting(  # None: the ready-made ones
        "typed_queries", "qs", None, _parse_queries, lambda value: list(value) or [""], SEARCH, words="list of queries"
    ),
    _number("shown_pairs", "n", None, MOST_PAIRS, SEARCH, least=LEAST_PAIRS, words="number of pairs"),
    # Evaluate
    _choice(
        "evaluate_view",
        "view",
        ("grid", "compare", "kinds", "graded", "similarity", "lab", "approximation", "pairs"),
        EVALUATE,
    ),
    _text("query_column", "col", (*EVALUATE, *WHY), words="column with the queries"),
    _choice("measure", "by", ("r1", "r5", "r10", "r20", "r50", "mrr", "ndcg"), EVALUATE),
    Setting("runs", "r", None, _parse_runs, lambda value: list(value) or [""], EVALUATE),
    _number(
        "candidates", "kc", 20, MOST_RUN_CANDIDATES, EVALUATE, least=LEAST_RUN_CANDIDATES, words="number of candidates"
    ),
    _text("reference", "ref", EVALUATE, words="run to compare with"),
    _choice("compare_figure", "fig", ("curves", "precision", "cost", "similarities"), EVALUATE, words="figure"),
    _number("right_at", "at", 1, 50, EVALUATE, least=1, words="number of first hits"),
    _choice("query_filter", "f", ("all", "wrong", "disagree", "right"), EVALUATE, words="kind of queries"),
    _number("opened", "n", None, 100_000_000, EVALUATE, words="opened query"),
    _choice("searched_kind", "kind", ("questions", "paraphrases"), EVALUATE, words="kind of search"),
    _choice("graded_source", "gs", ("demo", "file", "path"), (*EVALUATE, *PAIRS), words="collection"),
    _choice("graded_measure", "gm", ("ndcg", "mrr", "p10", "r10", "r100", "map"), EVALUATE, words="measure"),
    # None: the first that the files have, and all of a document's
    replace(
        _choice("graded_query_field", "gq", ("text", "title", "description", "narrative"), (*EVALUATE, *PAIRS)),
        default=None,
    ),
    replace(_choice("graded_document_fields", "gd", ("all", "title", "text"), (*EVALUATE, *PAIRS)), default=None),
    _flag("all_measures", "am", False, EVALUATE, words="all measures"),
    _choice("sts_source", "src", ("demo", "file"), EVALUATE, words="pairs"),
    _choice("correlation", "cor", ("spearman", "pearson"), EVALUATE, words="agreement"),
    _text("sts_run", "run", EVALUATE, words="run"),
    _number("lab_dims", "d", None, 4_096, EVALUATE, least=2, words="dimensions"),
    _number("lab_seed", "seed", 0, 9_999, EVALUATE, words="seed"),
    _choice("lab_pooling", "lp", LAB_POOLINGS, EVALUATE, words="pooling"),
    replace(_choice("approximation", "way", APPROXIMATIONS, EVALUATE, words="way to search"), default="bits-4"),
    # Pairs
    _choice("pairs_view", "view", ("given", "scores", "rerank", "disagree", "learnt"), PAIRS),
    _text("pair_query", "pq", PAIRS, DEFAULT_TRIPLE[0], 4_000, words="query of the pairs"),
    _text("pair_relevant", "pr", PAIRS, DEFAULT_TRIPLE[1], 4_000, words="relevant document"),
    _text("pair_other", "po", PAIRS, DEFAULT_TRIPLE[2], 4_000, words="other document"),
    _choice("truncation", "cut", TRUNCATIONS, PAIRS),
    _number("pair_length", "pl", None, 100_000, PAIRS, least=LEAST_LENGTH, words="maximum length of a pair"),
    _choice("score_scale", "sc", SCALES, PAIRS, words="scale of the scores"),
    _text("score_label", "lab", (*SEARCH, *EVALUATE, *PAIRS), words="label"),
    _number("scored_documents", "n", 200, 5_000, PAIRS, least=50, words="number of documents"),
    _choice("relevant_by", "rel", ("topic", "own", "marks"), PAIRS, words="relevant documents"),
    replace(_text("relevant_topic", "top", PAIRS, words="topic"), default=None),  # None: the likely one
    _number("sample_seed", "seed", 0, 9_999, PAIRS, words="seed"),
    Setting(
        "threshold",
        "th",
        None,
        lambda values: _thousandths(_single(values)),
        lambda value: [str(value)],
        PAIRS,
    ),  # thousandths of the scale's unit
    _choice("second_stage", "by", ("rerank", "maxsim"), PAIRS, words="second stage"),
    _number("disagreement_queries", "nq", 20, 100, PAIRS, least=5, words="number of queries"),
    _number("disagreement", "dis", 0, 1_000, PAIRS, words="pair"),
    _number("learnt_layer", "ll", None, 1_000, PAIRS, words="layer"),
    _choice("learnt_pooling", "lp", ("cls", "mean"), PAIRS, words="pooling"),
    _choice("learnt_reading", "lr", READINGS, PAIRS, words="reading"),
    _choice("learnt_features", "lf", COMBINATIONS, PAIRS, words="features"),
    replace(_choice("learnt_c", "lc", LEARNT_CS, PAIRS, words="C"), default="0.001"),
    _flag("learnt_balanced", "lw", False, PAIRS, words="balanced classes"),
    _choice("learnt_measure", "lm", ("map", "p10", "ndcg"), PAIRS, words="measure"),
    _number("learnt_queries", "lq", 200, 2_000, PAIRS, least=20, words="number of queries"),
    _number("learnt_first", "lk", 10, 50, PAIRS, least=1, words="candidates of each ranking"),
    _number("learnt_others", "lo", 20, 100, PAIRS, words="random documents"),
    _number("learnt_seed", "ld", 0, 9_999, PAIRS, words="seed"),
    # Why
    _choice("why_view", "view", ("split", "methods", "experiments", "debugger", "clinic"), WHY),
    _choice("context_source", "cx", ("sample", "corpus"), WHY, words="pairs that the score is compared with"),
    _choice("score_split", "by", ("tokens", "words", "blocks"), WHY, words="split of the score"),
    _choice("split_reference", "ref", ("smallest", "unknown", "mask", "padding", "mean"), WHY, words="reference"),
    _number("split_steps", "steps", 20, 100, WHY, least=4, words="number of steps"),
    # "ready": a ready-made pair in place of the sentences that a session starts with; a person's own are always shown
    _choice("experiment_texts", "xt", ("ready", "own"), WHY, words="sentences of the experiment"),
    _text("third_text", "xc", WHY, most=1_000, words="text C"),
    _choice("experiment_map", "xm", ("tokens", "heads", "parts"), WHY, words="map of experiments"),
    _choice("experiment_values", "xa", ("patch", "zero", "mean", "resample"), WHY, words="values put into B"),
    _choice("experiment_outcome", "xo", ("cosine", "score", "rank"), WHY, words="outcome"),
    _choice("experiment_numbers", "xv", ("share", "change"), WHY, words="numbers of the map"),
    _number("experiment_seed", "xs", 0, MOST_EXPERIMENT_SEED, WHY, words="seed"),
    Setting("patches", "xp", (), _parse_patches, lambda value: list(value), WHY),
    _choice("deletion_order", "del", ("first", "last"), WHY, words="order of removal"),
    _choice("deletion_from", "from", ("one", "both"), WHY, words="texts that lose words"),
    _flag("all_words", "aw", False, WHY, words="words of long texts"),
    _choice("clinic_figure", "cf", ("cosines", "layers", "probe"), WHY, words="figure"),
    _text("clinic_kind", "ck", WHY, "negation", words="kind of difference"),
    _choice("clinic_source", "cs", ("demo", "file"), WHY, words="pairs"),
    _number("clinic_pair", "cp", None, 10_000, WHY, words="opened pair"),  # by its place in the file, from 0
    _number("failed_query", "fq", None, 100_000_000, WHY),  # the row of its own text; None: the first of the list
    _choice("failed_order", "fo", ("nearest", "worst"), WHY, words="order of the failed queries"),
    _text("typed_query", "dq", WHY, "", 1_000),
    _number("right_row", "dr", None, 100_000_000, WHY, words="right text"),  # of the typed query
    _choice("failure_cause", "fc", ("all", *FAILURE_CAUSES), WHY, words="trait"),
    # Training. None: as the preset says
    _choice("training_view", "view", ("data", "objective", "run", "after"), TRAINING),
    _choice("training_preset", "preset", tuple(PRESETS), TRAINING, words="preset"),
    _preset_choice("training_data", "src", (*DEMO, "file", "corpus"), words="data"),
    _preset_choice("objective", "obj", tuple(OBJECTIVES)),
    _preset_choice("second_objective", "obj2", ("none", *OBJECTIVES)),
    _preset_choice("negatives", "neg", NEGATIVES, words="wrong answers"),
    _preset_choice("trained_weights", "weights", ("adapter", "all")),
    _preset_choice("training_pooling", "pool", POOLINGS, words="pooling"),
    _preset_choice("learning_rate", "lr", LEARNING_RATES),
    _number("epochs", "ep", None, 200, TRAINING, least=1),
    _number("batch_size", "bs", None, 256, TRAINING, least=2),
    _number("warm_up", "wu", None, 100, TRAINING, words="warm up"),  # per cent of all steps
    _number("training_length", "tl", None, 512, TRAINING, least=LEAST_LENGTH, words="maximum length"),
    _number("margin", "mg", None, 200, TRAINING),  # hundredths
    _number("most_rows", "rows", None, 1_000_000, TRAINING, least=4, words="number of rows"),
    _number("damage", "dmg", None, 200, TRAINING, words="noise added before training"),  # per cent
    _number("held_out", "ho", None, 50, TRAINING, least=5, words="held out rows"),  # per cent
    _number("training_seed", "seed", None, 9_999, TRAINING, words="seed"),
    _text("training_run", "run", TRAINING, words="run"),  # "": the newest
    _choice("training_figure", "fig", ("measures", "rate", "speed"), TRAINING, words="figure"),
    _number("smoothing", "sm", 10, 200, TRAINING, least=1),
    _number("training_step", "step", None, 10_000_000, TRAINING, words="step"),
    _number("training_layer", "l", None, 1_000, TRAINING, words="layer"),
    _text("watch_word", "w", TRAINING, words="word"),
    _choice("after_part", "part", ("measures", "sentences", "words", "layers", "heads"), TRAINING, words="comparison"),
    replace(_choice("after_data", "on", ("news", "held-out", "scored"), TRAINING, words="measured on"), default=None),
)
