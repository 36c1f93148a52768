"""Code for evaluations: ranks of the correct answers at every layer and pooling, runs compared, agreement with people."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

from components.retrieval.corpora.readers.separated_rows import AS_FOUND, DialectChoice
from components.snippets import code
from components.snippets.code import Snippet

if TYPE_CHECKING:
    from components.model.backend import Backend
    from components.model.trace import Pooling
    from components.retrieval.evaluation.pooling_lab import LabPooling
    from components.retrieval.fusion.scores import Fusion
    from components.retrieval.search.exact import Similarity
    from components.retrieval.search.lexical import Kind
    from components.snippets.search import SecondStage


@dataclass(frozen=True)
class Collection:
    """The statements that give `documents` and `queries`, and what knows the correct answers: `pairs` or `graded`."""

    statements: tuple[str, ...]
    is_graded: bool = False

    @property
    def rank(self) -> str:
        """The function that ranks by vectors."""
        return f"{self.answers}.ranks_by_vectors"

    @property
    def answers(self) -> str:
        """What knows the correct answers."""
        return "graded" if self.is_graded else "pairs"

    def by_ranker(self, name: str, ranker: str) -> list[str]:
        """The statements that give the ranks of the run of this name by a ranking of words."""
        place = f"runs[{code.literal(name)}]"
        return [f"{place} = {self.answers}.ranks_by_words({ranker})"]


def pairs(corpus: Sequence[str], column: str) -> Collection:
    """Each sentence of a corpus is a correct answer of the query in a column."""
    return Collection(
        (
            *corpus,
            f"pairs = pairs_of_corpus(corpus, {code.literal(column)})",
            "documents, queries = pairs.documents.texts, pairs.queries.texts",
        )
    )


def graded(
    files: Sequence[str] | None = None, folder: str = "", query_field: str = "", document_fields: Sequence[str] = ()
) -> Collection:
    """A collection with graded relevance: that of a person's `files` or `folder`, else the included one."""
    if not files and not folder:
        read: tuple[str, ...] = ("graded = demo_graded(demo_corpus())",)
    else:
        fields = f"{code.literal(query_field)}, {code.literal(list(document_fields))}"
        if folder:
            read = (f"graded = read_folder_fields(Path({code.literal(folder)})).chosen({fields})",)
        else:
            names = list(files or ())
            read = (
                code.remark("The collection was uploaded: put these files into the same folder."),
                f"files = {{name: Path(name) for name in {code.literal(names)}}}",
                f"graded = read_fields(files).chosen({fields})",
            )
    return Collection((*read, "documents, queries = graded.documents, graded.queries"), True)


@dataclass(frozen=True)
class VectorRun:
    """A layer and pooling of a model; with `second`, its first `candidates` are ranked again."""

    name: str
    backend: Backend
    layer: int
    pooling: Pooling
    max_length: int | None
    second: SecondStage | None = None
    candidates: int = 0


@dataclass(frozen=True)
class WordRun:
    """A ranking of words; static vectors come from the `backend`, or from the person's file of the name `file`."""

    name: str
    kind: Kind
    backend: Backend
    file: str = ""


@dataclass(frozen=True)
class SpladeRun:
    """SPLADE by a model."""

    name: str
    backend: Backend
    max_length: int | None


SingleRun = VectorRun | WordRun | SpladeRun


@dataclass(frozen=True)
class FusedRun:
    """Two or three runs put together."""

    name: str
    parts: tuple[SingleRun, ...]
    fusion: Fusion


@dataclass(frozen=True)
class LoadedRun:
    """A run of a person's file of the name `file`."""

    title: str  # on the page, where it may stand beside a run of the same name
    name: str  # in the file
    file: str


Variable = Callable[["Backend", str], str]  # the name of a model in the code
AnyRun = SingleRun | FusedRun | LoadedRun


