"""`diagnose PAIRS`: which queries fail, what they share, and which remedy helps by how much.

Everything is computed in components.retrieval.failures; a file, or a folder with graded relevance, is read as by `evaluate`.
"""

from __future__ import annotations

import argparse
import textwrap
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from components.command_line import options as shared
from components.command_line.commands.evaluate import add_folder, add_texts, read_graded, read_pairs
from components.command_line.outputs import check_target, write_whole
from components.errors import InputError
from components.model.catalog import typed_model
from components.retrieval.failures.remedies import USUAL

if TYPE_CHECKING:
    from components.jobs import ReportProgress
    from components.retrieval.corpora.rows.read import Rows
    from components.retrieval.evaluation.pair_runs import Pairs
    from components.retrieval.failures.remedies.costs import SearchCost
    from components.retrieval.failures.remedies.diagnosis import Diagnosis
    from components.retrieval.failures.traits import Traits

NAME = "diagnose"
HELP = (
    "which queries of a file of pairs fail, what they share, and what each remedy (a prompt, query repair, words and vectors, "
    "MaxSim, another layer or pooling) repairs and harms, measured on queries that did not choose it"
)
MOST_SEED = 2**32 - 1
MOST_SHOWN = 10  # failed queries on the terminal


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "pairs",
        metavar="PAIRS",
        type=Path,
        help="a .jsonl, .csv, .tsv or .parquet file of pairs, or a folder with graded relevance, as evaluate reads them; of a "
        "folder every document with a grade of 1 or more is a right text",
    )
    add_folder(parser)
    add_texts(parser)
    parser.add_argument(
        "--remedies",
        metavar="NAME,...",
        help=f"which remedies are measured, of {', '.join(USUAL)}, cross-encoder and model, or none (default: the first five, "
        "and those that --cross-encoder and --other-model ask for)",
    )
    parser.add_argument(
        "--try-prompt",
        metavar="TEXT",
        action="append",
        help="a prompt before queries to be tried, in place of the usual ones; may be given several times",
    )
    parser.add_argument(
        "--abbreviations",
        metavar="SHORT=LONG,...",
        help="what abbreviations in queries stand for, as in kb=knowledge base, to be tried as a repair",
    )
    shared.add_cross_encoder(parser)
    parser.add_argument(
        "--other-model",
        metavar="MODEL",
        type=typed_model,
        action="append",
        help="another model to be tried, a hub id or a folder; may be given several times",
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="draws the halves, the controls and the bootstrap (default: 0)"
    )
    parser.add_argument("--report", metavar="FILE", help="write a report in Markdown into FILE")
    shared.add_rows(parser, "anchor=headline,positive=text", "the test rows")
    shared.add_dialect(parser)
    shared.add_limits(parser)
    shared.add_embedding(parser, precision="float32", cuts="sentences")


