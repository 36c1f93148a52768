"""Options that several commands share, and how they are read."""

from __future__ import annotations

import argparse
import sys
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from components.errors import InputError
from components.jobs import ReportProgress
from components.model.catalog import typed_model
from components.sizes import parse_bytes

if TYPE_CHECKING:
    from pathlib import Path

    from components.model.backend import Backend
    from components.model.catalog import ModelSpec
    from components.model.embedding.options import EmbedOptions
    from components.model.files.sentence_config import Role
    from components.retrieval.corpora.corpus import Corpus
    from components.retrieval.corpora.readers.limits import Limits
    from components.retrieval.corpora.readers.separated_rows import DialectChoice
    from components.retrieval.corpora.rows.reading import RowUse

MOST_DIGITS = 6  # of a layer's number
PREVIEWED_COLUMNS = 6
NAME_ENCODING = "If letters are wrong, name the encoding: --encoding NAME"


def add_embedding(parser: argparse.ArgumentParser, precision: str = "auto", cuts: str = "sentences") -> None:
    """The options of commands that embed texts: layers, poolings, model, precision and maximum length of what is cut."""
    parser.add_argument(
        "--layers", "--layer", default=None, help="all, or numbers such as 0,6 (default: the last layer)"
    )
    parser.add_argument(
        "--poolings",
        "--pooling",
        default=None,
        help="any of mean,cls,max; own for the model's own vector (models published with a Dense layer); or all "
        "(default: the pooling that the model was published with)",
    )
    parser.add_argument(
        "--model",
        type=typed_model,
        default="embedded",
        help="a hub id, a folder, or embedded (all-MiniLM-L6-v2, the default)",
    )
    add_prompt(parser)
    parser.add_argument(
        "--precision",
        default=precision,
        help="float32, bfloat16, or auto for the faster of the two on this machine, with float32 for [CLS] below the last "
        f"layer (default: {precision})",
    )
    parser.add_argument(
        "--max-length", type=int, help=f"truncate {cuts} to this many tokens (default: the model's own maximum)"
    )


def add_prompt(parser: argparse.ArgumentParser) -> None:
    """The option of commands that turn texts into vectors: what is put before them."""
    parser.add_argument(
        "--prompt",
        metavar="authors|none|TEXT",
        help="what is put before each text: the prompts that the model's authors describe, nothing, or this text (default: "
        "what the model's files say)",
    )


def load_with_prompt(model: str, prompt: str | None) -> Backend:
    """A model, with what --prompt says; what it was published with and is not applied goes to standard error.

    Raises UserError, also for a model whose authors describe no prompt.
    """
    from components.model.backend import Backend
    from components.model.catalog import AUTHORS, parse_model

    spec = parse_model(model)
    if prompt == "authors" and not spec.with_prompts:
        if not spec.prompts:
            raise InputError(
                f"No prompts of the authors of {spec.title} are known here.",
                "They are known for some models of the catalogue, such as intfloat/e5-small-v2.",
                "Write the text itself, such as --prompt 'query: '.",
            )
        spec = parse_model(f"{spec.key}{AUTHORS}")
    text = None if prompt in (None, "authors") else "" if prompt == "none" else prompt
    backend = Backend.load(spec, prompt=text)
    for sentence in backend.not_applied:
        note(f"{backend.spec.title}: {sentence}")
    if prompt is None and spec.prompts and not spec.with_prompts and not any(backend.sentence_config.prompts.values()):
        note(
            f"{offered_prompts(spec)} Its files say nothing of it, and nothing is put before texts. Use --prompt authors."
        )
    return backend


def unknown_languages(backend: Backend, texts: Mapping[str, Sequence[str]]) -> list[str]:
    """The sentences on texts, by their names, whose language a model does not know; they go to standard error."""
    from components.analysis.languages.known_letters import said_of
    from components.model.catalog import EMBEDDED_KEY

    found = said_of(texts, backend.tokenization, backend.spec.title, backend.spec.key == EMBEDDED_KEY)
    for sentence in found:
        note(sentence)
    return found