def _embed_options(backend: str, layers: Sequence[int], poolings: Sequence[str], length: int | None, role: str) -> str:
    chosen = f"{code.literal(list(layers))}, {code.literal(list(poolings))}"
    return code.call(f"{backend}.embed_options", chosen, max_length=length, precision="float32", role=role or None)


def _ranked_by_vectors(
    backend: str, layers: Sequence[int], poolings: Sequence[str], length: int | None, rank: str
) -> tuple[str, ...]:
    """The statements that give `ranks`, (layer, pooling) to the ranks of all queries."""
    return (
        f"asked = {_embed_options(backend, layers, poolings, length, 'query')}",
        f"stored = {_embed_options(backend, layers, poolings, length, 'document')}",
        f"found = retrieval_runs({backend}, documents, queries, {rank}, stored, asked)",
        "ranks = {(layer, pooling): of_cell for layer, pooling, of_cell in found}",
    )


def grid(
    backend: Backend,
    collection: Collection,
    layers: Sequence[int],
    poolings: Sequence[str],
    max_length: int | None,
    measure: str,
) -> Snippet:
    """A measure at every layer and pooling."""
    return Snippet(
        (code.model(backend), *collection.statements),
        (
            *_ranked_by_vectors("backend", layers, poolings, max_length, collection.rank),
            f"values = {{cell: 100 * MEASURES[{code.literal(measure)}](ranks[cell]).mean() for cell in ranks}}",
            "print(values)  # per cent, by layer and pooling",
        ),
    )


def curve(
    backend: Backend,
    collection: Collection,
    cells: Sequence[tuple[int, Pooling]],
    max_length: int | None,
    most: int,
) -> Snippet:
    """Recall@k of some cells, and the interval of the first."""
    layers, poolings = (sorted(set(part)) for part in zip(*cells, strict=True))
    return Snippet(
        (code.model(backend), *collection.statements),
        (
            *_ranked_by_vectors("backend", layers, poolings, max_length, collection.rank),
            f"values = [100 * recall_curve(ranks[cell], {most}) for cell in {code.literal(list(cells))}]",
            f"low, high = recall_band(ranks[{code.literal(cells[0])}], {most})  # its 95 % interval, as shares",
            "print(values, 100 * low, 100 * high)  # per cent, for k = 1, 2, ...",
        ),
    )


def _runs(collection: Collection, runs: Sequence[AnyRun]) -> Snippet:
    """The statements that give `runs`, name to ranks."""
    models: dict[str, Backend] = {}
    variable = partial(_variable, models)
    body = ["runs = {}"]
    for name, group in _by_model(runs).items():
        backend = variable(group[0].backend, "backend")
        layers, poolings = (sorted({part(run) for run in group}) for part in (lambda r: r.layer, lambda r: r.pooling))
        body += _ranked_by_vectors(backend, layers, poolings, group[0].max_length, collection.rank)
        plain = {run.name: (run.layer, run.pooling) for run in group if run.second is None}
        body += [f"runs[{code.literal(name)}] = ranks[{code.literal(cell)}]" for name, cell in plain.items()]
        for run in group:
            if run.second is not None:
                body += _second_stage(collection, run, run.second, backend, variable(run.second.backend, "scorer"))
    for other in runs:
        if isinstance(other, FusedRun):
            found = f"{collection.answers}.ranks_by_fusions(scores, [{_fusion(other.fusion)}])"
            body += [*_fused_scores(collection, other, variable), f"runs[{code.literal(other.name)}] = {found}[0]"]
        elif isinstance(other, WordRun | SpladeRun):
            before, ranker = _ranker(other, variable)
            body += [*before, *collection.by_ranker(other.name, ranker)]
    for file in dict.fromkeys(run.file for run in runs if isinstance(run, LoadedRun)):
        names = {run.title: run.name for run in runs if isinstance(run, LoadedRun) and run.file == file}
        body += [
            *code.file(file, f"Loaded ({', '.join(names.values())}) from"),
            "of_file = {run.name: run.ranks for run in read_runs(file.read_bytes(), file.name)}",
            f"runs |= {{title: of_file[name] for title, name in {code.literal(names)}.items()}}",
        ]
    setup = (*(code.model(backend, name) for name, backend in models.items()), *collection.statements)
    return Snippet(setup, tuple(body))


