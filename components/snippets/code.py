"""A snippet: the few lines of Python that compute a figure's numbers with the public functions of `components`.

Those of the folder `plain` need transformers alone, where it can load the model.

A maker of a snippet (the other modules of this folder) takes what its figure was computed from and gives the statements;
the import lines follow from the names that they use. Texts of people are written by `literal`, so that no text can end its
string, and names of people's files and models by `remark`, so that none can end its comment.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from components.retrieval.corpora.readers.separated_rows import AS_FOUND, DialectChoice

if TYPE_CHECKING:
    from components.model.backend import Backend
    from components.retrieval.corpora.texts import Texts

LINE = 100  # characters: a longer list has one item a line
REVISION = 12  # characters that are written of the checksum of a model's weights

# The module of every name that snippets import.
HOMES = {
    name: module
    for module, names in {
        "dataclasses": ("replace",),
        "functools": ("partial",),
        "pathlib": ("Path",),
        "transformers": ("AutoModelForMaskedLM", "AutoTokenizer"),
        "transformers.modeling_outputs": ("BaseModelOutput",),
        "components.folders": ("ASSETS",),
        "components.analysis.maps.projection": ("MapOptions", "layer_map", "start_map"),
        "components.analysis.maps.token_set": ("of_trace",),
        "components.analysis.why.contrasts": ("changed_forms", "pair_cosines", "separations", "shares_above"),
        "components.analysis.why.deletion": ("compare_methods",),
        "components.analysis.why.integrated_jacobians": ("split_to_words",),
        "components.analysis.why.patching": (
            "FromSentence",
            "Zeros",
            "align_tokens",
            "cosine_outcomes",
            "map_of",
            "measured",
        ),
        "components.analysis.why.probes": ("probe_layers",),
        "components.analysis.why.residual_split": ("split_of_trace",),
        "components.analysis.why.token_ledger": ("token_ledger",),
        "components.analysis.why.word_scores": ("PairSimilarity",),
        "components.analysis.word_senses": ("by_chance", "clusters", "sense_curve"),
        "components.retrieval.corpora.hub_datasets": ("fetch_dataset",),
        "components.retrieval.corpora.minimal_pairs": ("read_minimal_pairs",),
        "components.retrieval.corpora.senses": ("meant_occurrences", "read_senses"),
        "components.retrieval.engines.approximation": ("losses",),
        "components.retrieval.engines.contract": ("StoredVectors",),
        "components.retrieval.evaluation.graded.collection": ("demo_graded", "read_fields", "read_folder_fields"),
        "components.retrieval.evaluation.graded.metrics": ("graded_summary", "interpolated_precision"),
        "components.retrieval.evaluation.graded.ranks": ("ranker_relevant_ranks", "vector_relevant_ranks"),
        "components.retrieval.evaluation.grid": ("retrieval_runs",),
        "components.retrieval.evaluation.metrics": (
            "MEASURES",
            "first_ranks",
            "interval",
            "precision_curve",
            "recall",
            "recall_band",
            "recall_curve",
        ),
        "components.retrieval.evaluation.pair_runs": ("first_pairs", "pairs_of_corpus", "pairs_of_rows"),
        "components.retrieval.evaluation.pooling_lab": ("dimension_sweep", "lab_cells", "lab_layers"),
        "components.retrieval.evaluation.run_record": ("read_runs",),
        "components.retrieval.evaluation.second_stage": (
            "candidate_scores",
            "candidates",
            "either_ranks",
            "max_sim_candidate_scores",
            "second_relevant_ranks",
        ),
        "components.retrieval.evaluation.similarities": ("by_each_similarity",),
        "components.retrieval.evaluation.sts": (
            "correlations",
            "ranker_pair_scores",
            "read_scored_pairs",
            "scored_pairs",
            "similarity_grid",
        ),
        "components.retrieval.evaluation.threshold": ("analyse",),
        "components.retrieval.failures.causes": ("causes_of",),
        "components.retrieval.failures.failed_queries": ("find_failures", "searched_corpus"),
        "components.retrieval.failures.hubness": ("k_occurrence",),
        "components.retrieval.fusion.hits": ("fused_hits", "query_scores"),
        "components.retrieval.fusion.ranks": ("ranker_scores", "reranked_scores", "vector_scores"),
        "components.retrieval.fusion.scores": ("Fusion", "weighted"),
        "components.retrieval.failures.remedies.diagnosis": ("rows_of",),
        "components.retrieval.failures.remedies.folds": ("halves",),
        "components.retrieval.failures.remedies.kinds": ("Setting",),
        "components.retrieval.failures.remedies.present": ("present",),
        "components.retrieval.failures.traits": ("compared", "traits_of"),
        "components.retrieval.failures.vocabulary": ("CorpusWords",),
        "components.retrieval.learnt.comparison": ("RANKING_MEASURES", "Choice", "choose_candidates"),
        "components.retrieval.learnt.learnt_vectors": ("check_fit", "read_vectors", "vectors_of"),
        "components.retrieval.search.exact": ("ExactSearch", "top"),
        "components.retrieval.search.lexical": ("make_ranker",),
        "components.retrieval.search.paraphrases": ("most_similar_pairs",),
        "components.retrieval.search.relevance": ("Judgements",),
        "components.retrieval.search.rerank": ("in_order_of", "late_interaction_scores"),
        "components.retrieval.search.score_split": ("split_of_vectors",),
        "components.retrieval.search.splade": ("SpladeIndex", "SpladeRanker"),
        "components.retrieval.search.static_vectors": ("StaticRanker", "read_static_vectors"),
        "components.arrays": ("cosine",),
        "components.analysis.attention.flow": (
            "median_of_others",
            "norm_flow",
            "rollout",
            "summed_norms",
            "weighted_norms",
        ),
        "components.analysis.attention.head_kinds": ("head_kinds",),
        "components.analysis.attention.head_patterns": ("score_heads",),
        "components.analysis.attention.overview": ("attention_overview", "attention_row"),
        "components.analysis.attention.rotation": ("angles", "score_by_distance"),
        "components.analysis.attention.scores": ("head_scores",),
        "components.analysis.guesses.templates": ("template_guesses",),
        "components.analysis.inner_dimensions": ("strongest",),
        "components.analysis.attention.weights": (
            "combine",
            "merge_words",
            "of_sentence",
            "received_from",
            "renormalised",
            "second_text",
            "select_pair",
            "without_special",
        ),
        "components.analysis.block_change": ("block_change", "diagonal", "token_similarity"),
        "components.analysis.layer_zero": ("part_cosines", "part_norms"),
        "components.analysis.leave_one_out": ("leave_one_out",),
        "components.analysis.mask_predictions": ("kept_similarity", "mask_token", "top_predictions"),
        "components.analysis.matched_words": ("matched_words", "word_vectors"),
        "components.analysis.pair_scales": ("on_scale",),
        "components.analysis.pooling": ("pool",),
        "components.analysis.similarity": ("late_interaction",),
        "components.analysis.similarity.baseline": ("measure_sample", "sample_of_rows"),
        "components.analysis.similarity.calibration": ("of_vectors",),
        "components.analysis.similarity.cka": ("layer_cka",),
        "components.analysis.similarity.cosines": ("centred", "cosine_matrix", "pair_curves", "turn"),
        "components.analysis.similarity.depth": ("layer_steps", "token_pairs", "two_vectors", "two_words"),
        "components.analysis.similarity.sentences": ("sentence_similarity",),
        "components.model.architecture.parameters": ("totals_by_part",),
        "components.model.backend": ("Backend",),
        "components.model.one_block.nearly_closed": ("closed_share",),
        "components.retrieval.corpora.corpus": ("read_corpus",),
        "components.retrieval.corpora.readers.separated_rows": ("DialectChoice",),
        "components.retrieval.corpora.demo": ("demo_corpus", "demo_sentences", "sentences_that_differ"),
        "components.training.before_after": (
            "head_change",
            "layer_change",
            "retrieval_changes",
            "spearman_change",
            "word_curves",
        ),
        "components.training.data": ("from_columns", "joint_lengths", "load", "token_lengths"),
        "components.training.history": ("HistoryReader",),
        "components.training.runs": ("find",),
        "components.training.settings": ("TrainingSettings", "learning_rates"),
    }.items()
    for name in names
}
MODULES = {"json": "import json", "np": "import numpy as np", "torch": "import torch"}
LIBRARIES = ("numpy", "torch", "transformers")  # of which import lines stand between the standard library's and ours
# The first lines of what a person takes home: elsewhere Python would only say that there is no module of a common name.
START = """\
# Save this in the folder of BERT Internals, which has README.md and components/, and run it there, with the packages that
# its requirements.txt lists: python figure.py
try:
    import components.snippets