def offered_prompts(spec: ModelSpec) -> str:
    """A sentence on the prompts that the authors of a model describe."""
    named = " and ".join(f"“{text}” before {'queries' if role == 'query' else 'texts'}" for role, text in spec.prompts)
    return f"{spec.title} was trained with {named}."


def add_limits(parser: argparse.ArgumentParser) -> None:
    """The options of commands that read a file: a small one can unpack to gigabytes, and may come from anybody."""
    parser.add_argument(
        "--most-sentences",
        metavar="N",
        type=int,
        help="refuse a file with more sentences, or three times as many rows (default: 1,000,000, or the operator's setting "
        "corpus_sentences)",
    )
    parser.add_argument(
        "--most-bytes",
        metavar="SIZE",
        help="refuse a file that is larger, also when it is unpacked, such as 2G (default: 200M, or the operator's setting "
        "corpus_bytes). Reading takes up to six times as much memory",
    )


def limits_of(options: argparse.Namespace) -> Limits:
    """The limits that --most-sentences and --most-bytes give, else those of the pages. Raises InputError."""
    from components.retrieval.corpora.readers.limits import CommandLimits, browser_limits

    if options.most_sentences is not None and options.most_sentences < 1:
        raise InputError(
            f"--most-sentences is {options.most_sentences}.",
            "It must be a number above 0.",
            "Correct it, or leave it out.",
        )
    usual = browser_limits()
    return CommandLimits(
        options.most_sentences or usual.sentences,
        usual.bytes if options.most_bytes is None else parse_bytes(options.most_bytes, "--most-bytes"),
    )


def add_rows(parser: argparse.ArgumentParser, example: str, usual_part: str) -> None:
    """The options of commands that read rows of texts: which columns are what, and which part of a file is used."""
    parser.add_argument(
        "--columns",
        metavar="OURS=THEIRS,...",
        help=f"the file's columns, as in {example} (default: recognised by name, or by what they hold; said with the reason)",
    )
    parser.add_argument(
        "--part",
        choices=("train", "dev", "test", "all"),
        help="which rows of a file with a column such as split, which calls each row train, dev or test (default: "
        f"{usual_part})",
    )


def add_dialect(parser: argparse.ArgumentParser) -> None:
    """The options of commands that read a file of texts, for where the reader guesses wrongly how it is written."""
    for option, said in (
        ("--header", "whether the first row of a .csv or .tsv file names the columns"),
        ("--quotes", "whether quotes enclose its fields"),
        ("--escapes", "whether a backslash escapes what follows"),
    ):
        parser.add_argument(
            option,
            action=argparse.BooleanOptionalAction,
            default=None,
            help=f"{said} (default: detected; what is a guess is said)",
        )
    parser.add_argument(
        "--separator",
        choices=("comma", "semicolon", "tab", "bar"),
        help="what separates its fields (default: detected)",
    )
    parser.add_argument("--encoding", help="the encoding of the file (default: detected)")


def dialect_of(options: argparse.Namespace) -> DialectChoice:
    """What --header, --quotes, --escapes and --separator choose."""
    from components.retrieval.corpora.readers.separated_rows import DialectChoice

    return DialectChoice(options.separator, options.quotes, options.escapes, options.header)


def writer(options: argparse.Namespace) -> Callable[[str], None]:
    """Where what was read of a file is written: with --dry-run it is the result, unless JSON goes to standard output."""
    return say if getattr(options, "dry_run", False) and options.json != "-" else note


def _tell_otherwise(otherwise: Sequence[DialectChoice], write: Callable[[str], None]) -> None:
    """Write by which option a file is read in the other way, where how it is written was a guess."""
    for choice in otherwise:
        write(f"How the file is written is a guess. If {choice.in_words}: {choice.as_options}")