def _variable(models: dict[str, Backend], backend: Backend, preferred: str) -> str:
    """The name of a model in the code: the one that it has in `models`, or a new one."""
    for name, known in models.items():
        if known.spec.key == backend.spec.key:
            return name
    name = preferred if preferred not in models else f"{preferred}_{len(models) + 1}"
    models[name] = backend
    return name


def _by_model(runs: Sequence[AnyRun]) -> Mapping[str, list[VectorRun]]:
    groups: dict[str, list[VectorRun]] = {}
    for run in runs:
        if isinstance(run, VectorRun):
            groups.setdefault(run.backend.spec.key, []).append(run)
    return groups


def _ranker(run: WordRun | SpladeRun, variable: Variable) -> tuple[list[str], str]:
    """The statements before a ranker that is no vectors', and the ranker."""
    if isinstance(run, SpladeRun):
        backend = variable(run.backend, "backend")
        index = code.call("SpladeIndex.of_texts", backend, "documents", max_length=run.max_length)
        return [], f"SpladeRanker({backend}, {index})"
    if run.kind != "static":
        return [], f"make_ranker({code.literal(run.kind)}, documents)"
    if not run.file:
        return [], f"StaticRanker.of_model({variable(run.backend, 'backend')}, documents)"
    before = [*code.file(run.file, "The word vectors were those of"), "words = read_static_vectors(file, file.name)"]
    return before, "StaticRanker.of_words(words, documents)"


def _vectors(run: VectorRun, backend: str) -> list[str]:
    """The statements that give `of_queries` and `of_documents`, [text, dim]."""
    cell = ([run.layer], [run.pooling], run.max_length)
    return [
        f"{name} = {backend}.embed({texts}, options={_embed_options(backend, *cell, role)})[0, 0]"
        for name, texts, role in (("of_queries", "queries", "query"), ("of_documents", "documents", "document"))
    ]


def _fused_scores(collection: Collection, run: FusedRun, variable: Variable) -> list[str]:
    """The statements that give `scores`, of each part."""
    body = ["scores = []"]
    for part in run.parts:
        if not isinstance(part, VectorRun):
            before, ranker = _ranker(part, variable)
            body += [*before, f"scores.append(ranker_scores({ranker}, queries))"]
            continue
        backend, scores = variable(part.backend, "backend"), "vector_scores(of_queries, of_documents)"
        if part.second is None:
            body += _vectors(part, backend)
        else:
            scorer = variable(part.second.backend, "scorer")
            before, reranked = _candidates(collection, part, part.second, backend, scorer)
            body, scores = body + before, f"reranked_scores({scores}, rows, {reranked})"
        body.append(f"scores.append({scores})")
    return body


def _fusion(fusion: Fusion) -> str:
    if fusion.method != "rrf":
        return f"weighted({fusion.weights[1]})"
    return "Fusion()" if len(fusion.weights) == 2 else f"Fusion(weights={fusion.weights})"


def fused_weights(collection: Collection, run: FusedRun, measure: str, steps: int) -> Snippet:
    """A measure of two runs together by the weight of the last, and by reciprocal ranks."""
    models: dict[str, Backend] = {}
    body = _fused_scores(collection, run, partial(_variable, models))
    return Snippet(
        (*(code.model(backend, name) for name, backend in models.items()), *collection.statements),
        (
            *body,
            f"fusions = [*(weighted(step / {steps}) for step in range({steps + 1})), Fusion()]",
            f"found = {collection.answers}.ranks_by_fusions(scores, fusions)",
            f"values = [100 * MEASURES[{code.literal(measure)}](ranks).mean() for ranks in found]",
            f"print(values)  # per cent, for weights 0, {1 / steps:g}, ..., 1 of the last, then by ranks",
        ),
    )


