"""`search DIR QUERY`: the sentences of an index that are most similar to a query."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from components.command_line import options as shared
from components.command_line.fusing import add_fusion, fusing_of
from components.errors import InputError
from components.model.catalog import typed_model
from components.model.trace import Pooling

if TYPE_CHECKING:
    from collections.abc import Sequence

    from components.command_line.fusing import Fusing
    from components.retrieval.index.folder import VectorIndex
    from components.retrieval.rankings.ranking import Ranking
    from components.retrieval.search.exact import Similarity

NAME = "search"
HELP = "find the sentences of an index that are most similar to a query"
SIMILARITY_NAMES = {
    "cosine": "the cosine",
    "dot": "the dot product",
    "euclidean": "the negative Euclidean distance",
    "manhattan": "the negative Manhattan distance",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", type=Path, help="a folder written by `index`")
    parser.add_argument("query", metavar="QUERY", help="the text to search for")
    parser.add_argument("-k", type=int, default=10, help="how many hits (default: 10)")
    add_ranking(parser)
    add_fusion(parser, "rank by vectors and words together")
    parser.add_argument(
        "--engine",
        default="exact",
        help="exact (default); usearch for a graph beside the index, which is built when it is first asked for; or milvus. "
        "Both need requirements-scale.txt, and may miss some hits",
    )
    parser.add_argument(
        "--address", metavar="PATH_OR_URI", help="where Milvus is: a file ending in .db, or http://host:19530"
    )


def add_ranking(parser: argparse.ArgumentParser) -> None:
    """The options of commands that search an index: which of its vectors, and how they are compared."""
    parser.add_argument("--layer", type=int, help="one of the index's layers (default: its last)")
    parser.add_argument("--pooling", help="one of the index's poolings (default: its first)")
    parser.add_argument(
        "--similarity",
        help="cosine, dot, euclidean or manhattan, of distances the negative one (default: what the model was published for, "
        "mostly cosine)",
    )
    shared.add_prompt(parser)
    parser.add_argument(
        "--model",
        type=typed_model,
        help="the model with which the index was made. It has to be named if it is neither included nor in the hub's cache "
        "on this machine: a folder from somebody else must not choose what is loaded or downloaded",
    )


def opened(options: argparse.Namespace) -> tuple[VectorIndex, int, Pooling]:
    """The index of the folder, and the layer and pooling to search. Raises UserError."""
    from components.retrieval.index.folder import open_index

    index = open_index(options.folder)
    if options.model is not None and options.model != index.info.model:
        raise InputError(
            f"{options.folder} was made with {index.info.model}.",
            f"--model {options.model} names another model.",
            "Leave --model out: a query is always embedded by the model of the index.",
        )
    if options.model is None and not _may_choose(index.info.model):
        raise InputError(
            f"{options.folder} was made with {index.info.model[:200]!r}, which is neither included nor in the hub's cache on "
            "this machine.",
            "An index chooses no other model by itself, since it may come from somebody else.",
            f"Add --model {shlex.quote(index.info.model[:200])} if you trust it.",
        )
    layer = index.info.options.layers[-1] if options.layer is None else options.layer
    pooling = cast("Pooling", index.info.options.poolings[0] if options.pooling is None else options.pooling)
    index.engine(layer, pooling)  # raises for one that the index does not have
    return index, layer, pooling


def _may_choose(model: str) -> bool:
    """Whether an index may have this model loaded without being told: an included one, or one that is here already."""
    from components.model.catalog import is_path, parse_model
    from components.model.files import hub

    if is_path(model):  # not even whether it is there is looked up
        return False
    spec = parse_model(model)
    return spec.source == "embedded" or (spec.source == "hub" and hub.cached_folder(spec.key) is not None)


def run(options: argparse.Namespace) -> dict[str, Any]:
    index, layer, pooling = opened(options)
    if options.k < 1 or not options.query.strip():
        raise InputError(
            f"The query {options.query!r} with k = {options.k} cannot be searched.",
            "A search needs a query with text, and a k of at least 1.",
            "Correct the query or k.",
        )
    from components.retrieval.engines.contract import StoredVectors
    from components.retrieval.engines.opening import check_engine, open_engine
    from components.retrieval.rankings.ranking import Ranking
    from components.retrieval.search.exact import checked_similarity, tie_note, ties_note
    from components.retrieval.search.query import query_vectors

    check_engine(options.engine, options.address)  # before the model is loaded
    fusing = fusing_of(options)
    if fusing is not None and (options.engine != "exact" or len(fusing.weights) > 2):
        raise InputError(
            f"--fuse {options.fuse} does not go with "
            + (f"--engine {options.engine}." if options.engine != "exact" else f"--weights {options.weights}."),
            "A fused search compares all texts exactly, with one weight at most.",
            "Leave --engine out, and write for example --weights 0.5",
        )
    backend = shared.load_with_prompt(index.info.model, options.prompt)
    similarity = checked_similarity(options.similarity or backend.sentence_config.similarity)
    unknown_language = shared.unknown_languages(backend, {"the index": index.texts, "the query": [options.query]})
    vectors = query_vectors(backend, [options.query], index.info)
    facts = {
        "query": options.query,
        "model": index.info.model,
        "layer": layer,
        "pooling": pooling,
        "similarity": similarity,
        "not_applied": list(backend.not_applied),
        "unknown_language": unknown_language,
    }
    if fusing is not None:
        stored_vectors = index.engine(layer, pooling).vectors
        return facts | _fused(options, fusing, index.texts, stored_vectors, vectors[layer, pooling][0], similarity)
    with shared.progress_bar(f"Preparing {options.engine}", " vectors") as progress:
        stored = StoredVectors.of_index(index, layer, pooling)
        engine = open_engine(options.engine, stored, similarity, options.address, progress)
    if engine.facts.note:
        shared.note(engine.facts.note)
    hits = engine.search(vectors[layer, pooling], options.k, similarity)
    ranking = Ranking.of_hits(f"layer {layer}, {pooling}", similarity, hits)
    shared.note(f"Ranked by {SIMILARITY_NAMES[similarity]}.")
    results = _results(options, index.texts, ranking)
    tied, shown = ranking.tied, ranking.tied_shown
    if note := tie_note(tied, shown, at_least=not engine.facts.exact) or ties_note(ranking.hit_scores):
        shared.note(note)
    return facts | {
        "engine": engine.facts.name,
        "tied_with_last": tied,  # sentences of the index with the score of the last result, itself included
        "tied_shown": shown,  # how many of them are among the results
        "results": results,
    }


def _results(
    options: argparse.Namespace, texts: Sequence[str], ranking: Ranking, terms: Sequence[list[dict[str, Any]]] = ()
) -> list[dict[str, Any]]:
    """The hits as the record has them, which are said for people too; `terms` [hit] are what the score of each is a sum of."""
    results = []
    for place, (number, score) in enumerate(zip(ranking.best.tolist(), ranking.hit_scores.tolist(), strict=True)):
        own = {"terms": terms[place]} if terms else {}
        results.append({"rank": place + 1, "index": number, "score": round(score, 9), **own, "text": texts[number]})
        if options.json != "-":
            sums = "".join(f"{' + '.join(term['term'] for term in each)}  " for each in own.values())
            shared.say(f"{place + 1:>4}  {score:.4f}  {sums}{number:>8}  {texts[number]}")
    return results


def _fused(
    options: argparse.Namespace, fusing: Fusing, texts: Sequence[str], stored: Any, query: Any, similarity: Similarity
) -> dict[str, Any]:
    """The hits by vectors and words together, each with the terms of its score."""
    from components.retrieval.evaluation.ranks import NOT_FOUND
    from components.retrieval.fusion.hits import fused_ranking, query_scores, term_text
    from components.retrieval.fusion.ranks import ranker_scores
    from components.retrieval.search.lexical import make_ranker

    rankers = [make_ranker(kind, texts) for kind in fusing.kinds]
    by_words = [ranker_scores(ranker, [options.query])(slice(0, 1)) for ranker in rankers]
    runs = [query_scores(query, stored, similarity), *by_words]
    fusion, record, names = fusing.fusions[-1], fusing.records()[-1], ("vectors", *fusing.kinds)
    ranking = fused_ranking(runs, fusion, options.k)
    hits = ranking.best.tolist()
    terms = [
        [
            {
                "run": name,
                "rank": None if rank == NOT_FOUND else rank,
                "score": round(float(run.scores[0, hit]), 9),
                "value": round(term, 9),
                "term": term_text(term, rank, fusion),
            }
            for name, run, rank, term in zip(names, runs, ranks, values, strict=True)
        ]
        for hit, ranks, values in zip(hits, ranking.alone.T.tolist(), ranking.terms.T.tolist(), strict=True)
    ]
    for hit, of_hit in zip(hits, terms, strict=True):
        for ranker, term in zip(rankers, of_hit[1:], strict=True):
            parts = ranker.split(options.query, texts[hit], hit).query
            term["words"] = [[part.text, round(part.value, 9)] for part in parts]
    results = _results(options, texts, ranking, terms)
    how = "reciprocal ranks" if record["weight"] is None else f"weight {record['weight']:g} of the words"
    how += "" if fusion.depth is None else f", only the first {fusion.depth:,} of each"
    shared.note(f"Ranked by {SIMILARITY_NAMES[similarity]} together with {' and '.join(fusing.kinds)}: {how}.")
    return {"engine": "exact", **record, "results": results}