def columns_of(options: argparse.Namespace) -> dict[str, str] | None:
    """Our columns to the file's, from "anchor=headline,positive=text". Raises InputError."""
    if options.columns is None:
        return None
    pairs = [part.partition("=") for part in options.columns.split(",")]
    if not all(ours.strip() and sign and theirs.strip() for ours, sign, theirs in pairs):
        raise InputError(
            f"The columns {options.columns[:80]!r} are not valid.",
            "Each is the dashboard's name, =, and the file's name; several have commas between them.",
            "Write for example --columns anchor=headline,positive=text",
        )
    return {ours.strip(): theirs.strip() for ours, _, theirs in pairs}


def write_reading(reading: RowUse, with_preview: bool = True, write: Callable[[str], None] | None = None) -> None:
    """Write what became of the rows of a file, and how to choose otherwise where it was a guess: see `writer`."""
    write = write or note
    for sentence in reading.sentences():
        write(sentence)
    if reading.is_guess:
        chosen = ",".join(f"{ours}={theirs}" for ours, theirs in reading.columns.items())
        write(f"The columns are a guess. To choose others: --columns {chosen}")
    _tell_otherwise(reading.otherwise, write)
    if reading.encoding_is_guess:
        write(NAME_ENCODING)
    if reading.part is not None and reading.part.is_default:
        write(f"To use other rows: --part {' or '.join([*reading.part.counts, 'all'])}")
    for row in reading.preview if with_preview else ():
        read = "; ".join(f"{ours}: {text}" for ours, text in row.read.items())
        write(f"Row {row.row}: {one_line(row.given)}")
        write(f"  read as: {one_line(read)}" if read else f"  left out: {row.reason}")


def one_line(text: str, most: int = 240) -> str:
    """A text in one line of a terminal, with a sign for each line break and tab."""
    shown = visible(text.replace("\n", " ⏎ ").replace("\t", " ⇥ "))
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"


def add_engine(parser: argparse.ArgumentParser) -> None:
    """The options of commands whose work several machines can share."""
    parser.add_argument(
        "--engine",
        choices=("local", "ray"),
        default="local",
        help="local: in this process; ray: by several workers (needs requirements-scale.txt) (default: local)",
    )
    parser.add_argument(
        "--address",
        metavar="HOST:PORT",
        help="with --engine ray: a running cluster; auto finds one of this machine (default: one is started for the work, "
        "on this machine alone)",
    )


def check_engine(options: argparse.Namespace) -> None:
    """Raise InputError for an address that nothing would use, or where Ray is not installed."""
    if options.engine == "ray":
        from components.distributed.cluster import imported_ray

        imported_ray()
    elif options.address is not None:
        raise InputError(
            f"--address {options.address[:80]} is given without --engine ray.",
            "Only Ray works on several machines.",
            "Add --engine ray, or leave --address out.",
        )


def add_cross_encoder(parser: argparse.ArgumentParser) -> None:
    """The option of commands that re-rank hits."""
    parser.add_argument(
        "--cross-encoder",
        metavar="MODEL",
        type=typed_model,
        help="a cross-encoder: a hub id, a folder, or embedded-cross-encoder (included, the default)",
    )
    parser.add_argument(
        "--label", metavar="NAME", help="the label to rank by, of a cross-encoder with several: its name or number"
    )


def load_cross_encoder(options: argparse.Namespace) -> tuple[Backend, int | None]:
    """The model of --cross-encoder, and the number of --label (None for a model with one score).

    Raises UserError, also for a model that scores no pairs, and InputError for a label that it does not have or needs.
    """
    from components.model.backend import Backend
    from components.model.catalog import EMBEDDED_CROSS_ENCODER_KEY

    backend = Backend.load(options.cross_encoder or EMBEDDED_CROSS_ENCODER_KEY)
    names = backend.pair_labels()
    if options.label is None and len(names) == 1:
        return backend, None
    numbers = {str(number): number for number in range(len(names))}
    numbers |= {name: number for number, name in enumerate(names)}  # a name that is a number is a name
    number = numbers.get(options.label or "")
    if number is None:
        problem = f"has no label {options.label}" if options.label is not None else f"has {len(names)} labels"
        raise InputError(
            f"{backend.spec.title} {problem}.",
            f"A ranking needs one of its labels: {', '.join(names)}.",
            f"Write for example --label {names[0]}",
        )
    return backend, number