except ImportError:
    raise ImportError("Run this in the folder of BERT Internals: there is no package “components” here.") from None
"""


@dataclass(frozen=True)
class Snippet:
    """The statements of a figure's code."""

    setup: tuple[str, ...]  # the model and the texts, which the other figures of a page mostly share
    body: tuple[str, ...]  # what this figure computes of them; prints the numbers at its end
    is_plain: bool = False  # it needs nothing of this project

    @property
    def code(self) -> str:
        """The whole program, with its import lines, and how to run it where it needs this project."""
        written = program((*self.setup, "", *self.body))
        return written if self.is_plain else START + "\n" + written


@dataclass(frozen=True)
class NoCode:
    """Why a figure has no code, in a sentence for people."""

    reason: str


UNWRITTEN = NoCode("There is no code for it yet.")


def program(statements: Sequence[str]) -> str:
    """Statements below the import lines that they need."""
    body = "\n".join(statements)
    return "\n".join((*import_lines(body), "", body))


def import_lines(code: str) -> list[str]:
    """The import lines of the names of HOMES and MODULES that some code uses: the standard library, numpy, components."""
    used = {node.id for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)}
    homes = sorted({HOMES[name] for name in used if name in HOMES})
    named = {home: ", ".join(sorted(name for name in used if HOMES.get(name) == home)) for home in homes}
    lines = [MODULES[name] for name in MODULES if name in used]
    lines += [f"from {home} import {names}" for home, names in named.items()]
    packages = [line.split()[1].partition(".")[0] for line in lines]
    order = [0 if name not in (*LIBRARIES, "components") else 1 if name in LIBRARIES else 2 for name in packages]
    groups = [[line for line, group in zip(lines, order, strict=True) if group == number] for number in range(3)]
    return "\n\n".join("\n".join(group) for group in groups if group).splitlines()


