"""The sections of the Tokens page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from components.analysis import alignment
from components.analysis import tokens as token_analysis
from components.analysis import vocabulary as vocabulary_search
from components.charts.grids import tensor_grids
from components.model.catalog import CATALOG, EMBEDDED_KEY
from components.model.tokenization import invisible_characters
from components.model.trace import Token, TokenizedSentence
from dashboard import caching, settings, state
from dashboard.ui import chips, controls, figures, messages, model_gate

if TYPE_CHECKING:
    from components.model.backend import Backend

GRID_ROWS = 8  # sentences drawn at a time in the tensor grids
# What a fact of a token is called in the glossary.
TERMS = {
    "Piece": "token",
    "Id": "id",
    "Position": "position",
    "Token type (segment)": "segment",
    "Attention mask": "attention mask",
    "Special token": "special token",
}
ROLES = {
    "cls": "starts the input; its vector can stand for the whole sentence",
    "sep": "ends a text, and parts the two texts of a pair",
    "pad": "fills short rows of a batch; the attention mask hides it",
    "unk": "stands for whatever the vocabulary does not have",
    "mask": "a gap for the model to fill, used in training",
    "bos": "begins a text",
    "eos": "ends a text",
}


def pieces(backend: Backend, sentences: Sequence[TokenizedSentence]) -> None:
    """Chips for every sentence, and the facts of the one that was clicked."""
    chosen = controls.positions(sentences, backend.spec.key)
    row = min(state.get("sentence"), len(sentences) - 1)

    def pick(index: int, position: int) -> None:
        state.put("sentence", index)
        state.put("tokens", (*chosen[:index], position, *chosen[index + 1 :]))

    chips.chips(
        [
            chips.ChipRow(index, sentence, (chosen[index],) if index == row else ())
            for index, sentence in enumerate(sentences)
        ],
        key="chips_tokens",
        on_click=pick,
        unknown_id=backend.tokenization.unknown_id,
        special_ids=frozenset(number for _, number in backend.tokenization.special_tokens.values()),
        scale=controls.scale(),
    )
    controls.chip_legend()
    token = sentences[row].tokens[chosen[row]]
    surface = sentences[row].surface(chosen[row])
    with st.container(border=True, key="token_facts"):
        word = "none: it was added by the tokenizer" if token.word is None else sentences[row].word_text(token.position)
        cells = {
            "Piece": token.piece,
            "Id": str(token.id),
            "Position": str(token.position),
            "Sentence": str(row + 1),
            "Stands for": surface if surface else "no text of yours",
            "Characters": "–" if token.special else f"{token.start + 1} to {token.end}",
            "Word": word,
            "Token type (segment)": str(token.segment) if backend.facts.segments else "this model has none",
            "Attention mask": "1",
            "Special token": _special(backend, token),
        }
        columns, words = st.columns(5), caching.glossary()
        for index, (label, value) in enumerate(cells.items()):
            with columns[index % 5]:
                st.caption(label, help=words.get(TERMS.get(label, "")))
                st.text(value)


def _special(backend: Backend, token: Token) -> str:
    if token.special:
        return "yes"
    typed = {number for role, (_, number) in backend.tokenization.special_tokens.items() if role != "unk"}
    return "yes, typed by you" if token.id in typed else "no"


def unusual(backend: Backend, sentences: Sequence[TokenizedSentence]) -> None:
    """Say which characters the model will not see as typed."""
    for number, sentence in enumerate(sentences, start=1):
        unknown = [
            sentence.surface(token.position)
            for token in sentence.tokens
            if token.id == backend.tokenization.unknown_id and not token.special
        ]
        if unknown:
            shown = ", ".join(f"“{text}”" for text in dict.fromkeys(unknown))
            st.warning(
                f"Sentence {number}: the vocabulary does not know {messages.escape(shown)}. The model sees only "
                f"{messages.escape(backend.tokenization.special_tokens['unk'][0])} there.",
                icon=":material/help:",
            )
        hidden = invisible_characters(sentence.text)
        if hidden:
            st.warning(
                f"Sentence {number} holds invisible characters ({', '.join(dict.fromkeys(hidden))}); most tokenizers "
                "drop them.",
                icon=":material/visibility_off:",
            )


def statistics(backend: Backend, sentences: Sequence[TokenizedSentence]) -> None:
    """Counts over all sentences."""
    counted = token_analysis.statistics(sentences, backend.tokenization.unknown_id)
    columns = st.columns(5)
    columns[0].metric("Tokens", f"{counted.tokens:,}", help="Special tokens included: what the model reads.")
    columns[1].metric("Words", f"{counted.words:,}", help="As the tokenizer splits; punctuation marks count.")
    columns[2].metric("Pieces a word", f"{counted.pieces_per_word:.2f}", help="1.00: every word is in the vocabulary.")
    columns[3].metric("Split words", f"{counted.split_words:,}", help="Words of two or more pieces.")
    columns[4].metric("Unknown pieces", f"{100 * counted.unknown_share:.1f} %")


def tensors(backend: Backend, sentences: Sequence[TokenizedSentence]) -> None:
    """input_ids, token_type_ids and attention_mask of the whole set, as the model gets them."""
    ids, mask, segments = backend.tokenization.arrays(sentences)
    named = [("input_ids", ids), ("attention_mask", mask)]
    if segments is not None:
        named.insert(1, ("token_type_ids", segments))
    start = 0
    if len(sentences) > GRID_ROWS:
        pages = -(-len(sentences) // GRID_ROWS)
        start = GRID_ROWS * (st.pagination(pages, key="grid_page") - 1)
        st.caption(f"Sentences {start + 1} to {min(start + GRID_ROWS, len(sentences))} of {len(sentences)}")
    part = slice(start, start + GRID_ROWS)
    st.html(
        tensor_grids(
            [(name, array[part]) for name, array in named],
            [[token.piece for token in sentence.tokens] for sentence in sentences[part]],
            mask[part],
            start,
            len(sentences),
        )
    )
    if segments is None:
        st.caption("This model has no token types, so it gets no token_type_ids.")
    figures.reading(
        "Each tensor has one row a sentence and one column a position. All sentences of a batch are filled up with "
        "padding (grey) to the longest; the attention mask is 0 there, so that no token looks at it.",
        "What the numbers mean: ids are places in a table, and neighbouring ids have nothing to do with each other.",
    )
    figures.data("tensors", lambda: _tensor_table(sentences, ids, mask, segments))


def _tensor_table(
    sentences: Sequence[TokenizedSentence], ids: np.ndarray, mask: np.ndarray, segments: np.ndarray | None
) -> pd.DataFrame:
    rows, columns = np.indices(ids.shape)
    pieces = [
        sentences[row].tokens[column].piece if column < len(sentences[row]) else "(padding)"
        for row, column in zip(rows.ravel().tolist(), columns.ravel().tolist(), strict=True)
    ]
    frame = {"sentence": rows.ravel() + 1, "position": columns.ravel(), "piece": pieces, "input_ids": ids.ravel()}
    if segments is not None:
        frame["token_type_ids"] = segments.ravel()
    return pd.DataFrame({**frame, "attention_mask": mask.ravel()})


def decoding(backend: Backend, sentences: Sequence[TokenizedSentence]) -> None:
    """Ids back to text, and what was lost on the way."""
    st.markdown("The ids are turned back into text. What differs from what was typed, the model never saw.")
    rows = []
    for number, sentence in enumerate(sentences, start=1):
        ids = [token.id for token in sentence.tokens]
        plain = backend.tokenization.decode(ids, skip_special=True)
        lost = token_analysis.losses(sentence, plain, backend.tokenization.unknown_id)
        rows.append(
            {
                "sentence": number,
                "typed": sentence.text,
                "lost or changed": ", ".join(_lost_words(lost)) or "nothing",
                "decoded": backend.tokenization.decode(ids),
            }
        )
    st.dataframe(
        pd.DataFrame(rows),
        hide_index=True,
        key="decoded",
        column_config={
            "sentence": st.column_config.NumberColumn(width=70),
            "typed": st.column_config.TextColumn(width=260),
            "lost or changed": st.column_config.TextColumn(width=220),
        },
    )


def _lost_words(lost: token_analysis.Losses) -> list[str]:
    unknown = f"unknown: {' '.join(lost.unknown)}" if lost.unknown else ""
    cut = f"{lost.truncated:,} tokens cut away" if lost.truncated else ""
    named = [("capital letters", lost.case), ("accents", lost.accents), ("spacing", lost.spacing)]
    words = [name for name, holds in named if holds] + [text for text in (unknown, cut) if text]
    return words + (["other characters"] if lost.other else [])


def special_tokens(backend: Backend) -> None:
    """This tokenizer's special tokens and their roles."""
    st.subheader("Special tokens", anchor=False)
    st.dataframe(
        pd.DataFrame(
            [
                {"token": piece, "id": number, "role": f"{role.upper()}: {ROLES[role]}"}
                for role, (piece, number) in backend.tokenization.special_tokens.items()
            ]
        ),
        hide_index=True,
        key="special_tokens",
        column_config={"token": st.column_config.TextColumn(width=100), "id": st.column_config.NumberColumn(width=80)},
    )