def load(options: argparse.Namespace) -> Backend:
    """The model of --model, with what --prompt says. Raises UserError."""
    return load_with_prompt(options.model, getattr(options, "prompt", None))


def embed_options(backend: Backend, options: argparse.Namespace, role: Role | None) -> EmbedOptions:
    """What --layers, --poolings, --max-length and --precision mean for this model. Raises InputError for a reranker."""
    if backend.is_cross_encoder:
        raise InputError(
            f"{backend.spec.title} is a reranker (cross-encoder): it scores two texts together, and makes no vectors.",
            "This command compares vectors of texts.",
            "Pick a sentence encoder, or use the command rerank with --cross-encoder.",
        )
    return backend.embed_options(
        None
        if options.layers is None
        else backend.text_layers
        if options.layers.strip().lower() == "all"
        else layers(options.layers, backend.facts.layers),
        None if options.poolings is None else poolings(options.poolings, backend.poolings),
        options.max_length,
        options.precision,
        role=role,
    )


def visible(text: str) -> str:
    """A text with the codes of the characters that a terminal would obey, or that change the order of others.

    Names and texts can hold them. Those that join letters or emoji stay.
    """
    return "".join(ascii(character)[1:-1] if _is_obeyed(character) else character for character in text)


def _is_obeyed(character: str) -> bool:
    return unicodedata.category(character) in {"Cc", "Cf", "Cs", "Zl", "Zp"} and character not in "\u200c\u200d"


def say(line: str = "") -> None:
    """Write a line of a result for people to standard output."""
    sys.stdout.write(f"{visible(line)}\n")


def note(line: str) -> None:
    """Write a line to standard error, beside the result."""
    sys.stderr.write(f"{visible(line)}\n")


def write_table(
    options: argparse.Namespace,
    runs: Sequence[Mapping[str, Any]],
    columns: Mapping[str, Callable[[Any], float | None]],
    digits: int,
) -> None:
    """One line per run: layer and pooling, and a number for each column, "-" for None. Nothing if JSON goes to the output.

    A run without a layer has the name of its ranking instead.
    """
    if options.json == "-":
        return
    say("layer pooling " + "".join(f"{title:>9}" for title in columns))
    for run in runs:
        values = [read(run) for read in columns.values()]
        numbers = "".join(f"{'-' if value is None else f'{value:.{digits}f}':>9}" for value in values)
        second = f"  first {run['reranked']} re-ranked" if "reranked" in run else ""
        second = f"  first {run['max_sim']} by MaxSim" if "max_sim" in run else second
        if "fused" in run:
            weight = "reciprocal ranks" if run["weight"] is None else f"weight {run['weight']:g}"
            second = f"  with {' and '.join(run['fused'])}, {weight}"
        place = f"{run['layer']:>5} {run['pooling']:<8}" if run["layer"] is not None else f"{run['ranking']:<14}"
        say(f"{place}{numbers}{second}")


def corpus_facts(corpus: Corpus) -> dict[str, Any]:
    """How the rows and columns of a corpus were read, for --json."""
    report = corpus.report
    return {
        "rows": {"read": report.kept, "refused": report.bad_count, "joined": report.joined, "changed": report.cleaned},
        "refused_rows": [{"row": row.row, "reason": row.reason} for row in report.bad_rows],
        "reasons": dict(report.reasons),
        "text_column": report.text_column,
        "text_column_reason": report.text_reason,
        "other_columns": list(corpus.columns),
        "left_out_columns": list(report.left_out),
        "encoding": report.encoding,
        "encoding_is_guess": report.encoding_guessed,
        "dialect": report.dialect,
        "other_dialect": report.other_dialect,
        "has_header": report.is_named,
        "could_be_read_by": [choice.as_options for choice in report.otherwise],
        "notes": list(report.notes),
    }


