"""Code for a diagnosis: what failed queries share, and what each remedy repairs and harms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from components.snippets import code
from components.snippets.code import Snippet

if TYPE_CHECKING:
    from components.model.backend import Backend


def _begin(
    backend: Backend, corpus: Sequence[str], column: str, cell: tuple[int, str], max_length: int | None
) -> tuple[str, ...]:
    """The statements that give `pairs`, and `now`, how its queries are ranked."""

    def options(role: str) -> str:
        chosen = f"[{cell[0]}], {code.literal([cell[1]])}"
        return code.call("backend.embed_options", chosen, max_length=max_length, precision="float32", role=role)

    return (
        code.model(backend),
        *corpus,
        f"pairs = pairs_of_corpus(corpus, {code.literal(column)})",
        f"asked = {options('query')}",
        f"stored = {options('document')}",
        'now = present(backend, pairs, asked, stored, every_cell=True, similarity="cosine")',
        "words = CorpusWords(pairs.documents.texts, backend.tokenization.vocabulary)",
    )


def traits(
    backend: Backend, corpus: Sequence[str], column: str, cell: tuple[int, str], max_length: int | None
) -> Snippet:
    """The shares of the traits among failed and found queries."""
    return Snippet(
        _begin(backend, corpus, column, cell, max_length),
        (
            "prompts = asked.prompt, stored.prompt",
            "found = traits_of(pairs, now.query_vectors, now.document_vectors, backend.tokenization, stored.max_length, "
            "prompts, words)",
            "values = compared(found, now.now > 1)",
            "for share in values:\n    print(share.name, share.share_of_failed, share.share_of_found, share.is_named)",
        ),
    )


def remedies(
    backend: Backend,
    corpus: Sequence[str],
    column: str,
    cell: tuple[int, str],
    max_length: int | None,
    names: Sequence[str],
    seed: int,
) -> Snippet:
    """What some remedies repair and harm."""
    return Snippet(
        (
            *_begin(backend, corpus, column, cell, max_length),
            f"setting = Setting(now, halves(pairs.queries.texts, {seed}), words)",
        ),
        (
            f"values = list(rows_of({code.literal(list(names))}, setting, {seed}))",
            "for row in values:\n"
            "    print(row.title, row.result.repaired, row.result.harmed, row.result.recall, row.result.change)",
        ),
    )