def vocabulary(backend: Backend) -> None:
    """Size of the vocabulary and a search over it."""
    pieces_known = backend.tokenization.vocabulary
    st.metric("Vocabulary size", f"{len(pieces_known):,}")
    by_id = state.get("vocabulary_mode") == "id"
    query = controls.bind(
        "vocabulary_query",
        st.text_input,
        "Search the vocabulary",
        placeholder="2924, or 100-110" if by_id else "bank, or ##ing",
        max_chars=100,
    )
    mode = controls.choice(
        "vocabulary_mode",
        "The piece",
        {"begins with": "begins with", "contains": "contains", "id": "has the id"},
        show_label=False,
    )
    if not query:
        st.caption(
            "Type something to search. In BERT's vocabularies ## marks a piece that continues a word; in RoBERTa's, Ġ "
            "marks a space before it."
        )
        return
    hits = vocabulary_search.search(pieces_known, query, mode)  # type: ignore[arg-type]  # the control's own options
    shown = f", the first {len(hits.ids)} shown" if hits.total > len(hits.ids) else ""
    st.caption(f"{hits.total:,} found{shown}")
    if hits.total:
        st.dataframe(
            pd.DataFrame({"id": hits.ids, "piece": hits.pieces}), hide_index=True, key="vocabulary_hits", width=420
        )