def texts_of(path: Path, options: argparse.Namespace) -> Sequence[str]:
    """The texts of a file, as the options of a command read it, which is written too. Raises InputError."""
    from components.retrieval.corpora.corpus import read_corpus

    corpus = read_corpus(
        path, path.name, options.text_column, options.encoding, limits_of(options), dialect=dialect_of(options)
    )
    write_corpus(corpus, "--text-column NAME")
    return corpus.texts


def write_corpus(corpus: Corpus, option: str = "", write: Callable[[str], None] | None = None) -> None:
    """Write how the rows and columns of a corpus were read (see `writer`); `option` chooses another column."""
    write = write or note
    for sentence in corpus.report.sentences(tuple(corpus.columns), option):
        write(sentence)
    _tell_otherwise(corpus.report.otherwise, write)
    if corpus.report.encoding_guessed:
        write(NAME_ENCODING)


def add_dry_run(parser: argparse.ArgumentParser) -> None:
    """The option of commands that read a file of sentences: only say how it is read."""
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="only say how the file is read: its rows and columns, and three rows as they stand beside what was read",
    )


def previewed(corpus: Corpus, write: Callable[[str], None]) -> dict[str, Any]:
    """Write the first rows of a corpus as they stand in the file beside what was read of them; returned for --json."""
    rows = []
    for sample in corpus.report.samples:
        write(f"row {sample.row} in the file: {sample.written}")
        read = {corpus.report.text_column: sample.text, **sample.columns}
        if sample.refused:
            write(f"  refused: {sample.refused}")
        else:
            for name, value in list(read.items())[:PREVIEWED_COLUMNS]:
                write(f"  {name}: {value}")
        rows.append(
            {"row": sample.row, "written": sample.written}
            | ({"refused": sample.refused} if sample.refused else {"read": read})
        )
    return {"dry_run": True, "preview": rows}


def write_left_out(bad: int, kept: int) -> None:
    """Write to standard error how many rows of a file cannot be used."""
    if bad:
        note(f"{bad:,} of {bad + kept:,} rows cannot be used and {'is' if bad == 1 else 'are'} left out.")


def layers(text: str, last: int) -> tuple[int, ...]:
    """Layers from "all", "6" or "0,6". Raises InputError for anything else; the model checks the range."""
    if text.strip().lower() == "all":
        return tuple(range(last + 1))
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdecimal() and len(part) <= MOST_DIGITS for part in parts):
        raise InputError(
            f"The layers {text[:80]!r} are not valid.",
            f"Layers are numbers from 0 to {last}, separated by commas, or the word all.",
            "Write for example --layers 0,6",
        )
    return tuple(int(part) for part in parts)


def poolings(text: str, every: tuple[str, ...]) -> tuple[str, ...]:
    """Poolings from "mean,cls", or "all": those that the model has."""
    return every if text.strip().lower() == "all" else tuple(part.strip() for part in text.split(","))


@contextmanager
def progress_bar(
    label: str, unit: str = " sentences", before: Callable[[], None] = lambda: None
) -> Iterator[ReportProgress]:
    """A progress bar on standard error with the speed and the time left; it appears with the first progress, after `before`.

    With the unit "B", numbers are shown in kB and MB.
    """
    bar: Any = None

    def report_progress(done: int, total: int) -> None:
        nonlocal bar
        if bar is None:
            from tqdm import tqdm

            before()
            # What was done before does not count for the speed.
            bar = tqdm(
                desc=visible(label),
                total=total,
                initial=done,
                unit=unit,
                unit_scale=unit == "B",
                smoothing=0,
                dynamic_ncols=True,
            )
        if done != bar.n or sys.stderr.isatty():  # a terminal shows how the time goes on, a log each line
            bar.update(done - bar.n)

    try:
        yield report_progress
    finally:
        if bar is not None:
            bar.close()