def _candidates(
    collection: Collection, run: VectorRun, second: SecondStage, backend: str, scorer: str
) -> tuple[list[str], str]:
    """The statements that give `rows`, the candidates, and their scores."""
    if second.layer is None:
        options = {"label": second.label, "max_length": second.max_length}
        score = f"{scorer}.score_pairs"
        if any(value is not None for value in options.values()):
            score = code.call("partial", score, **options)
        scores = f"candidate_scores({score}, queries, documents, rows)"
    else:
        arguments = (scorer, str(second.layer), "queries", "documents", "rows")
        scores = code.call("max_sim_candidate_scores", *arguments, max_length=second.max_length)
    own = ", own=graded.own" if collection.is_graded else ""
    rows = f"rows = candidates(of_queries, of_documents, {run.candidates}{own})"
    return [*_vectors(run, backend), rows], scores


def _second_stage(collection: Collection, run: VectorRun, second: SecondStage, backend: str, scorer: str) -> list[str]:
    before, scores = _candidates(collection, run, second, backend, scorer)
    first = f"ranks[{code.literal((run.layer, run.pooling))}], rows, {scores}"
    both = f"second_relevant_ranks({first})" if collection.is_graded else f"either_ranks({first}, pairs.gold)"
    return [*before, f"runs[{code.literal(run.name)}] = {both}"]


def ranks(collection: Collection, runs: Sequence[AnyRun]) -> Snippet:
    """The rank of each query's first correct answer in some runs."""
    found = _runs(collection, runs)
    firsts = "values = {name: first_ranks(ranks) for name, ranks in runs.items()}"
    return Snippet(found.setup, (*found.body, firsts, "print(values)  # [query] each; 2147483647 is not found"))


def compared(
    collection: Collection, runs: Sequence[AnyRun], most: int, figure: Literal["curves", "precision"]
) -> Snippet:
    """Recall@k of some runs, or their precision at k."""
    found = _runs(collection, runs)
    curve = f"100 * {'recall' if figure == 'curves' else 'precision'}_curve(ranks, {most})"
    return Snippet(
        found.setup,
        (
            *found.body,
            f"values = {{name: {curve} for name, ranks in runs.items()}}",
            "print(values)  # per cent, for k = 1, 2, ...",
        ),
    )


def precision_by_recall(collection: Collection, runs: Sequence[AnyRun]) -> Snippet:
    """Interpolated precision at recall 0, 0.1, ..., 1 of some runs with graded relevance."""
    found = _runs(collection, runs)
    return Snippet(
        found.setup,
        (
            *found.body,
            "values = {name: 100 * interpolated_precision(ranks).mean(axis=0) for name, ranks in runs.items()}",
            "print(values)  # per cent, at recall 0, 0.1, ..., 1",
        ),
    )


def graded_summaries(collection: Collection, runs: Sequence[AnyRun]) -> Snippet:
    """All measures with graded relevance of some runs, in per cent."""
    found = _runs(collection, runs)
    measured = "values = {name: graded_summary(ranks) for name, ranks in runs.items()}"
    return Snippet(found.setup, (*found.body, measured, "print(values)  # means over queries in per cent"))


def recall_by_layer(collection: Collection, models: Sequence[tuple[VectorRun, Sequence[int]]]) -> Snippet:
    """Recall@1 of some models at each of their layers, which are given; each with the pooling of its run."""
    loaded, names = code.models([run.backend for run, _ in models])
    body = ["values = {}"]
    for (run, layers), name in zip(models, names, strict=True):
        body += _ranked_by_vectors(name, layers, [run.pooling], run.max_length, collection.rank)
        cell = f"ranks[layer, {code.literal(run.pooling)}]"
        measured = f"[100 * recall({cell}, 1).mean() for layer in {code.literal(list(layers))}]"
        body.append(f"values[{code.literal(run.name)}] = {measured}")
    return Snippet((*loaded, *collection.statements), (*body, "print(values)  # per cent, [layer] each"))