def another_tokenizer(backend: Backend, sentences: Sequence[TokenizedSentence]) -> None:
    """The second model's pieces beside the first's, aligned by the characters they stand for."""
    if not state.get("model2"):
        st.info(
            "Choose a second model under “Compare with” in the sidebar to see how its tokenizer cuts the same text."
        )
        others = [spec.title for spec in CATALOG if spec.key != EMBEDDED_KEY]
        st.caption(f"On offer: {', '.join(others)}." + (" Or name another." if settings.free_models_allowed() else ""))
        return
    second = model_gate.second_model()
    if second is None:
        if state.get("model2") == state.get("model"):
            st.info("Both are the same model. Choose another one under “Compare with”.")
        return
    row = controls.sentence(sentences)
    spans = alignment.align(sentences[row], controls.current_tokens(second)[row])
    names = [backend.spec.title, second.spec.title]
    frame = pd.DataFrame(
        {
            "text": [span.text for span in spans],
            names[0]: [" ".join(token.piece for token in span.first) or "–" for span in spans],
            f"{names[1]} ": [" ".join(token.piece for token in span.second) or "–" for span in spans],
            "pieces": [f"{len(span.first)} and {len(span.second)}" for span in spans],
        }
    )
    st.metric("Kept in one piece by both", f"{100 * alignment.agreement(spans):.0f} %")
    st.dataframe(frame, hide_index=True, key="aligned")