def literal(value: Any) -> str:
    """A value as Python writes it, in double quotes where that needs no escape; a list or table has one item a line if long.

    Everything in a text that is not a printable character is escaped. Takes texts, numbers, None, and tuples, lists and
    mappings of them; raises TypeError for anything else, whose `repr` might not be Python.
    """
    if isinstance(value, str):
        written = repr(str(value))
        return f'"{written[1:-1]}"' if written[0] == "'" and '"' not in value else written
    if isinstance(value, bool | int | float | None):
        return repr(value)
    if isinstance(value, np.integer | np.floating | np.bool_):
        return repr(value.item())
    if isinstance(value, Mapping):
        return _bracketed("{}", [f"{literal(key)}: {literal(item)}" for key, item in value.items()])
    if isinstance(value, tuple):
        items = [literal(item) for item in value]
        return f"({items[0]},)" if len(items) == 1 else _bracketed("()", items)
    if isinstance(value, list):
        return _bracketed("[]", [literal(item) for item in value])
    raise TypeError(f"{type(value).__name__} cannot be written as code")


def _bracketed(brackets: str, items: Sequence[str]) -> str:
    one_line = f"{brackets[0]}{', '.join(items)}{brackets[1]}"
    if len(one_line) <= LINE and "\n" not in one_line:
        return one_line
    lines = "".join(f"    {line}\n" for item in items for line in f"{item},".split("\n"))
    return f"{brackets[0]}\n{lines}{brackets[1]}"


def call(function: str, *arguments: str, **options: Any) -> str:
    """A call: `arguments` are code, `options` are values, of which those that are None are left out."""
    named = [f"{name}={literal(value)}" for name, value in options.items() if value is not None]
    return f"{function}({', '.join((*arguments, *named))})"