@dataclass(frozen=True)
class LayersOf:
    """The vectors of a model at some layers by one pooling."""

    backend: Backend
    layers: Sequence[int]
    pooling: Pooling
    max_length: int | None


def layers_alike(collection: Collection, models: Sequence[LayersOf]) -> Snippet:
    """The similarity (CKA) of layers of one model with those of another, over the documents."""
    loaded, names = code.models([model.backend for model in models])
    vectors = []
    for model, name in zip(models, names, strict=True):
        options = _embed_options(name, model.layers, [model.pooling], model.max_length, "document")
        vectors.append(f"{name}.embed(documents, options={options})[:, 0]")
    body = (f"first = {vectors[0]}  # [layer, sentence, dim]", f"second = {vectors[1]}")
    shown = ("compared = layer_cka(first, second)", "values = compared.debiased", "print(values)  # [layer, layer]")
    return Snippet((*loaded, *collection.statements), (*body, *shown))


def by_similarity(collection: Collection, runs: Sequence[VectorRun]) -> Snippet:
    """Recall@1 of some layers and poolings by cosine and by dot product, and how much longer the first hits are."""
    models, body = [], ["values = {}"]
    for number, group in enumerate(_by_model(runs).values(), start=1):
        name = "backend" if number == 1 else f"backend_{number}"
        models.append(code.model(group[0].backend, name))
        cells = [(run.layer, run.pooling) for run in group]
        length = group[0].max_length
        options = [
            code.call(f"{name}.embed_options", "[layer], [pooling]", max_length=length, precision="float32", role=role)
            for role in ("document", "query")
        ]
        inner = (
            f"    stored = {name}.embed(documents, options={options[0]})[0, 0]",
            f"    asked = {name}.embed(queries, options={options[1]})[0, 0]",
            "    search = ExactSearch(stored)",
            "    for similarity, found in by_each_similarity(asked, search, rank=pairs.ranks_by_vectors).items():",
            "        longer = found.mean_of_first_hits(search.norms) / search.norms.mean() - 1",
            "        more = found.mean_of_first_hits(tokens) / tokens.mean() - 1",
            "        recall_at_1 = recall(found.ranks, 1).mean()",
            f"        values[{name}.spec.title, layer, pooling, similarity] = 100 * np.array([recall_at_1, longer, more])",
        )
        body.append(f"tokens = np.array({name}.tokenization.lengths(documents))")
        body.append("\n".join((f"for layer, pooling in {code.literal(cells)}:", *inner)))
    body.append("print(values)  # per cent: Recall@1; by how much the first hits are longer, in length and in tokens")
    return Snippet((*models, *collection.statements), tuple(body))


