"""`evaluate PAIRS`: how well queries retrieve their correct answers, by layer and pooling.

PAIRS is a file of pairs, where rows with one query all hold correct answers of it, or a folder with graded relevance.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from components.command_line import options as shared
from components.command_line.fusing import add_fusion, fusing_of
from components.command_line.outputs import check_target, write_whole
from components.errors import InputError
from components.folders import plain_file

if TYPE_CHECKING:
    from components.command_line.fusing import Fusing
    from components.model.backend import Backend
    from components.retrieval.corpora.readers.limits import Limits
    from components.retrieval.corpora.rows.read import Rows
    from components.retrieval.corpora.rows.reading import RowUse
    from components.retrieval.evaluation.graded.collection import GradedSet
    from components.retrieval.evaluation.pair_runs import Pairs
    from components.retrieval.evaluation.run_record import Run
    from components.retrieval.rankings.ranking import Ranking

NAME = "evaluate"
HELP = (
    "measure Recall@k, MRR and nDCG@10 on pairs (columns sentence and compressed), or also MAP and P@10 on a folder with "
    "graded relevance, by layer and pooling"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "pairs",
        metavar="PAIRS",
        type=Path,
        help="a .jsonl, .csv, .tsv or .parquet file of pairs, or a folder with graded relevance: corpus.jsonl, "
        "queries.jsonl and qrels/test.tsv as in BEIR, or documents, queries and qrels as in TREC",
    )
    add_folder(parser)
    shared.add_dry_run(parser)
    shared.add_rows(parser, "anchor=headline,positive=text", "the test rows")
    shared.add_dialect(parser)
    add_texts(parser)
    parser.add_argument(
        "--rerank",
        metavar="K",
        type=int,
        help="measure each run once more with its first K hits re-ranked by a cross-encoder",
    )
    shared.add_cross_encoder(parser)
    parser.add_argument(
        "--max-sim",
        metavar="K",
        type=int,
        help="measure each run once more with its first K hits re-ranked by MaxSim: the token vectors of a model that was "
        "trained for late interaction, or else the hidden states of the run's layer",
    )
    parser.add_argument(
        "--splade", action="store_true", help="measure one more run by the weights of a SPLADE model (--model)"
    )
    parser.add_argument(
        "--record",
        metavar="FILE",
        help="write the runs by vectors into FILE, with the rank of every correct answer, for --against",
    )
    parser.add_argument(
        "--against",
        metavar="RUN.json",
        type=Path,
        help="compare the run with one that --record or the dashboard saved of the same pairs: exit status 1 if it is "
        "significantly worse",
    )
    add_fusion(parser, "measure each run once more fused with a ranking by words")
    shared.add_limits(parser)
    shared.add_embedding(parser, precision="float32", cuts="sentences, and pairs for a cross-encoder,")
    shared.add_engine(parser)


def add_folder(parser: argparse.ArgumentParser) -> None:
    """The options that choose which judgements of a folder are read, and which of its fields are searched."""
    parser.add_argument("--split", default="test", help="which of a folder's qrels files to read (default: test)")
    parser.add_argument(
        "--query-field",
        default=None,
        help="which field of a folder's queries asks: text, title, description or narrative (default: the text, else the "
        "first of these that they have)",
    )
    parser.add_argument(
        "--document-fields",
        default=None,
        help="which fields of a folder's documents are searched: title, text or title,text (default: all that they have)",
    )


def add_texts(parser: argparse.ArgumentParser) -> None:
    """The option that says which texts of a file the queries search."""
    parser.add_argument(
        "--texts",
        choices=("all", "right"),
        help="which texts of a file are searched: all of them, also those of rows that have no query or are of another part, "
        "or those alone that are right for some query (default: all)",
    )
    # As it was written while the right texts were the default.
    parser.add_argument("--every-text", action="store_const", const="all", dest="texts", help=argparse.SUPPRESS)


def run(options: argparse.Namespace) -> dict[str, Any]:
    for option, k in (("--rerank", options.rerank), ("--max-sim", options.max_sim)):
        if k is not None and k < 2:
            raise InputError(
                f"{option} {k} leaves nothing to re-rank.",
                "Another order needs at least 2 hits.",
                f"Write for example {option} 100",
            )
    for option, value in (("--cross-encoder", options.cross_encoder), ("--label", options.label)):
        if options.rerank is None and value is not None:
            raise InputError(
                f"{option} is given without --rerank.",
                "A cross-encoder only re-ranks the first hits of a run.",
                f"Add for example --rerank 100, or leave {option} out.",
            )
    if options.pairs.is_dir() and (options.record is not None or options.against is not None):
        raise InputError(
            "--record and --against were given with a folder.",
            "They keep and compare the runs of a file of pairs.",
            "Leave them out, or name a file.",
        )
    several = [
        text for text in (options.layers, options.poolings) if text is not None and ("," in text or _is_all(text))
    ]
    if options.against is not None and several:
        raise InputError(
            f"--against was given with several runs ({several[0][:80]}).",
            "It compares one run with one.",
            "Choose one layer and pooling, as in --layer 6 --pooling mean",
        )
    if options.record is not None:
        check_target(options.record)
    shared.check_engine(options)
    fusing_of(options)  # raises for what it does not know
    return _run_graded(options) if options.pairs.is_dir() else _run_pairs(options)


def _is_all(text: str) -> bool:
    return text.strip().lower() == "all"


def _run_pairs(options: argparse.Namespace) -> dict[str, Any]:
    from components.retrieval.evaluation import metrics
    from components.retrieval.evaluation.second_stage import either_ranks

    pairs, reading, _ = read_pairs(options, shared.limits_of(options))
    earlier = None if options.against is None else _recorded(options.against, pairs)
    name = options.pairs.name
    counts = {"queries": len(pairs), "correct_answers": pairs.right_texts, "documents": len(pairs.documents)}
    if options.dry_run:
        shared.write_reading(reading, write=shared.writer(options))
        return {"file": str(options.pairs), "dry_run": True, **counts, "reading": reading.as_json()}
    rank: Callable[..., Any] = pairs.ranks_by_vectors
    if options.engine == "ray" and not pairs.has_several:
        from components.distributed.ranks import gold_ranks_on_ray

        rank = partial(gold_ranks_on_ray, gold=pairs.gold, address=options.address)
    ways = _Ways(
        rank,
        partial(either_ranks, gold=pairs.gold),
        pairs.ranks_by_words,
        pairs.ranks_by_fusions,
        metrics.summary,
    )
    result, rankings = _measured(options, name, pairs.documents.texts, pairs.queries.texts, ways, reading)
    _write_table(options, result["runs"], {"MRR": "mrr", "nDCG@10": "ndcg@10"}, recalls_first=True)
    if options.record is not None:
        write_whole(options.record, _record(options, pairs, result, rankings).decode("utf-8"))
    if earlier is not None:
        result["against"] = _compared(options, earlier, rankings)
    return {"file": str(options.pairs), **counts, "reading": reading.as_json(), **result}


def read_pairs(options: argparse.Namespace, limits: Limits) -> tuple[Pairs, RowUse, Rows]:
    """The queries of a file of pairs with their correct answers, how the file was read, and its rows; for `diagnose` too.

    The answers of rows that have no query, or are of another part, are searched too, unless --texts says right. Raises
    InputError, also for pairs that cannot be measured.
    """
    from components.retrieval.corpora.readers.limits import Count
    from components.retrieval.corpora.readers.table import BadRows
    from components.retrieval.corpora.rows.parts import TO_MEASURE
    from components.retrieval.corpora.rows.read import reasons_in_brackets, rows_of, table_of
    from components.retrieval.evaluation.pair_runs import pairs_of_rows

    if any(choice is not None for choice in _fields(options)):
        raise InputError(
            "--query-field and --document-fields were given with a file of pairs.",
            "They choose the fields of a folder with graded relevance.",
            "Leave them out, or name a folder.",
        )
    name, every_text = options.pairs.name, options.texts != "right"
    rows = rows_of(
        table_of([options.pairs], name, limits, Count(name, limits), shared.dialect_of(options), options.encoding),
        name,
        chosen=shared.columns_of(options),
        part=options.part,
        preferred=TO_MEASURE,
        wanted="pairs",
    )
    first = {(row.texts[0].strip(), row.texts[1]): row for row in reversed(rows.rows) if len(row.texts) == 2}
    used = sorted([*first.values()][::-1], key=attrgetter("source"))
    repeated = len({row.source for row in rows.rows} - {row.source for row in used})
    reading = rows.reading(used, BadRows(), repeated, every_text)
    if not rows.rows or len(rows.names) != 2:
        raise InputError(
            f"{name} has no row with both a query and an answer{reasons_in_brackets(rows.bad.reasons)}.",
            "At least one such row is needed.",
            "Choose other columns (--columns anchor=...,positive=...), or another file.",
        )
    asked = [(row.source, *row.texts) for row in rows.rows]
    others = [(row, "", text) for row, text, _ in rows.unused] if every_text else []
    _, queries, answers = zip(*sorted([*asked, *others], key=itemgetter(0)), strict=True)  # in the order of the file
    pairs = pairs_of_rows(name, answers, queries, reading.columns["anchor"], every_text)
    pairs.check_measurable()
    if pairs.has_several:
        shared.writer(options)(
            f"{len(pairs):,} queries have {pairs.right_texts:,} correct answers: Recall@k is the share of queries with one of "
            "theirs among the first k, MRR is of the first one, nDCG@10 of all."
        )
    if pairs.shared:
        which = "Other rows" if pairs.rows.repeated else "Rows"
        shared.note(f"{which} with the sentence of an earlier row, which is searched once: {pairs.shared:,}.")
    if pairs.asking > len(pairs) and not pairs.has_several:
        shared.writer(options)(f"{pairs.asked}: each counts once.")
    if pairs.warning:
        shared.note(pairs.warning)
    return pairs, reading, rows


OLDER_RECORD = "A record from before --texts has the right texts alone: add --texts right. Or: "


def _recorded(path: Path, pairs: Pairs) -> tuple[Run, ...]:
    """The runs of a file of --against. Raises InputError for one that is not of these pairs."""
    from components.retrieval.evaluation.run_record import MOST_BYTES, read_runs

    try:
        with plain_file(path.resolve(), "rb") as file:
            content = file.read(MOST_BYTES + 1)
    except FileNotFoundError as problem:
        raise InputError(
            f"There is no file {path}.",
            "--against needs a run that --record or the dashboard saved.",
            "Correct the name, or write the file with evaluate --record.",
        ) from problem
    except OSError as problem:
        raise InputError(
            f"{path} cannot be read: {problem.strerror or problem}.",
            "--against needs a plain file that --record or the dashboard saved.",
            "Write the runs into a file first.",
        ) from problem
    runs = tuple(
        run
        for run in read_runs(content, path.name)
        if run.data.content_hash == pairs.content_hash and run.system.get("kind") == "vectors"
    )
    if not runs:
        raise InputError(
            f"{path.name} has no run by vectors of these pairs.",
            "Runs can only be compared on the same queries and texts in the same order, with the same --texts both times.",
            OLDER_RECORD * bool(pairs.others)
            + "Name the file of pairs of that run, or record a run of these pairs with evaluate --record.",
        )
    return runs


def _record(options: argparse.Namespace, pairs: Pairs, result: dict[str, Any], rankings: Sequence[_ByVectors]) -> bytes:
    """The runs by vectors as a file for --against."""
    from components.retrieval.evaluation.run_record import Run, RunData, now, write_runs

    data = RunData(pairs.name, len(pairs.documents), len(pairs), pairs.content_hash)
    settings = {"precision": result["precision"], "similarity": result["similarity"]}
    if options.max_length is not None:
        settings["max_length"] = options.max_length
    return write_runs(
        [
            Run(
                name=each.ranking.name,
                system={"kind": "vectors", "revision": result["revision"], **each.place},
                data=data,
                settings=settings,
                versions={},
                ranks=each.ranking.ranks,
                made=now(),
            )
            for each in rankings
        ]
    )


def _compared(options: argparse.Namespace, earlier: Sequence[Run], rankings: Sequence[_ByVectors]) -> dict[str, Any]:
    """What the run by vectors is against the recorded one; sets the exit status if it is significantly worse."""
    from components.retrieval.evaluation.chance.regression import compared

    if len(rankings) == 1 and len(earlier) > 1:
        place = rankings[0].place["layer"], rankings[0].place["pooling"]
        earlier = [run for run in earlier if (run.system.get("layer"), run.system.get("pooling")) == place] or earlier
    if len(rankings) != 1 or len(earlier) != 1:
        raise InputError(
            f"{options.against.name} has {len(earlier)} runs of these pairs that could be meant.",
            "--against compares one run with one.",
            "Record one run alone, as in --layer 6 --pooling mean --record FILE",
        )
    regression = compared(earlier[0].ranks, rankings[0].ranking.ranks)
    if regression.is_worse:
        options.status = 1
    verdict = "significantly worse" if regression.is_worse else "not significantly worse"
    shared.note(
        f"The run by vectors against {earlier[0].name}: {verdict}. "
        f"Recall@1 {100 * regression.recall_before:.2f} before, {100 * regression.recall:.2f} now "
        f"({regression.gained} queries gained, {regression.lost} lost, p {regression.p_recall:.4f}); "
        f"MRR {100 * regression.mrr_before:.2f} before, "
        f"{100 * regression.mrr:.2f} now (p {regression.p_mrr:.4f}). Both p-values by Holm's method."
    )
    return {
        "name": earlier[0].name,
        "worse": regression.is_worse,
        "recall@1": {
            "before": round(100 * regression.recall_before, 2),
            "now": round(100 * regression.recall, 2),
            "gained": regression.gained,
            "lost": regression.lost,
            "p": regression.p_recall,
        },
        "mrr": {
            "before": round(100 * regression.mrr_before, 2),
            "now": round(100 * regression.mrr, 2),
            "p": regression.p_mrr,
        },
    }


def read_graded(options: argparse.Namespace, write: Callable[[str], None]) -> GradedSet:
    """The collection of a folder, of which `write` is told what is left out; for `diagnose` too. Raises InputError."""
    from components.retrieval.evaluation.graded.collection import read_folder_fields

    if dialect := shared.dialect_of(options):
        raise InputError(
            f"{dialect.as_options} was given with a folder.",
            "How separated text is written can be chosen for a file of pairs.",
            "Leave it out, or name a file.",
        )
    if options.texts is not None:
        raise InputError(
            "--texts was given with a folder.",
            "All documents of a folder are always searched.",
            "Leave it out, or name a file.",
        )
    if options.encoding is not None:
        raise InputError(
            "--encoding was given with a folder.",
            "The encoding can be named for a file of pairs.",
            "Leave it out, or name a file.",
        )
    graded = read_folder_fields(options.pairs, options.split, shared.limits_of(options)).chosen(*_fields(options))
    if graded.report.left_out:
        counts = ", ".join(f"{count:,} {reason}" for reason, count in graded.report.left_out.items())
        write(f"Left out: {counts}.")
    return graded


def _run_graded(options: argparse.Namespace) -> dict[str, Any]:
    from components.retrieval.evaluation.graded.metrics import graded_summary
    from components.retrieval.evaluation.second_stage import second_relevant_ranks

    write = shared.writer(options)
    graded = read_graded(options, write)
    report = graded.report
    for note in graded.notes:
        write(note)
    if options.dry_run:
        return _previewed(options, graded, write)

    ways = _Ways(
        graded.ranks_by_vectors,
        second_relevant_ranks,
        graded.ranks_by_words,
        graded.ranks_by_fusions,
        graded_summary,
        graded.own,
    )
    result, _ = _measured(options, graded.name, graded.documents, graded.queries, ways)
    _write_table(options, result["runs"], {"MAP": "map", "MRR": "mrr", "nDCG@10": "ndcg@10", "P@10": "p@10"})
    return {
        "file": str(options.pairs),
        "judgements": report.files["judgements"],
        "query_field": graded.query_field,
        "document_fields": list(graded.document_fields),
        "documents": len(graded.documents),
        "left_out": report.left_out,
        "own_documents_left_out": 0 if graded.own is None else int((graded.own >= 0).sum()),
        "relevant_not_in_corpus": sum(map(len, graded.missing)),
        "notes": list(graded.notes),
        **result,
    }


def _previewed(options: argparse.Namespace, graded: GradedSet, write: Callable[[str], None]) -> dict[str, Any]:
    """How a folder was read, with its first queries and one right document of each."""
    write(
        f"{len(graded.documents):,} documents ({', '.join(graded.document_fields)}), {len(graded.queries):,} queries "
        f"({graded.query_field}), {graded.report.files['judgements']} read."
    )
    rows = [
        {"query": query, "document": graded.documents[max(grades, key=lambda number: grades[number])]}
        for query, grades in islice(
            ((each, own) for each, own in zip(graded.queries, graded.grades, strict=True) if own), 3
        )
    ]
    for row in rows:
        write(f"query: {row['query'][:200]}")
        write(f"  right document: {row['document'][:200]}")
    return {
        "file": str(options.pairs),
        "dry_run": True,
        "preview": rows,
        "documents": len(graded.documents),
        "queries": len(graded.queries),
        "query_field": graded.query_field,
        "document_fields": list(graded.document_fields),
        "left_out": graded.report.left_out,
    }


def _fields(options: argparse.Namespace) -> tuple[str | None, list[str] | None]:
    """The chosen field of the queries and those of the documents; None for what is not chosen."""
    names = options.document_fields
    return options.query_field, None if names is None else [name.strip() for name in names.split(",")]


@dataclass(frozen=True)
class _Ways:
    """How ranks of correct answers are found and summed up, for pairs or for graded relevance."""

    by_vectors: Callable[..., Any]
    after_second_stage: Callable[..., Any]
    by_ranker: Callable[..., Any]
    fused: Callable[..., Any]  # takes what each run scores, and the fusions
    summary: Callable[[Any], dict[str, Any]]
    own: Any = None  # [query]: the documents that are left out of one query's ranking; None for none


@dataclass(frozen=True)
class _ByVectors:
    """How the vectors of one layer and pooling rank the texts."""

    ranking: Ranking
    place: dict[str, Any]  # the model, layer and pooling, as a run's record has them
    candidates: dict[int, Any]  # their number to those of each query, which a second stage ranks


def _measured(
    options: argparse.Namespace,
    name: str,
    documents: Sequence[str],
    queries: Sequence[str],
    ways: _Ways,
    reading: RowUse | None = None,
) -> tuple[dict[str, Any], list[_ByVectors]]:
    """The revision, the precision and the measures of every run, also after re-ranking and by SPLADE where asked for.

    The second result has the rankings by vectors alone.
    """
    from components.retrieval.evaluation.grid import retrieval_runs
    from components.retrieval.evaluation.second_stage import candidates
    from components.retrieval.fusion.ranks import ranker_scores, vector_scores
    from components.retrieval.rankings.ranking import Ranking
    from components.retrieval.search.exact import VectorRanker, for_cosines
    from components.retrieval.search.lexical import make_ranker

    # All that may be refused, before the work.
    cross_encoder, label = (None, None) if options.rerank is None else shared.load_cross_encoder(options)
    if cross_encoder is not None:
        cross_encoder.tokenization.check_length(options.max_length, is_pair=True)
    backend = shared.load(options)
    if options.splade:
        backend.sparse_matrix([])
    document_options, query_options = (shared.embed_options(backend, options, role) for role in ("document", "query"))
    counts = [k for k in (options.rerank, options.max_sim) if k is not None]
    unknown_language = shared.unknown_languages(backend, {"the texts": documents, "the queries": queries})
    similarity = backend.sentence_config.similarity

    fusing = fusing_of(options)
    words = [] if fusing is None else [ranker_scores(make_ranker(kind, documents), queries) for kind in fusing.kinds]
    fused: list[list[Any]] = []  # [run][fusion]

    def both(query_vectors: Any, document_vectors: Any, is_stopped: Callable[[], bool]) -> tuple[Any, dict[int, Any]]:
        if similarity == "manhattan":  # which no cosines of other vectors order alike
            ranker = VectorRanker(queries, query_vectors, document_vectors, similarity)
            ranks, scores = ways.by_ranker(ranker), ranker_scores(ranker, queries)
            chosen = partial(candidates, is_stopped=is_stopped, own=ways.own, similarity=similarity)
        else:
            query_vectors, document_vectors = for_cosines(query_vectors, document_vectors, similarity)
            ranks = ways.by_vectors(query_vectors, document_vectors, is_stopped=is_stopped)
            scores = vector_scores(query_vectors, document_vectors)
            chosen = partial(candidates, is_stopped=is_stopped, own=ways.own)
        if fusing is not None:
            fused.append(ways.fused([scores, *words], fusing.fusions, is_stopped=is_stopped))
        return ranks, {k: chosen(query_vectors, document_vectors, k) for k in set(counts)}

    if reading is not None:
        shared.write_reading(reading, with_preview=False)
    with _engine(options, backend) as embed_into, shared.progress_bar(f"Embedding {name}") as report_progress:
        measured = list(
            retrieval_runs(
                backend,
                documents,
                queries,
                both,
                document_options,
                query_options,
                report_progress,
                embed_into=embed_into,
            )
        )
    rankings = [
        _ByVectors(
            Ranking(f"{backend.spec.key}, layer {layer}, {pooling}", ranks=ranks),
            {"model": backend.spec.key, "layer": layer, "pooling": pooling},
            rows,
        )
        for layer, pooling, (ranks, rows) in measured
    ]
    runs: list[dict[str, Any]] = [each.place | ways.summary(each.ranking.ranks) for each in rankings]
    result = {
        "revision": backend.revision,
        "precision": document_options.precision,
        "similarity": similarity,
        "not_applied": list(backend.not_applied),
        "unknown_language": unknown_language,
        "runs": runs,
    }
    if fusing is not None:
        result |= _fused(fusing, rankings, fused, ways, runs)
    if cross_encoder is not None:
        result |= _rerank(options, cross_encoder, label, documents, queries, ways, rankings, runs)
    if options.max_sim is not None:
        result |= _max_sim(options, backend, documents, queries, ways, rankings, runs)
    if options.splade:
        result |= _splade(options, backend, documents, queries, ways, runs)
    return result, rankings


def _fused(
    fusing: Fusing, rankings: Sequence[_ByVectors], fused: Sequence[Any], ways: _Ways, runs: list[dict[str, Any]]
) -> dict[str, Any]:
    """Add the fused runs of each of `rankings`; returns the weights that one half of the queries chooses."""
    from components.retrieval.evaluation.metrics import ndcg
    from components.retrieval.fusion.weights import chosen_weight

    chosen = []
    for place, of_fusions in zip((each.place for each in rankings), fused, strict=True):
        for ranks, record in zip(of_fusions, fusing.records(), strict=True):
            runs.append(place | record | ways.summary(ranks))
        weighted = of_fusions[1:]
        best = chosen_weight([ndcg(ranks) for ranks in weighted]) if len(weighted) > 1 else None
        if best is not None:
            weight, of = fusing.weights[1:][best.place], best.measured
            value, low, high = (round(100 * each, 2) for each in (of.value, of.low, of.high))
            chosen.append(place | {"weight": weight, "measure": "ndcg@10", "value": value, "low": low, "high": high})
            shared.note(
                f"Layer {place['layer']}, {place['pooling']}: one half of the queries chooses the weight {weight:g}; on the "
                f"other half its nDCG@10 is {value:.2f} (95 % interval {low:.2f} to {high:.2f})."
            )
    return {"chosen_weights": chosen}


@contextmanager
def _engine(options: argparse.Namespace, backend: Backend) -> Iterator[Callable[..., object]]:
    """How texts are embedded: in this process, or by the workers of one connection to Ray, which is open meanwhile."""
    if options.engine == "local":
        yield backend.embed_into
        return
    from components.distributed.cluster import connected
    from components.distributed.embedding import embed_into_on_ray

    with connected(options.address):
        yield partial(embed_into_on_ray, backend)


def _rerank(
    options: argparse.Namespace,
    cross_encoder: Backend,
    label: int | None,
    documents: Sequence[str],
    queries: Sequence[str],
    ways: _Ways,
    rankings: Sequence[_ByVectors],
    runs: list[dict[str, Any]],
) -> dict[str, Any]:
    """Add a run re-ranked by the cross-encoder for each of `rankings`; returns what the result says about it."""
    import numpy as np

    from components.retrieval.evaluation.second_stage import candidate_scores

    rows = np.stack([each.candidates[options.rerank] for each in rankings])  # [run, query, candidate]
    started = time.perf_counter()
    with shared.progress_bar("Re-ranking", " pairs") as report_progress:
        score = partial(
            cross_encoder.score_pairs, label=label, precision=options.precision, max_length=options.max_length
        )
        scores = candidate_scores(score, queries, documents, rows, report_progress)
    seconds = round(time.perf_counter() - started, 3)
    second = {"reranked": options.rerank, "cross_encoder": cross_encoder.spec.key}
    for each, own_rows, own_scores in zip(rankings, rows, scores, strict=True):
        ranks = ways.after_second_stage(each.ranking.ranks, own_rows, own_scores)
        runs.append(each.place | second | ways.summary(ranks))
    return {
        "cross_encoder_revision": cross_encoder.revision,
        "cross_encoder_label": None if label is None else cross_encoder.pair_labels()[label],
        "cross_encoder_max_length": options.max_length or cross_encoder.own_max_length,
        "rerank_seconds": seconds,
    }


def _max_sim(
    options: argparse.Namespace,
    backend: Backend,
    documents: Sequence[str],
    queries: Sequence[str],
    ways: _Ways,
    rankings: Sequence[_ByVectors],
    runs: list[dict[str, Any]],
) -> dict[str, Any]:
    """Add a run re-ranked by MaxSim for each of `rankings`; returns what the result says about it."""
    from components.retrieval.evaluation.second_stage import max_sim_candidate_scores

    is_trained, started = backend.late_interaction is not None, time.perf_counter()
    second = {"max_sim": options.max_sim, "trained_for_it": is_trained}
    for each in rankings:
        rows, layer = each.candidates[options.max_sim], each.place["layer"]
        with shared.progress_bar(f"MaxSim, layer {layer}, {each.place['pooling']}") as report_progress:
            scores = max_sim_candidate_scores(
                backend, layer, queries, documents, rows, options.max_length, report_progress
            )
        ranks = ways.after_second_stage(each.ranking.ranks, rows, scores)
        runs.append(each.place | second | ways.summary(ranks))
    return {"max_sim_seconds": round(time.perf_counter() - started, 3)}


def _splade(
    options: argparse.Namespace,
    backend: Backend,
    documents: Sequence[str],
    queries: Sequence[str],
    ways: _Ways,
    runs: list[dict[str, Any]],
) -> dict[str, Any]:
    """Add a run by SPLADE's weights; returns what the result says about it."""
    from components.retrieval.evaluation.metrics import finds_nothing
    from components.retrieval.search.splade import TITLE, SpladeIndex, SpladeRanker

    started = time.perf_counter()
    with shared.progress_bar(f"{TITLE}'s weights") as report_progress:
        index = SpladeIndex.of_texts(backend, documents, options.max_length, report_progress)
    with shared.progress_bar(TITLE, " queries") as report_progress:
        ranker = SpladeRanker(backend, index).for_queries(queries, report_progress)
    place = {"model": backend.spec.key, "layer": None, "pooling": None, "ranking": TITLE}
    ranks = ways.by_ranker(ranker)
    is_silent = finds_nothing(ranks)
    if is_silent:
        shared.note(f"{TITLE}: no query shares a piece with a correct answer, so that there is nothing to measure.")
    else:
        runs.append(place | ways.summary(ranks))
    return {
        "splade_finds_nothing": is_silent,
        "splade_seconds": round(time.perf_counter() - started, 3),
        "splade_weights": int(index.postings.nnz),
    }


def _write_table(
    options: argparse.Namespace, runs: list[dict[str, Any]], measures: dict[str, str], recalls_first: bool = False
) -> None:
    recalls = {f"R@{k}": lambda run, k=k: run["recall"][k] for k in runs[0]["recall"]}
    others = {title: itemgetter(key) for title, key in measures.items()}
    shared.write_table(options, runs, {**recalls, **others} if recalls_first else {**others, **recalls}, digits=2)