def run(options: argparse.Namespace) -> dict[str, Any]:
    from components.model.backend import Backend
    from components.retrieval.failures.remedies import diagnosis, folds, kinds
    from components.retrieval.failures.remedies.costs import cost_now
    from components.retrieval.failures.remedies.present import present
    from components.retrieval.failures.repair import in_no_query, parsed_abbreviations
    from components.retrieval.failures.traits import compared, traits_of
    from components.retrieval.failures.vocabulary import CorpusWords

    names = _remedies(options)
    abbreviations = parsed_abbreviations(options.abbreviations or "")
    _check(options)
    limits = shared.limits_of(options)
    pairs, reading, rows = _graded(options) if options.pairs.is_dir() else read_pairs(options, limits)
    # All that may be refused, before the work.
    cross_encoder = None
    if "cross-encoder" in names:
        scorer, label = shared.load_cross_encoder(options)
        cross_encoder = partial(scorer.score_pairs, label=label, precision=options.precision)
    if absent := in_no_query(abbreviations, pairs.queries.texts):
        shared.note(absent)
    backend = shared.load(options)
    if options.remedies is None and backend.structure.why_not("tokens") and backend.late_interaction is None:
        shared.note(f"MaxSim is left out: {backend.spec.title} has no vectors of tokens.")
        names.remove("maxsim")
    if options.remedies is None and "maxsim" in names and len(pairs.documents) > kinds.MOST_TEXTS:
        shared.note(
            f"MaxSim is left out: more than {kinds.MOST_TEXTS:,} texts. --remedies maxsim measures it all the same."
        )
        names.remove("maxsim")
    others = [Backend.load(model) for model in options.other_model or ()] if "model" in names else []
    for_queries, for_documents = (shared.embed_options(backend, options, role) for role in ("query", "document"))
    if len(for_documents.layers) > 1 or len(for_documents.poolings) > 1:
        raise InputError(
            "Several layers or poolings were given.",
            "The queries are diagnosed as one layer and pooling rank them; the remedy layer tries all others.",
            "Choose one, as in --layer 6 --pooling mean, or leave both out.",
        )
    shared.unknown_languages(backend, {"the texts": pairs.documents.texts, "the queries": pairs.queries.texts})
    held = None if rows is None else _values(pairs, rows)
    if reading is not None:
        compared_with = () if held is None else tuple(dict.fromkeys(name.partition("=")[0] for name in held.names))
        left_out = {name: values for name, values in reading.left_out.items() if name not in compared_with}
        shared.write_reading(replace(reading, left_out=left_out), with_preview=False)
        if compared_with:
            shared.note(f"Compared with what fails, and no part of a query or text: {', '.join(compared_with)}.")
    with shared.progress_bar(f"Embedding {pairs.name}") as report_progress:
        now = present(backend, pairs, for_queries, for_documents, "layer" in names, progress=report_progress)
    known = CorpusWords(pairs.documents.texts, backend.tokenization.vocabulary)
    prompts = for_queries.prompt, for_documents.prompt
    vectors = now.query_vectors, now.document_vectors
    with shared.progress_bar("Traits", " queries") as report_progress:
        traits = traits_of(
            pairs, *vectors, backend.tokenization, for_documents.max_length, prompts, known, report_progress
        )
    first = folds.halves(pairs.queries.texts, options.seed)
    setting = kinds.RemedyInput(
        now,
        first,
        known,
        abbreviations,
        kinds.PROMPTS if options.try_prompt is None else tuple(options.try_prompt),
        cross_encoder,
        others,
    )
    cost = cost_now(now) if names else None  # before the remedies, as on the page
    with ExitStack() as bars:

        def bar(name: str) -> ReportProgress:
            bars.close()  # the bar before it
            return bars.enter_context(shared.progress_bar(kinds.TITLES[name], " steps"))

        measured = list(diagnosis.rows_of(names, setting, options.seed, bar))
    shares = compared(traits, now.now > 1)
    values = () if held is None else compared(held, now.now > 1)
    found = diagnosis.diagnosed(
        now.now, shares, measured, pairs.queries.texts, first, options.seed, cost, now.failures(), values
    )
    if options.report is not None:
        write_whole(options.report, diagnosis.as_markdown(found, options.pairs.name, backend.spec.title, options.seed))
    _write(options, found, pairs)
    return {"rows": pairs.asking, "documents": len(pairs.documents), **found.as_json()}


def _values(pairs: Pairs, rows: Rows) -> Traits:
    """Which values of the file's other columns each query has."""
    from components.retrieval.corpora.columns import as_text
    from components.retrieval.failures.own_columns import parts_of, values_of

    sources: dict[str, list[int]] = {}
    for row in rows.rows:
        sources.setdefault(row.texts[0].strip(), []).append(row.source)
    taken = set(rows.recognised.columns.values())
    columns = {
        name: [as_text(value) for value in values] for name, values in rows.table.columns.items() if name not in taken
    }
    return values_of(columns, tuple(parts_of(columns)), [sources[query.strip()] for query in pairs.queries.texts])


def _graded(options: argparse.Namespace) -> tuple[Pairs, None, None]:
    """The queries of a folder with graded relevance, and their right texts among all documents. Raises InputError."""
    from components.retrieval.evaluation.graded.rows import rows_of_graded
    from components.retrieval.evaluation.pair_runs import pairs_of_rows

    graded = read_graded(options, shared.note)
    found = rows_of_graded(graded)
    for note in found.notes:
        shared.note(note)
    texts, queries = zip(*((graded.documents[row.document], row.query) for row in found.rows), strict=True)
    pairs = pairs_of_rows(graded.name, texts, queries, every_text=True)
    pairs.check_measurable()
    return pairs, None, None


def _check(options: argparse.Namespace) -> None:
    """Refuse, before anything is read, what could not be used after the work."""
    if not 0 <= options.seed <= MOST_SEED:
        raise InputError(
            f"The seed is {options.seed}.",
            f"It must be a number from 0 to {MOST_SEED}.",
            "Choose another, or leave it out.",
        )
    if options.report is not None:
        check_target(options.report)