def kinds(
    models: Sequence[tuple[Backend, int | None]],
    columns: Mapping[str, tuple[str, str]],
    similarity: Similarity,
    words: str,
) -> Snippet:
    """Recall of some models and of a word ranking on the included collections; `columns`: of documents and queries."""
    names = ["backend", *(f"backend_{number}" for number in range(2, len(models) + 1))]
    body = [
        f"collections = {code.literal({kind: list(both) for kind, both in columns.items()})}",
        "values = {}",
    ]
    inner = [
        'corpus = read_corpus(ASSETS / "collections" / f"{kind}.jsonl", f"{kind}.jsonl", document)',
        "pairs = pairs_of_corpus(corpus, query)",
        "documents, queries = pairs.documents.texts, pairs.queries.texts",
    ]
    for name, (backend, length) in zip(names, models, strict=True):
        chosen = ([backend.facts.layers], [backend.own_pooling], length)
        inner += [
            f"stored = {name}.embed(documents, options={_embed_options(name, *chosen, 'document')})[0, 0]",
            f"asked = {name}.embed(queries, options={_embed_options(name, *chosen, 'query')})[0, 0]",
            f"ranks = by_each_similarity(asked, ExactSearch(stored))[{code.literal(similarity)}].ranks",
            f"values[{code.literal(backend.spec.title)}, kind] = "
            "[100 * interval(recall(ranks, k)).value for k in (1, 5, 10)]",
        ]
    inner += [
        f"ranks = pairs.ranks_by_words(make_ranker({code.literal(words)}, documents))",
        f"values[{code.literal(words)}, kind] = [100 * interval(recall(ranks, k)).value for k in (1, 5, 10)]",
    ]
    lines = "\n".join(f"    {line}" for line in inner)
    body.append(f"for kind, (document, query) in collections.items():\n{lines}")
    body.append("print(values)  # Recall@1, Recall@5 and Recall@10 in per cent")
    return Snippet(
        tuple(code.model(backend, name) for name, (backend, _) in zip(names, models, strict=True)), tuple(body)
    )


def scored(
    name: str | None,
    chosen: Mapping[str, str] | None = None,
    part: str | None = None,
    dialect: DialectChoice = AS_FOUND,
    encoding: str = "utf-8",
) -> tuple[str, ...]:
    """The statements that give `scored`: the included pairs with people's scores, or those of a file of this `name`."""
    if name is None:
        return ('scored = scored_pairs(read_corpus(ASSETS / "sts_pairs.jsonl", "sts_pairs.jsonl", "sentence1"))',)
    choices = {
        "chosen": None if chosen is None else dict(chosen),
        "part": part,
        "encoding": None if encoding == "utf-8" else encoding,
    }
    return (
        *code.file(name, "The pairs were those of"),
        f"scored = {code.call('read_scored_pairs', 'file, file.name', *code.dialect_argument(dialect), **choices)}",
    )


def agreement(
    backend: Backend,
    of: Sequence[str],
    layers: Sequence[int],
    poolings: Sequence[str],
    max_length: int | None,
    words: Sequence[Kind],
    *,
    file_of_vectors: str,
) -> Snippet:
    """Correlations with people's scores at every layer and pooling, and of word rankings."""
    body = [
        f"options = {_embed_options('backend', layers, poolings, max_length, '')}",
        "grid = similarity_grid(backend, scored, options)",
        "print(grid.spearman.values, grid.pearson.values)  # [layer, pooling] each",
    ]
    plain = [kind for kind in words if kind != "static"]
    if words:
        scores = "ranker_pair_scores(partial(make_ranker, kind), scored)"
        body.append(f"words = {{kind: {scores} for kind in {code.literal(plain)}}}")
        if "static" in words:
            body += _static_pair_scores(file_of_vectors)
        body.append("of_words = {kind: correlations(values, scored.scores) for kind, values in words.items()}")
        body.append("print(of_words)  # Spearman, Pearson")
    return Snippet((code.model(backend), *of), tuple(body))


def _static_pair_scores(file_of_vectors: str) -> list[str]:
    if not file_of_vectors:
        return ['words["static"] = ranker_pair_scores(partial(StaticRanker.of_model, backend), scored)']
    return [
        *code.file(file_of_vectors, "The word vectors were those of"),
        "vectors = read_static_vectors(file, file.name)",
        'words["static"] = ranker_pair_scores(partial(StaticRanker.of_words, vectors), scored)',
    ]