def remark(text: str) -> str:
    """A comment in one line, whatever the text has in it."""
    return "# " + " ".join("".join(mark if mark.isprintable() else " " for mark in text).split())


def model(backend: Backend, name: str = "backend") -> str:
    """The statement that loads a model."""
    return f"{name} = {call('Backend.load', literal(backend.spec.key))}  {about_model(backend)}"


def about_model(backend: Backend) -> str:
    """The comment beside it: its name, and which weights they are."""
    return remark(f"{backend.spec.title}, revision {backend.revision.rpartition(':')[2][:REVISION]}")


def models(backends: Sequence[Backend]) -> tuple[tuple[str, ...], list[str]]:
    """The statements that load several models, and their names: backend, backend_2, ..."""
    names = ["backend", *(f"backend_{number}" for number in range(2, len(backends) + 1))]
    return tuple(model(backend, name) for name, backend in zip(names, backends, strict=True)), names


def texts(of: Sequence[str], name: str = "texts") -> str:
    """The statement that names some texts."""
    return f"{name} = {literal(list(of))}"


@dataclass(frozen=True)
class Input:
    """What a model reads in one pass: texts, or texts that are each read together with a second one."""

    backend: Backend
    texts: Sequence[str]
    max_length: int | None = None  # tokens
    pairs: Sequence[str | None] | None = None

    @property
    def setup(self) -> tuple[str, ...]:
        """The statements that name the model and the texts."""
        return model(self.backend), texts(self.texts)

    @property
    def _seconds(self) -> list[str | None] | None:
        return None if self.pairs is None or not any(pair is not None for pair in self.pairs) else list(self.pairs)

    def trace(self, attentions: bool = False) -> str:
        """The statement of the pass."""
        return "trace = " + call(
            "backend.trace",
            "texts",
            pairs=self._seconds,
            attentions=attentions or None,
            max_length=self.max_length,
        )

    def tokens(self) -> str:
        """The statement that only splits the texts into tokens."""
        return "sentences = " + call("backend.tokenize", "texts", pairs=self._seconds, max_length=self.max_length)

    def inside(self, score_terms: bool = False) -> str:
        """The statement of a pass over the first text, with what happens inside each block."""
        pair = None if self.pairs is None else self.pairs[0]
        options = {"pair": pair, "max_length": self.max_length, "score_terms": score_terms or None}
        return "inside = " + call("backend.inside", "texts[0]", **options)

    def snippet(self, *body: str) -> Snippet:
        """A snippet whose setup is this input."""
        return Snippet(self.setup, body)


def file(name: str, about: str, variable: str = "file") -> tuple[str, str]:
    """The statements that name a person's file, which a snippet cannot hold; `about` says what it was, before its name."""
    return (
        remark(f"{about} “{name}”: put this file into the same folder."),
        f"{variable} = Path({literal(name)})",
    )


def dialect_argument(dialect: DialectChoice) -> tuple[str, ...]:
    """What a person chose of how a file is written, as an argument of what reads it; none where nothing was chosen."""
    return (f"dialect={call('DialectChoice', **dialect.given)}",) if dialect else ()


def corpus(
    of: Texts,
    is_demo: bool,
    text_column: str | None = None,
    name: str = "corpus",
    encoding: str = "utf-8",
    dialect: DialectChoice = AS_FOUND,
) -> tuple[str, ...]:
    """The statements that read a corpus; a person's own file is read by its name."""
    if is_demo:
        return (f"{name} = demo_corpus()",)
    options = {"encoding": encoding if encoding != "utf-8" else None}
    column, chosen = [literal(text_column)] if text_column else [], dialect_argument(dialect)
    if "/" in of.name or "." not in of.name:  # a data set of the hub, whose name is not a file's
        named = literal(of.name)
        return (f"{name} = {call('read_corpus', f'fetch_dataset({named})', named, *column, *chosen, **options)}",)
    return (
        *file(of.name, f"The corpus of {len(of):,} sentences was"),
        f"{name} = {call('read_corpus', 'file', 'file.name', *column, *chosen, **options)}",
    )
