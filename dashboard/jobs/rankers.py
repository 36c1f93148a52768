"""The word rankings that several pages compare with the model's vectors; dashboard/corpora has the session's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from components.jobs import Stoppable
from components.retrieval.search import lexical
from dashboard.jobs import requests

if TYPE_CHECKING:
    from components.retrieval.corpora.texts import Texts
    from components.retrieval.search.lexical import WordRanker


@dataclass(frozen=True)
class WordRanking:
    """How to make a ranker without a session; `source` names the word vectors it uses, if any."""

    kind: str
    source: str
    file: str  # the name of the person's file that the word vectors are from; "" for others
    make: Callable[[Sequence[str]], WordRanker]


def word_ranker(ranking: WordRanking, texts: Texts) -> WordRanker:
    """The ranker over texts, made once. Raises NotReady while its words are counted."""
    kind, sentences = ranking.kind, texts.texts
    return requests.prepared(
        ("ranker", kind, texts.content_hash, ranking.source),
        f"{lexical.TITLES[kind]}: counting the words of {len(sentences):,} sentences",
        lambda report_progress, is_stopped: ranking.make(Stoppable(sentences, is_stopped)),
        f"ranker_{kind}",
    )