def one_agreement(
    backend: Backend,
    of: Sequence[str],
    cell: tuple[int, Pooling] | None,
    max_length: int | None,
    kind: Kind | None,
    *,
    file_of_vectors: str,
) -> Snippet:
    """The scores of one layer and pooling, or of a word ranking, beside people's."""
    if cell is not None:
        body = [
            f"options = {_embed_options('backend', [cell[0]], [cell[1]], max_length, '')}",
            "values = similarity_grid(backend, scored, options).cosines.values[0, 0]",
        ]
    elif kind == "static":
        body = ["words = {}", *_static_pair_scores(file_of_vectors), 'values = words["static"]']
    else:
        body = [f"values = ranker_pair_scores(partial(make_ranker, {code.literal(kind)}), scored)"]
    return Snippet((code.model(backend), *of), (*body, "print(values, scored.scores)  # [pair] each: the run, people"))


def lab(backend: Backend, collection: Collection, most: int | None, layer: int, dims: int, seed: int) -> Snippet:
    """Retrieval and agreement with people for each pooling and treatment of the lab."""
    return Snippet(
        _lab_setup(backend, collection, most),
        (
            *_lab_vectors(layer),
            f"cells = list(lab_cells(vectors, scored.scores, dims={dims}, seed={seed}, rank=pairs.ranks_by_vectors))",
            *_lab_printed(),
        ),
    )


def lab_sweep(
    backend: Backend, collection: Collection, most: int | None, layer: int, pooling: LabPooling, seed: int
) -> Snippet:
    """The same for one pooling by the number of dimensions that are kept."""
    return Snippet(
        _lab_setup(backend, collection, most),
        (
            *_lab_vectors(layer),
            f"sweep = dimension_sweep(vectors, {code.literal(pooling)}, scored.scores, seed={seed}, "
            "rank=pairs.ranks_by_vectors)",
            "cells = list(sweep)",
            *_lab_printed(),
        ),
    )


def approximated(
    backend: Backend,
    collection: Collection,
    cell: tuple[int, Pooling],
    max_length: int | None,
    similarity: Similarity,
    most: int,
    own: bool,
) -> Snippet:
    """What approximate searches find of the exact hits; with `own`, the queries are the documents themselves."""
    cell_of = ([cell[0]], [cell[1]], max_length)
    asked = f"vectors[:{most}]"
    body = [f"vectors = backend.embed(documents, options={_embed_options('backend', *cell_of, 'document')})[0, 0]"]
    if not own:
        of_queries = _embed_options("backend", *cell_of, "query")
        body.append(f"asked = backend.embed(queries[:{most}], options={of_queries})[0, 0]")
        asked = "asked"
    options = {"own": True} if own else {}
    found = code.call("losses", "StoredVectors.of_vectors(vectors)", asked, similarity=similarity, **options)
    return Snippet(
        (code.model(backend), *collection.statements),
        (
            *body,
            f"found = {found}",
            "values = {way.approximation.name: (way.bytes_per_vector, 100 * way.mean) for way in found.ways}",
            "print(values)  # bytes per vector, and Recall@10 in per cent",
        ),
    )


def sentences(corpus: Sequence[str]) -> Collection:
    """A corpus whose sentences are the documents and the queries."""
    return Collection((*corpus, "documents = queries = corpus.texts"))


def _lab_setup(backend: Backend, collection: Collection, most: int | None) -> tuple[str, ...]:
    statements = list(collection.statements)
    if most is not None:
        statements.insert(-1, f"pairs = first_pairs(pairs, {most})")
    return (code.model(backend), *statements, *scored(None))


def _lab_vectors(layer: int) -> tuple[str, ...]:
    return (
        # The last four layers are one of its poolings.
        f"layers = lab_layers(backend, documents, queries, scored, layers={list(range(max(0, layer - 3), layer + 1))})",
        f"vectors = layers.of({layer})",
    )


def _lab_printed() -> tuple[str, ...]:
    return (
        'values = [(cell.pooling, cell.treatment, cell.dims, 100 * cell.mean("Recall@1"), cell.spearman) for cell in cells]',
        "print(values)  # Recall@1 in per cent, and Spearman's correlation",
    )
