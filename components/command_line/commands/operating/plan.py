"""`plan --sentences N`: hours, bytes and money of a large index, from a rate that is measured here."""

from __future__ import annotations

import argparse
import time
from itertools import cycle, islice
from typing import TYPE_CHECKING, Any

from components.command_line import options as shared
from components.errors import InputError
from components.sizes import in_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from components.model.backend import Backend
    from components.model.embedding.options import EmbedOptions
    from components.retrieval.index.cost import IndexCost

NAME = "plan"
HELP = "what an index of millions of sentences would take: hours, bytes and money"
WARM_UP, MEASURED = 256, 2_048  # sentences


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--sentences",
        nargs="+",
        metavar="N",
        default=["1e7", "1e8", "1e9"],
        help="how many, such as 1e8 (default: three sizes)",
    )
    parser.add_argument(
        "--sample", metavar="CORPUS", help="sentences of your own to measure with (default: 200 included ones)"
    )
    parser.add_argument("--text-column", help="the sample's column with the sentences (default: detected)")
    shared.add_dialect(parser)
    parser.add_argument(
        "--rate", type=float, help="sentences a second of one machine (default: measured here, on the sample)"
    )
    parser.add_argument("--machines", type=int, default=1, help="machines that embed at the same time (default: 1)")
    parser.add_argument("--hour-price", type=float, help="the price of a machine for an hour, in any currency")
    parser.add_argument(
        "--storage-price", type=float, default=0.0, help="the price of 10^9 bytes for a month (default: 0)"
    )
    shared.add_limits(parser)
    shared.add_embedding(parser)


def run(options: argparse.Namespace) -> dict[str, Any]:
    from components.retrieval.index.cost import Prices, Rate, cost, sentence_counts, vector_bytes

    counts = sentence_counts(options.sentences)
    texts = _sample(options)
    backend = shared.load(options)
    embed_options = shared.embed_options(backend, options, "document")
    speed = _measured(backend, texts, embed_options) if options.rate is None else options.rate
    rate = Rate(speed, sum(len(text.encode("utf-8", "surrogatepass")) for text in texts) / len(texts))
    prices = None if options.hour_price is None else Prices(options.hour_price, options.storage_price)
    dim = backend.vector_size(embed_options.poolings)
    cells = len(embed_options.layers), len(embed_options.poolings)
    costs = [cost(count, dim, *cells, rate, options.machines, prices) for count in counts]
    if options.json != "-":
        _say(costs, rate.sentences_per_second, options.machines)
    return {
        "model": backend.spec.key,
        "layers": list(embed_options.layers),
        "poolings": list(embed_options.poolings),
        "dim": dim,
        "precision": embed_options.precision,
        "sentences_per_second": round(rate.sentences_per_second, 1),
        "rate_is_measured": options.rate is None,
        "text_bytes_per_sentence": round(rate.text_bytes, 1),
        "vector_bytes": {name: vector_bytes(dim, name) for name in costs[0].vector_bytes},
        "machines": options.machines,
        "plans": [
            {
                "sentences": each.sentences,
                "hours": each.hours,
                "text_bytes": each.text_bytes,
                "vector_bytes": each.vector_bytes,
                "money": each.money,
                "money_once": each.money_once,
            }
            for each in costs
        ],
    }


def _sample(options: argparse.Namespace) -> Sequence[str]:
    from pathlib import Path

    from components.retrieval.corpora.demo import demo_sentences

    path: str | None = options.sample
    if path is None:
        return demo_sentences()
    texts = shared.texts_of(Path(path), options)
    if not len(texts):
        raise InputError(f"{path} has no sentences.", "A rate is measured on some.", "Choose another file.")
    return list(islice(texts, MEASURED))


def _measured(backend: Backend, texts: Sequence[str], options: EmbedOptions) -> float:
    """Sentences a second: the sample, repeated up to MEASURED sentences, after a few that warm the machine up."""
    sentences = list(islice(cycle(texts), MEASURED))
    backend.embed(sentences[:WARM_UP], options=options)
    with shared.progress_bar("Measuring") as report_progress:
        start = time.perf_counter()
        backend.embed(sentences, options=options, progress=report_progress)
        return len(sentences) / (time.perf_counter() - start)


def _say(costs: Sequence[IndexCost], speed: float, machines: int) -> None:
    shared.say(f"{speed:,.0f} sentences a second on a machine, {machines:,} of them")
    formats = list(costs[0].vector_bytes)
    shared.say(
        f"{'sentences':>15}{'hours':>12}{'texts':>11}" + "".join(f"{name:>11}" for name in formats) + f"{'money':>12}"
    )
    for each in costs:
        sizes = "".join(f"{in_words(size):>11}" for size in (each.text_bytes, *each.vector_bytes.values()))
        money = "-" if each.money_once is None else f"{each.money_once:,.2f}"
        shared.say(f"{each.sentences:>15,}{each.hours:>12,.2f}{sizes}{money:>12}")
    if costs[0].money is not None:
        shared.say("money: the machines alone; --json has the sum with a month of storage for each format")
