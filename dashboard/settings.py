"""The table of all settings: the address key and default of each, and how its value is read and written.

A value from an address is parsed and checked here; it is never evaluated or put into HTML.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from components.analysis.why.patch_codes import is_code
from components.model.catalog import (
    EMBEDDED_CROSS_ENCODER_KEY,
    EMBEDDED_KEY,
    RUN_PREFIX,
    catalog_spec,
    is_path,
    parse_model,
)
from components.model.tokenization import MAX_CHARACTERS, MAX_SENTENCES, clean_text
from components.model.trace import EVERY_POOLING
from components.retrieval.failures.causes import CAUSES
from components.retrieval.fusion.scores import METHODS, RRF_K
from components.retrieval.fusion.settings import MOST_DEPTH, MOST_RRF_K
from components.retrieval.rankings.run_code import MOST_FUSED, RunCode
from components.retrieval.search.exact import EVERY_SIMILARITY
from components.retrieval.search.lexical import KINDS
from dashboard import access
from dashboard.ready_made import lessons, ready_made_sets

LEAST_LENGTH = 3  # tokens: [CLS], one token of the text, [SEP]


@dataclass(frozen=True)
class Setting:
    """One value of a session that an address can hold."""

    name: str  # the session key
    short: str  # the address key
    default: Any
    parse: Callable[[list[str]], Any]  # raises ValueError (or UserError) for an invalid value
    show: Callable[[Any], list[str]]
    shared: bool = False  # read from every address, also of views that do not use it
    words: str = ""  # what people call it, where the name is not that
    if_chosen: bool = (
        False  # an address has it once it was chosen, even if it is the default: some view begins otherwise
    )

    # An address of a view with it always has it: those of before leave it out, and mean what was the default then. Or each one
    # does in which the setting of this name has a value.
    always: bool | str = False

    @property
    def label(self) -> str:
        """What a message to people calls it, close to the label of its control."""
        return self.words or ("view" if self.short == "view" else self.name.replace("_", " "))


def _single(values: list[str]) -> str:
    if len(values) != 1:
        raise ValueError("it is given more than once")
    return values[0]


def choice(name: str, short: str, options: tuple[str, ...], words: str = "") -> Setting:
    def parse(values: list[str]) -> str:
        value = _single(values)
        if value not in options:
            raise ValueError(f"it is not one of {', '.join(options)}")
        return value

    return Setting(name, short, options[0], parse, lambda value: [value], words=words)


def preset_choice(name: str, short: str, options: tuple[str, ...], words: str = "") -> Setting:
    """A choice for training that is None, as the preset says, until a person chooses."""
    return replace(choice(name, short, options, words=words), default=None)


def flag(name: str, short: str, default: bool, words: str = "") -> Setting:
    def parse(values: list[str]) -> bool:
        value = _single(values)
        if value not in {"0", "1"}:
            raise ValueError("it is not 0 or 1")
        return value == "1"

    return Setting(name, short, default, parse, lambda value: [str(int(value))], words=words)


def number(
    name: str,
    short: str,
    default: int | None,
    most: int,
    least: int = 0,
    words: str = "",
) -> Setting:
    def parse(values: list[str]) -> int:
        return _whole_number(_single(values), most, least)

    return Setting(name, short, default, parse, lambda value: [str(value)], words=words)


def positions(name: str, short: str, unique: bool = False, words: str = "") -> Setting:
    def parse(values: list[str]) -> tuple[int, ...]:
        if len(values) > MAX_SENTENCES:
            raise ValueError(f"there are more than {MAX_SENTENCES}")
        return tuple(_whole_number(value, 100_000) for value in (dict.fromkeys(values) if unique else values))

    return Setting(name, short, (), parse, lambda value: [str(position) for position in value], words=words)


MOST_OF_QUERY = 1_000  # characters


def text(name: str, short: str, default: str = "", most: int = 100, words: str = "") -> Setting:
    def parse(values: list[str]) -> str:
        return clean_text(_single(values))[:most]

    return Setting(name, short, default, parse, lambda value: [value], words=words)


def _whole_number(text: str, most: int, least: int = 0) -> int:
    if not (text.isascii() and text.isdigit()) or not least <= int(text[:9]) <= most:
        raise ValueError(f"it is not a whole number from {least:,} to {most:,}")
    return int(text[:9])


def thousandths(values: list[str]) -> int:
    """A number with a sign. Raises ValueError."""
    if not re.fullmatch(r"-?[0-9]{1,7}", text := _single(values)):
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


def model(name: str, short: str, default: str, words: str = "") -> Setting:
    def parse(values: list[str]) -> str:
        return allowed_model(_single(values))

    return Setting(name, short, default, parse, lambda value: [value], shared=True, words=words)


def parse_models(values: list[str]) -> tuple[str, ...]:
    """The keys of models to compare; a single empty text stands for none."""
    if values == [""]:
        return ()
    if len(values) > MOST_COMPARED - 1:
        raise ValueError(f"there are more than {MOST_COMPARED - 1}")
    return tuple(dict.fromkeys(allowed_model(value) for value in values))


def clean_sentences(lines: list[str]) -> tuple[str, ...]:
    """Lines as sentences, without empty lines and with invalid characters replaced; nothing else is changed."""
    return tuple(clean_text(line) for line in lines if line.strip())


def parse_sentences(values: list[str]) -> tuple[str, ...]:
    sentences = clean_sentences([" ".join(value.splitlines()) for value in values])
    if len(sentences) > MAX_SENTENCES or sum(map(len, sentences)) > MAX_CHARACTERS:
        raise ValueError(f"there are more than {MAX_SENTENCES} sentences or {MAX_CHARACTERS:,} characters")
    return sentences


def parse_runs(values: list[str]) -> tuple[str, ...]:
    """Codes of runs, as `RunCode` has them. A single empty code stands for no runs. Raises ValueError."""
    if values == [""]:
        return ()
    if len(values) > MOST_RUNS:
        raise ValueError(f"there are more than {MOST_RUNS}")
    return tuple(dict.fromkeys(str(RunCode.read(value)) for value in values))


def parse_hybrid(values: list[str]) -> tuple[str, ...]:
    """What is put together with a list by vectors: kinds of rankings by words, "maxsim", or other vectors as "m.3.mean".

    A single empty value stands for none.
    """
    if values == [""]:
        return ()
    if len(values) >= MOST_FUSED:
        raise ValueError(f"there are more than {MOST_FUSED - 1}")
    for value in values:
        if value != "maxsim" and not ((code := RunCode.read(value)).words or (code.is_vectors and code.model == "m")):
            raise ValueError("it is no ranking that is put together with the list by vectors")
    return tuple(dict.fromkeys(values))


def parse_patches(values: list[str]) -> tuple[str, ...]:
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


def parse_queries(values: list[str]) -> tuple[str, ...]:
    if len(values) > MOST_QUERIES:
        raise ValueError(f"there are more than {MOST_QUERIES:,}")
    return clean_queries("\n".join(" ".join(value.splitlines()) for value in values))


def parse_corpus(values: list[str]) -> str:
    value = _single(values)
    if not re.fullmatch(r"[0-9a-f]{32}", value):
        raise ValueError("it does not identify a corpus")
    return value


def parse_lecture(values: list[str]) -> tuple[str, ...]:
    """The pictures of a lecture, each as `dashboard.sharing.lecture.star_of` writes it, perhaps with a title behind it.

    Raises ValueError.
    """
    if len(values) > MOST_PICTURES:
        raise ValueError(f"there are more than {MOST_PICTURES} pictures")
    if not all(map(is_star, values)):
        raise ValueError("it names no figure of a view")
    return tuple({untitled(value): value for value in reversed(values)}.values())[::-1]


def untitled(star: str) -> str:
    """What names a picture, without the title that a person gave it."""
    return "#".join(star.split("#")[:2])


def is_star(text: str) -> bool:
    """Whether a text names a figure of a view as a lecture does."""
    return _STAR.fullmatch(text) is not None


def parse_lesson(values: list[str]) -> tuple[str, int]:
    """A lesson and the number of its step, from 1: "two-banks.3"; without a number its first step."""
    key, _, step = _single(values).partition(".")
    lesson = lessons().get(key)
    if lesson is None:
        raise ValueError("there is no such lesson")
    return key, _whole_number(step or "1", len(lesson.steps), 1)


def parse_class_code(values: list[str]) -> str:
    value = _single(values)
    if value != class_code(value):
        raise ValueError("it is not of letters, digits and hyphens")
    return value


def class_code(text: str) -> str:
    """The code of a class: what a person typed, without the characters that a code cannot have."""
    return re.sub(r"[^a-z0-9-]", "", text.strip().lower().replace(" ", "-"))[:MOST_CODE]


MOST_COMPARED = 4  # models beside each other, the session's own included
MOST_RUNS = 24
MOST_QUERIES = 1_000  # searched at once
LEAST_PAIRS, MOST_PAIRS = 10, 1_000  # of similar sentences
LEAST_COSINE = 50  # hundredths, of near duplicates
MOST_PICTURES = 40  # of a lecture
# A page, the values of its address, the key of a figure, and a title of one's own.
_STAR = re.compile(r"[a-z]{1,20}\?[^#\s]{0,8000}#[^#\s]{1,200}(?:#[^#\s]{1,1000})?")
MOST_CODE = 24  # characters of a class's code
MOST_PATCHES = 12  # made together
MOST_EXPERIMENT_SEED = 9_999
LEARNING_RATES = ("1e-06", "5e-06", "1e-05", "2e-05", "5e-05", "0.0001", "0.0002", "0.0005", "0.001", "0.002", "0.005")
LEARNT_CS = ("0.00001", "0.0001", "0.001", "0.01", "0.1", "1", "10")
LAB_POOLINGS = ("mean", "cls", "max", "last4", "idf")
ENGINES = ("exact", "usearch", "milvus")
APPROXIMATIONS = (
    *("float16", "int8", "bits-1", "bits-4", "bits-10", "first-2", "first-4", "first-8"),
    *("hnsw-16", "hnsw-64", "hnsw-256"),
)
COMPARISONS = ("none", "setting", "model", "rerank", "maxsim", "splade", *KINDS, "static", "fused")
FAILURE_CAUSES = tuple(name.replace(" ", "-") for name in CAUSES)  # as in addresses
DEFAULT_SET = "bank"
DEFAULT_QUERY = "volcano erupted"
# A query, a document that answers it, and one that does not.
DEFAULT_TRIPLE = (
    "How do bees find their way home?",
    "Bees use the position of the sun to return to the hive.",
    "The family found a new home near the old mill.",
)
SHARED: tuple[Setting, ...] = (  # what views of several pages use; the others are declared with their views
    model("model", "m", EMBEDDED_KEY),
    model("model2", "m2", "", words="second model"),
    model("cross_encoder", "ce", EMBEDDED_CROSS_ENCODER_KEY, words="cross encoder"),
    Setting(
        "sentences",
        "s",
        ready_made_sets()[DEFAULT_SET].sentences,
        parse_sentences,
        lambda value: list(value) or [""],
        shared=True,
    ),
    replace(number("max_length", "len", None, 100_000, least=LEAST_LENGTH, words="maximum length"), shared=True),
    replace(flag("projector", "proj", False, words="projector mode"), shared=True),
    # The open lesson, with the number of its step from 1, and the class whose answers are counted together
    Setting(
        "lesson",
        "lesson",
        (),
        parse_lesson,
        lambda value: [f"{value[0]}.{value[1]}"] if value else [],
        shared=True,
    ),
    Setting("class_code", "class", "", parse_class_code, lambda value: [value], shared=True, words="class code"),
    # Tokens of interest: one position for each sentence, [CLS] at 0
    positions("tokens", "t", words="chosen tokens"),
    # None: the first, or where two tokenizers are compared the sentence in which they differ most
    number("sentence", "n", None, MAX_SENTENCES - 1),
    number("layer", "l", None, 1_000),
    # None: the model's own pooling
    replace(choice("pooling", "pool", EVERY_POOLING), default=None),
    flag("include_special", "sp", True, words="special tokens"),
    flag("percentiles", "pct", False),
    # Sentences A and B of a pair (A counts from 0; B counts from 1, and 0 stands for none). Heatmaps and Attention read
    # them as one input as soon as there is a B; Tokens and Map show all sentences too, so that they need `reading`.
    replace(number("sentence_a", "sa", 0, MAX_SENTENCES - 1, words="sentence A"), shared=True),
    replace(number("sentence_b", "sb", None, MAX_SENTENCES, words="sentence B"), shared=True),
    replace(choice("reading", "rd", ("alone", "together")), shared=True),
    # The corpus, by a hash of its content: a link works while the server keeps the corpus, and reads no file
    Setting(
        "corpus",
        "corpus",
        "",
        parse_corpus,
        lambda value: [value],
        shared=True,
    ),
    replace(text("query", "q", DEFAULT_QUERY, MOST_OF_QUERY), if_chosen=True),
    # None: what the model was published for
    replace(choice("similarity", "sim", EVERY_SIMILARITY), default=None),
    number("k", "k", 10, 100, least=1, words="number of hits"),
    # How rankings are put together: by ranks, ranks with weights, or scores, the k of the ranks, the weight of all but the
    # first in per cent, and how many first texts of each count, 0 for all
    choice("fusion_by", "fu", (*METHODS, "weighted"), words="way to put rankings together"),
    number("fusion_k", "fuk", RRF_K, MOST_RRF_K, words="k of reciprocal rank fusion"),
    number("fusion_weight", "fuw", 50, 100, words="weight of the other rankings"),
    number("fusion_depth", "fud", 0, MOST_DEPTH, words="number of texts of each ranking"),
    text("query_column", "col", words="column with the queries"),
    # All texts of the corpus, or those alone that are right for some query; addresses of before: declared/older.py
    replace(choice("texts_searched", "tx", ("all", "right")), always="corpus"),
    choice("graded_source", "gs", ("demo", "file", "path"), words="collection"),
    # None: the first that the files have, and all of a document's
    replace(
        choice("graded_query_field", "gq", ("text", "title", "description", "narrative")),
        default=None,
    ),
    replace(choice("graded_document_fields", "gd", ("all", "title", "text")), default=None),
    text("score_label", "lab", words="label"),
)