def _remedies(options: argparse.Namespace) -> list[str]:
    """The names of --remedies, or the usual ones. Raises InputError for others, and for one that lacks its model."""
    from components.retrieval.failures.remedies.kinds import TITLES, in_order

    asked = {"cross-encoder": options.cross_encoder is not None, "model": options.other_model is not None}
    if options.remedies is None:
        names = [*USUAL, *(name for name, is_asked in asked.items() if is_asked)]
    else:
        names = [name.strip().lower() for name in options.remedies.split(",")]
        names = [] if names == ["none"] else names
    unknown = [name for name in names if name not in TITLES]
    if unknown:
        raise InputError(
            f"There is no remedy {unknown[0][:80]!r}.",
            f"The remedies are {', '.join(TITLES)}; none is for the traits alone.",
            "Write for example --remedies hybrid,maxsim",
        )
    if "model" in names and not asked["model"]:
        raise InputError(
            "The remedy model is given without --other-model.",
            "It needs another model to compare with.",
            "Add for example --other-model intfloat/e5-small-v2",
        )
    for name, option in (("cross-encoder", "--cross-encoder"), ("model", "--other-model")):
        if asked[name] and name not in names:
            raise InputError(
                f"{option} is given, but --remedies does not name {name}.",
                "Only that remedy uses it.",
                f"Add {name} to --remedies, or leave {option} out.",
            )
    if options.label is not None and "cross-encoder" not in names:
        raise InputError(
            "--label is given without a cross-encoder.",
            "It chooses one of a cross-encoder's labels.",
            "Add for example --cross-encoder embedded-cross-encoder, or leave --label out.",
        )
    return in_order(names)


def _short(text: str) -> str:
    return textwrap.shorten(text, 58, placeholder=" …")


def _costs(cost: SearchCost | None) -> str:
    return f"{'':>17}" if cost is None else f"{cost.milliseconds:>8.1f}{cost.bytes_per_text:>9,.0f}"


def _write(options: argparse.Namespace, found: Diagnosis, pairs: Pairs) -> None:
    """The diagnosis for people, on standard output; what needs to be said about it beside JSON, on standard error."""
    from components.retrieval.evaluation.ranks import inverse
    from components.retrieval.failures.remedies.costs import COSTS
    from components.retrieval.failures.traits import twin

    if options.json == "-":
        if found.remark:
            shared.note(found.remark)
        return
    shared.say(
        f"{found.failed:,} of {len(found.now):,} queries {'fails' if found.failed == 1 else 'fail'}: Recall@1 is "
        f"{100 * (1 - found.failed / len(found.now)):.1f} %, MRR {100 * float(inverse(found.now).mean()):.1f} %. "
        f"{len(pairs.documents):,} texts are searched, {pairs.others:,} of them right for no query."
    )
    for failure in found.failures[:MOST_SHOWN]:
        shared.say(f"  rank {failure.rank:<6,} {_short(failure.query)}  first: {_short(failure.rival)}")
    if len(found.failures) > MOST_SHOWN:
        shared.say(f"  and {len(found.failures) - MOST_SHOWN:,} more, in --report and --json")
    if found.remark:
        shared.say(found.remark)
    shared.say(f"{'trait':<34}{'failed':>9}{'found':>9}  95 % of the difference")
    for share in found.shares:
        if share.failed or share.found:
            interval = share.difference
            said = "" if interval is None else f"{100 * interval.low:>7.1f} to {100 * interval.high:.1f}"
            shared.say(
                f"{share.name:<34}{100 * share.share_of_failed:>7.1f} %{100 * share.share_of_found:>7.1f} %{said}"
                + ("  named" if share.is_named else "")
                + (f"  ({same})" if (same := twin(share, found.shares)) else "")
            )
    for share in found.values:
        if share.is_named:
            fail = f"{share.failed} of {share.failed + share.found} fail"
            shared.say(f"Queries with {share.name} fail more often by more than chance: {fail}.")
    if any(share.is_named for share in found.values):
        shared.say("A value is no cause: see which traits it comes with.")
    if found.rows:
        shared.say(
            f"{'remedy':<34}{'repaired':>9}{'harmed':>9}{'R@1':>9}{'ms':>8}{'bytes':>9}  95 % of its change, a sham of this "
            "kind, what it needs, and what each half chose"
        )
        recall = 100 * (1 - found.failed / len(found.now))
        shared.say(f"{'as it is now':<34}{'':>18}{recall:>9.2f}{_costs(found.cost)}")
    for row in found.rows:
        change = row.result.change
        shared.say(
            f"{row.title:<34}{row.result.repaired:>9}{row.result.harmed:>9}{100 * row.result.recall:>9.2f}{_costs(row.cost)}"
            f"{100 * change.low:>7.1f} to {100 * change.high:.1f}, repaired {row.control[0]}, harmed {row.control[1]}, "
            f"{row.needs_with_size}; chosen: {row.chosen}"
        )
    if found.rows:
        shared.say(COSTS)
    if found.advice.sentence != found.remark:
        shared.say(found.advice.sentence)
