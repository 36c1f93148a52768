"""The sections of the views of pieces."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from components import numbers
from components.analysis import alignment
from components.analysis import tokens as token_analysis
from components.analysis import vocabulary as vocabulary_search
from components.analysis.lost_characters import LostCharacters, lost_characters
from components.analysis.why.common_runs import steps
from components.charts.grids import GridRow, KnownRow, known_pieces, tensor_grids
from components.model.files import example_tokenizers
from components.model.tokenization import invisible_characters
from components.model.trace import Token, TokenizedSentence
from components.shown_code import arrays
from components.shown_code.code import NoCode
from dashboard import caching, ready_made, state
from dashboard.ui import browser, controls, figures, messages, model_gate, wording
from dashboard.views.tokens import findings

if TYPE_CHECKING:
    from components.model.backend import Backend
    from components.shown_code.arrays import Input
    from components.shown_code.code import AnyCode

OF_AN_EXAMPLE = NoCode(
    "The tokenizers that come with the dashboard are in components/model/files/example_tokenizers.py."
)
GRID_ROWS = 8  # sentences per page of the tensor grids
DIFFERENT_SET = "rare-words"  # two tokenizers split these sentences differently
MOST_TYPED = 400  # characters of a sentence in the card of what is lost
NAMED_WORDS = 3  # in the message on two tokenizers
NAMED_HITS = 3  # of the vocabulary's pieces that begin alike
MARKS = {"Ġ": "a space comes before the piece", "##": "the piece continues a word", "▁": "the piece begins a word"}
# The glossary's terms for the facts of a token.
TERMS = {
    "Piece": "token",
    "Id": "id",
    "Position (from 0)": "position",
    "Token type (segment)": "segment",
    "Attention mask": "attention mask",
    "Special token": "special token",
}
ROLES = {
    "cls": "starts the input; its vector can stand for the whole sentence",
    "sep": "ends a text and separates the two texts of a pair",
    "pad": "fills the short rows of a batch; the attention mask hides it",
    "unk": "stands for text that is not in the vocabulary",
    "mask": "a gap that the model learns to fill in training",
    "bos": "begins a text",
    "eos": "ends a text",
}


def pieces(backend: Backend, sentences: Sequence[TokenizedSentence]) -> None:
    """The text above its pieces for every sentence, and the facts of the piece that was clicked."""
    interest = controls.interest(sentences, backend)
    row, chosen = interest.row, interest.positions
    decoded = [_decoded(backend, sentence) for sentence in sentences]
    unknown = backend.tokenization.unknown_id
    lost = [lost_characters(item, text, unknown) for item, text in zip(sentences, decoded, strict=True)]

    def pick(index: int, position: int) -> None:
        controls.choose_word(sentences, chosen, index, position)

    figures.above(
        findings.of_pieces(sentences, lost, unknown),
        key="pieces",
        place=".st-key-chips_tokens",
        table=lambda: _pieces_table(sentences),
        code=controls.current_input(backend).tensors(),
        title="Text and pieces",
        read="Above stands the text as it was typed, below each word its pieces with their ids. A blue brace joins the pieces "
        "of a split word; orange marks what does not come back; a dashed piece is added by the tokenizer, a striped one is "
        "not in the vocabulary. Click a piece, or move with the arrow keys.",
        not_shown="What a piece means: an id is the number of a row in a table, and neighbouring ids are unrelated.",
    )
    browser.chips(
        [
            browser.ChipRow(index, sentence, (chosen[index],) if index == row else (), lost=lost[index].all)
            for index, sentence in enumerate(sentences)
        ],
        key="chips_tokens",
        on_click=pick,
        unknown_id=unknown,
        special_ids=frozenset(number for _, number in backend.tokenization.special_tokens.values()),
        scale=controls.scale(),
        under=lambda token: (str(token.id),),
    )
    if not token_analysis.statistics(sentences, unknown).split_words:
        examples = ready_made.ready_made_sets()[DIFFERENT_SET]
        if st.button(f"Show the ready-made sentences “{examples.title}”", key="split_words_set"):
            state.put("sentences", examples.sentences)
            state.put("sentence", None)
            st.rerun()  # the whole page, because the bar shows the sentences too
    messages.hint("pieces")
    facts(backend, sentences[row], chosen[row], str(row + 1))
    _what_became(backend, sentences[row], decoded[row], lost[row], row)


def _decoded(backend: Backend, sentence: TokenizedSentence, of_pair: bool | None = None) -> str:
    """The text that the tokens give, or those of the first text alone, or of the second of a pair."""
    ids = [token.id for token in sentence.tokens if of_pair is None or token.in_pair == of_pair]
    return backend.tokenization.decode(ids, skip_special=True)


def _pieces_table(sentences: Sequence[TokenizedSentence]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "sentence": row,
                "position": token.position,
                "piece": token.piece,
                "id": token.id,
                "word": "" if token.word is None else sentence.word_text(token.position),
                "stands for": sentence.surface(token.position),
            }
            for row, sentence in enumerate(sentences, 1)
            for token in sentence.tokens
        ]
    )


def _what_became(backend: Backend, sentence: TokenizedSentence, decoded: str, lost: LostCharacters, row: int) -> None:
    """Three cards for one sentence: what comes back of it, what is added, and how much room is left."""
    length = controls.length_for(backend) or backend.own_max_length
    added = [token.piece for token in sentence.tokens if token.special]
    names = " and ".join(f"<b>{html.escape(piece)}</b>" for piece in dict.fromkeys(added)) or "Nothing"
    shown = html.escape(decoded[:MOST_TYPED]) + ("…" if len(decoded) > MOST_TYPED else "")
    same = "put together again from the pieces" if lost.all else "as it was typed"
    share = min(100.0, 100 * len(sentence) / length)
    free = max(0, length - len(sentence))
    keeps_end = backend.tokenization.keeps_end
    left = (
        ("Here it begins: what comes before is cut off." if keeps_end else "Here it stops: what follows is cut off.")
        if sentence.dropped
        else f"{numbers.counted(free, 'piece')} {'is' if free == 1 else 'are'} free."
    )
    own = backend.own_max_length
    if own < length:
        left += f" The model was published for {own:,}."
    figures.markup(
        f"""<p class="bi-of">Sentence {row + 1}</p>
        <div class="bi-cards"><section><h6>What comes back <span>{same}</span></h6><p>{shown}</p></section>
        <section><h6>What is added <span>{numbers.counted(len(added), "piece")}</span></h6><p>{names}: the model was trained
        to find them there. They have vectors too.</p></section>
        <section><h6>Room <span>{len(sentence):,} of {length:,}</span></h6><i><b style="width: {share:.1f}%"></b></i><p>{left}
        </p></section></div>""".replace("\n        ", " "),
        f"became {row}",
    )


def _marked(text: str, lost: frozenset[int]) -> str:
    return "".join(
        f"<mark>{html.escape(letter)}</mark>" if place in lost else html.escape(letter)
        for place, letter in enumerate(text)
    ).replace("</mark><mark>", "")


def facts(backend: Backend, sentence: TokenizedSentence, position: int, sentence_name: str) -> None:
    """What is known of the token that was clicked."""
    token, surface = sentence.tokens[position], sentence.surface(position)
    with st.container(key="token_facts"), st.expander("All facts of the chosen piece", icon=":material/info:"):
        word = "none: the tokenizer added it" if token.word is None else sentence.word_text(position)
        cells = {
            "Piece": token.piece,
            "Id": str(token.id),
            "Position (from 0)": str(token.position),
            "Characters (from 0)": f"{token.start} to {token.end - 1}" if token.end > token.start else "–",
            "Stands for": surface or "none of your text",
            "Sentence": sentence_name,
            "Word": word,
            "Token type (segment)": str(token.segment) if backend.facts.segments else "this model has none",
            "Attention mask": "1",
            "Special token": _special(backend, token),
        }
        columns, glossary = st.columns(5), caching.glossary()
        for index, (label, value) in enumerate(cells.items()):
            with columns[index % 5]:
                st.caption(label, help=glossary.get(TERMS.get(label, "")))
                st.text(value)


def _special(backend: Backend, token: Token) -> str:
    if token.special:
        return "yes"
    special_ids = {number for role, (_, number) in backend.tokenization.special_tokens.items() if role != "unk"}
    return "yes, typed by you" if token.id in special_ids else "no"


def unusual_characters(
    backend: Backend, sentences: Sequence[TokenizedSentence], numbers: Sequence[int] | None = None
) -> None:
    """Say which characters the model will not see as typed; `numbers` are those of the sentences if not 1, 2, ..."""
    for number, sentence in zip(numbers or range(1, len(sentences) + 1), sentences, strict=True):
        unknown = [
            sentence.surface(token.position)
            for token in sentence.tokens
            if token.id == backend.tokenization.unknown_id and not token.special
        ]
        if unknown:
            quoted = ", ".join(f"“{text}”" for text in dict.fromkeys(unknown))
            st.warning(
                f"Sentence {number} has text that is not in the vocabulary: {messages.escape(quoted)}. The model sees only "
                f"{messages.escape(backend.tokenization.special_tokens['unk'][0])} there.",
                icon=":material/help:",
            )
        invisible = invisible_characters(sentence.text)
        if invisible:
            st.warning(
                f"Sentence {number} contains invisible characters ({', '.join(dict.fromkeys(invisible))}). Most "
                "tokenizers drop them.",
                icon=":material/visibility_off:",
            )


def statistics(backend: Backend, sentences: Sequence[TokenizedSentence]) -> None:
    """Counts over all sentences, in a line."""
    counts = token_analysis.statistics(sentences, backend.tokenization.unknown_id)
    figures.note(
        f"{counts.tokens:,} pieces, the added ones included · {numbers.counted(counts.words, 'word')} · "
        f"{numbers.number(counts.pieces_per_word, 2)} pieces per word · {numbers.counted(counts.split_words, 'split word')} · "
        f"{100 * counts.unknown_share:.1f} % unknown pieces",
        "statistics",
    )


def tensors(
    backend: Backend, sentences: Sequence[TokenizedSentence], read: Input, names: Sequence[str] | None = None
) -> None:
    """input_ids, token_type_ids and attention_mask of all sentences, as the model gets them.

    `read` is what the sentences are the tokens of; `names` stand before the rows in place of the sentences' numbers.
    """
    ids, mask, segments = backend.tokenization.arrays(sentences)
    grids = [("input_ids", ids), ("attention_mask", mask)]
    if segments is not None:
        grids.insert(1, ("token_type_ids", segments))
    figures.above(
        findings.of_tensors(
            mask, len(grids), 0 if segments is None else int(segments.sum()), is_pair=sentences[0].pair is not None
        ),
        key="tensors",
        place=".bi-grids table",
        table=lambda: _tensor_table(sentences, ids, mask, segments, names),
        code=read.tensors(),
        title="The input tensors",
        read="Below each piece stand the numbers that the model gets for it: its id, which row of the vocabulary it is; its "
        "token type, 1 in the second text of a pair (orange); and the attention mask, 1 where there is text (blue). Each "
        "tensor has one row per sentence and one column per position. Padding (grey) fills every sentence of a batch up to "
        "the length of the longest. The attention mask is 0 there, so that "
        + ("no token attends to it." if backend.structure.has_blocks else "the mean of a text leaves it out."),
        not_shown="What the numbers mean: an id is a row number of a table, and neighbouring ids are unrelated.",
    )
    start = 0
    if len(sentences) > GRID_ROWS:
        pages = -(-len(sentences) // GRID_ROWS)
        page = min(max(1, st.pagination(pages, key="grid_page")), pages)  # a browser may send any number
        start = GRID_ROWS * (page - 1)
        st.caption(f"Sentences {start + 1} to {min(start + GRID_ROWS, len(sentences))} of {len(sentences)}")
    rows = slice(start, start + GRID_ROWS)
    pad = backend.tokenization.special_tokens.get("pad", ("", 0))[0]
    figures.markup(
        tensor_grids(
            [(name, array[rows]) for name, array in grids],
            [
                _grid_row(sentence, f"sentence {number}" if names is None else f"sentences {names[number - 1]}", pad)
                for number, sentence in enumerate(sentences[rows], start + 1)
            ],
            mask[rows],
            len(sentences),
        ),
        "tensor_grids",
    )
    if segments is None:
        st.caption(f"This model gets no token_type_ids. {wording.missing_parts(backend.structure)}")


def _grid_row(sentence: TokenizedSentence, name: str, pad: str) -> GridRow:
    """A sentence's words, each over its pieces; `pad` is the piece of padding."""
    words: list[tuple[str, int]] = []
    before = None
    for token in sentence.tokens:
        word = None if token.word is None else (token.in_pair, token.word)
        if word is not None and word == before:
            words[-1] = (words[-1][0], words[-1][1] + 1)
        else:
            words.append(("" if word is None else sentence.word_text(token.position), 1))
        before = word
    return GridRow(name, words, [token.piece for token in sentence.tokens], pad)


def _tensor_table(
    sentences: Sequence[TokenizedSentence],
    ids: np.ndarray,
    mask: np.ndarray,
    segments: np.ndarray | None,
    names: Sequence[str] | None,
) -> pd.DataFrame:
    rows, columns = np.indices(ids.shape)
    pieces = [
        sentences[row].tokens[column].piece if column < len(sentences[row]) else "(padding)"
        for row, column in zip(rows.ravel().tolist(), columns.ravel().tolist(), strict=True)
    ]
    sentence = rows.ravel() + 1 if names is None else [names[row] for row in rows.ravel().tolist()]
    frame = {"sentence": sentence, "position": columns.ravel(), "piece": pieces, "input_ids": ids.ravel()}
    if segments is not None:
        frame["token_type_ids"] = segments.ravel()
    return pd.DataFrame({**frame, "attention_mask": mask.ravel()})


def decoding(backend: Backend, sentences: Sequence[TokenizedSentence], names: Sequence[str] | None = None) -> None:
    """Each text beside what its ids give, its lost letters marked; `names` are those of the rows if not 1, 2, ..."""
    unknown = backend.tokenization.unknown_id
    rows: list[str] = []
    every: list[LostCharacters] = []
    losses: list[token_analysis.DecodingLosses] = []
    for number, sentence in zip(names or range(1, len(sentences) + 1), sentences, strict=True):
        losses.append(token_analysis.losses(sentence, _decoded(backend, sentence), unknown))
        texts = [lost_characters(sentence, _decoded(backend, sentence, False), unknown)]
        typed = _typed(sentence, texts[0], of_pair=False)
        if sentence.pair is not None:
            texts.append(lost_characters(sentence, _decoded(backend, sentence, True), unknown, of_pair=True))
            typed += f"<br>{_typed(sentence, texts[1], of_pair=True)}"
        every += texts
        back = _back(backend.tokenization.decode([token.id for token in sentence.tokens]), sentence, texts)
        gone = html.escape("; ".join(_lost_words(losses[-1], texts)) or "nothing is lost")
        name = f"Sentence{'s' * (sentence.pair is not None)} {number}"
        rows.append(
            f"<section><h6>{html.escape(name)}:<span>{gone}</span></h6><div><small>typed</small><p>{typed}</p></div>"
            f"<div><small>comes back</small><p>{back}</p></div></section>"
        )
    figures.finding(
        findings.of_decoding(
            every,
            sum(lost.spacing for lost in losses),
            sum(lost.truncated for lost in losses),
            sum(bool(_lost_words(lost, ())) for lost in losses),
            list(dict.fromkeys(token.piece for sentence in sentences for token in sentence.tokens if token.special)),
        ),
        key="decoding",
        read="At the left stands each sentence as it was typed, at the right the text that its ids give, special tokens (grey) "
        "too. What does not come back is orange, and so is what comes in its place; what was cut off is struck through.",
        not_shown="What the model makes of the difference: it never saw the text as it was typed.",
    )
    figures.markup(f'<div class="bi-texts">{"".join(rows)}</div>', "decoded_texts")


def _typed(sentence: TokenizedSentence, lost: LostCharacters, of_pair: bool) -> str:
    """A text as it was typed, what is lost marked, and what was cut off struck through."""
    text = (sentence.pair or "") if of_pair else sentence.text
    begin, end = sentence.read_span(of_pair)
    before, after = (f"<s>{html.escape(cut)}</s>" if cut.strip() else "" for cut in (text[:begin], text[end:]))
    return before + _marked(text[begin:end], frozenset(place - begin for place in lost.all)) + after


def _back(back: str, sentence: TokenizedSentence, lost: Sequence[LostCharacters]) -> str:
    """What comes back of a text: special tokens grey, and marked the letters in the places of those that are lost.

    Letters are compared without spaces, which are restored in the tokenizer's own way, and without capitals and accents:
    those that are lost stand where they come back as others.
    """
    typed: list[tuple[str, bool]] = []
    for of_pair, of_text in zip((False, True), lost, strict=False):
        text, changed = (sentence.pair or "") if of_pair else sentence.text, of_text.capitals | of_text.accents
        begin, end = sentence.read_span(of_pair)
        typed += [(text[place], place in changed) for place in range(begin, end) if not text[place].isspace()]
    pieces = sorted({re.escape(token.piece) for token in sentence.tokens if token.special}, key=len, reverse=True)
    special = {place for found in re.finditer("|".join(pieces), back) for place in range(*found.span())}
    places = [place for place, letter in enumerate(back) if place not in special and not letter.isspace()]
    changed_places = {
        places[last]
        for name, start, end, first, stop in steps(
            [_plain(letter) for letter, _ in typed], [_plain(back[place]) for place in places]
        )
        if end - start == stop - first
        for own, last in zip(range(start, end), range(first, stop), strict=False)
        if typed[own][1]
    }
    runs = groupby(range(len(back)), key=lambda place: "mark" if place in changed_places else "i" * (place in special))
    shown = [(tag, html.escape("".join(back[place] for place in run))) for tag, run in runs]
    return "".join(f"<{tag}>{text}</{tag}>" if tag else text for tag, text in shown)


def _plain(letter: str) -> str:
    """A letter without its capital and accents."""
    return unicodedata.normalize("NFD", letter)[:1].lower()[:1]


def _lost_words(lost: token_analysis.DecodingLosses, texts: Sequence[LostCharacters]) -> list[str]:
    """What is lost of a sentence, in words; `texts` are its characters that do not come back."""
    unknown = f"unknown: {' '.join(lost.unknown)}" if lost.unknown else ""
    truncated = f"{lost.truncated:,} token{'s' * (lost.truncated != 1)} truncated" if lost.truncated else ""
    # Those that are unknown are named.
    counted = findings.of_lost([replace(each, unknown=frozenset()) for each in texts])
    flags = {"capitals": lost.case, "accents or marks": lost.accents, "other characters": lost.other}
    gone = counted or numbers.enumerated([name for name, is_lost in flags.items() if is_lost])
    return [
        text
        for text in (f"{gone} lost" if gone else "", "spaces differ" if lost.spacing else "", unknown, truncated)
        if text
    ]


def special_tokens(backend: Backend) -> None:
    """This tokenizer's special tokens and their roles."""
    figures.subheader("Special tokens")
    rows = [
        {"token": piece, "id": number, "role": _role(role, piece)}
        for role, (piece, number) in backend.tokenization.special_tokens.items()
    ]
    with st.container(key="special_tokens"):
        figures.plain_table(pd.DataFrame(rows))


def _role(role: str, piece: str) -> str:
    """What a special token does, after the name of its role unless the piece already says it."""
    return ROLES[role] if role.upper() in piece.upper() else f"{role.upper()}: {ROLES[role]}"


def vocabulary(backend: Backend) -> None:
    """A search in the vocabulary, which begins with the chosen token, and its size."""
    vocabulary = backend.tokenization.vocabulary
    by_id = state.get("vocabulary_mode") == "id"
    chosen = _chosen_token(backend)
    token = None if chosen is None else chosen[0].tokens[chosen[1]]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        query = controls.bind(
            "vocabulary_query",
            st.text_input,
            "Search the vocabulary",
            default=("2924" if by_id else "bank") if token is None else str(token.id) if by_id else token.piece,
            placeholder="2924, or 100-110" if by_id else "bank, or ##ing",
            max_chars=100,
            live=True,
        )
        mode = controls.choice(
            "vocabulary_mode",
            "The piece",
            {"begins with": "begins with", "contains": "contains", "id": "has the id"},
            show_label=False,
        )
    hits = vocabulary_search.search(vocabulary, query, mode)  # type: ignore[arg-type]  # the control's own options
    found = None
    if hits.total:
        asked = {"id": f"id {query}"}.get(mode, f"{mode} “{query}”")
        found = KnownRow(asked, "", hits.ids, hits.total, (), kind="found")
    of_words = ""
    if chosen is not None:
        size, unknown = len(vocabulary), backend.tokenization.unknown_id
        of_words = findings.of_vocabulary(chosen[0], f"Sentence {chosen[2] + 1}", unknown, size)
        of_search = findings.of_search(str(query), mode, hits.total, size)
        _tell_known(of_search or of_words)
        of_words = of_words if of_search else ""
    known, listed = st.columns([7, 4], gap="medium")
    with known:
        rows = ([] if found is None else [found]) + ([] if chosen is None else _known_rows(backend, *chosen))
        if rows:
            figures.markup(known_pieces(rows, len(vocabulary)), "known_pieces")
        kinds = caching.vocabulary_kinds((backend.spec.key, backend.revision), vocabulary)
        figures.note(f"{of_words} {findings.of_kinds(kinds, len(vocabulary))}".strip(), "kinds")
    with listed:
        if not query:
            st.caption(f"Type something to search the {len(vocabulary):,} pieces.")
        else:
            limit = f", the first {len(hits.ids)}" if hits.total > len(hits.ids) else ""
            st.caption(f"What was found{limit}" if hits.total else "Nothing was found.")
            if hits.total:
                st.dataframe(
                    pd.DataFrame({"id": hits.ids, "piece": hits.pieces}),
                    column_config={"id": st.column_config.NumberColumn(format="localized")},
                    hide_index=True,
                    key="vocabulary_hits",
                )


def _tell_known(said: str) -> None:
    """The finding, and how the lines are read."""
    figures.finding(
        said,
        key="vocabulary",
        read="Each line is a piece of the sentence, each piece once. The tick shows where it stands in the vocabulary, from "
        "the first id at the left to the last at the right; orange ticks are what the search has found. At the right stands "
        "how many other pieces begin with the same letters, and the first of them.",
        not_shown="What a piece means. In most vocabularies frequent pieces were found first and have low ids; otherwise "
        "neighbouring ids are unrelated.",
    )


def _known_rows(backend: Backend, sentence: TokenizedSentence, position: int, row: int) -> list[KnownRow]:
    """Where the different pieces of a sentence stand in the vocabulary, and how many others begin like each."""
    pieces = {token.piece: token.id for token in sentence.tokens if not token.special}
    alike = caching.beginning_alike(
        (backend.spec.key, backend.revision), tuple(pieces), NAMED_HITS, backend.tokenization.vocabulary
    )
    chosen = sentence.tokens[position].id
    return [
        KnownRow(piece, f"{number:,}", (number,), others.total, others.first, "chosen" if number == chosen else "")
        for (piece, number), others in zip(pieces.items(), alike, strict=True)
    ]


def _chosen_token(backend: Backend) -> tuple[TokenizedSentence, int, int] | None:
    """The sentence and position that Pieces has chosen, and the sentence's number from 0; None without sentences."""
    if not state.get("sentences"):
        return None
    sentences = controls.current_tokens(backend)
    interest = controls.interest(sentences, backend)
    return sentences[interest.row], interest.positions[interest.row], interest.row


def another_tokenizer(backend: Backend, sentences: Sequence[TokenizedSentence]) -> None:
    """The pieces of this and another tokenizer, aligned by the characters that they stand for."""
    titles = {key: item.title for key, item in example_tokenizers.EXAMPLES.items()}
    second = model_gate.second_model()
    if second is not None:
        titles["model"] = second.spec.title
    with controls.row():
        other = controls.choice(
            "other_tokenizer",
            "Compare with",
            titles | {"bytes": f"{titles['bytes']}, trained here"},
            default="bytes" if second is None else "model",
            describe=lambda _: "the second model's tokenizer",
        )
        if other == "model" and second is not None:
            others = controls.current_tokens(second)
        else:
            others = tuple(example_tokenizers.load(other).tokenize(sentence.text) for sentence in sentences)
        aligned = [alignment.align(*pair) for pair in zip(sentences, others, strict=True)]
        words = [alignment.differing_words(item.text, spans) for item, spans in zip(sentences, aligned, strict=True)]
        # Without a choice: the sentence in which the two differ most, so that the table shows a difference at once.
        row = controls.sentence(sentences, default=max(range(len(words)), key=lambda index: len(words[index][0])))
    spans = aligned[row]
    # The space keeps the columns apart if two models have one title.
    names = (backend.spec.title, f"{titles[other]} ")
    shown = [span for span in spans if not span.text.isspace()]  # a tokenizer can have a piece for each space
    code: AnyCode | NoCode = OF_AN_EXAMPLE
    if other == "model" and second is not None:
        code = arrays.pieces(
            {backend.spec.title: controls.current_input(backend), names[1]: controls.current_input(second)}, row
        )
    figures.above(
        _differences(*words[row], spans),
        key="aligned",
        place=".bi-aligned",
        table=lambda: _aligned_table(shown, names),
        code=code,
        title="The pieces of two tokenizers",
        read="Each column is a part of the text at whose ends both tokenizers cut it, with the pieces of each below it. A blue "
        "frame is a word in one piece, an orange one text that is not in the vocabulary; a grey ground joins what is split "
        "differently.",
        not_shown="Which of them is better: a model works only with the tokenizer that it was trained with.",
    )
    unknown = (backend.tokenization.unknown_id, second.tokenization.unknown_id if other == "model" and second else None)
    figures.markup(_aligned(spans, shown, names, unknown), "aligned_pieces")
    if not words[row][0]:
        examples = ready_made.ready_made_sets()[DIFFERENT_SET]
        if st.button(f"Show the ready-made sentences “{examples.title}”", key="different_set"):
            state.put("sentences", examples.sentences)
            state.put("sentence", None)
            st.rerun()  # the whole page, because the bar shows the sentences too
    limits = ""
    if other != "model":
        limits = messages.escape(f"{example_tokenizers.EXAMPLES[other].note} {example_tokenizers.limits(other)}")
    if below := " ".join(filter(None, (_marks(spans), limits))):
        figures.note(below, "limits")
    if second is None:
        st.caption(
            "To compare with another model's tokenizer, choose a second model in the sidebar. All but the "
            "included one need a download from the Hugging Face Hub, where models are published."
        )


def _aligned_table(shown: Sequence[alignment.AlignedSpan], names: tuple[str, str]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "text": [span.text for span in shown],
            names[0]: [" ".join(token.piece for token in span.first) or "–" for span in shown],
            names[1]: [" ".join(token.piece for token in span.second) or "–" for span in shown],
        }
    )


def _aligned(
    spans: Sequence[alignment.AlignedSpan],
    shown: Sequence[alignment.AlignedSpan],
    names: tuple[str, str],
    unknown: tuple[int | None, int | None],
) -> str:
    """The text in columns, and below each the pieces of both tokenizers, whose numbers are those of all `spans`."""
    columns = "".join(
        f'<div class="{"" if span.is_the_same else "different"}"><b>{html.escape(span.text)}</b>'
        + "".join(_pieces_row(tokens, lost) for tokens, lost in ((span.first, unknown[0]), (span.second, unknown[1])))
        + "</div>"
        for span in shown
    )
    counts = [sum(len(span.first) for span in spans), sum(len(span.second) for span in spans)]
    rows = "".join(
        f"<span>{html.escape(name.strip())}: <b>{wording.counted(count, 'piece')}</b></span>"
        for name, count in zip(names, counts, strict=True)
    )
    return f'<div class="bi-aligned"><div class="names"><b>text</b>{rows}</div>{columns}</div>'


def _pieces_row(tokens: Sequence[Token], unknown_id: int | None) -> str:
    kind = "whole" if len(tokens) == 1 else ""
    pieces = "".join(
        f'<i class="{"unknown" if token.id == unknown_id else kind}">{html.escape(token.piece)}</i>' for token in tokens
    )
    return f"<span>{pieces or '–'}</span>"


def _differences(different: Sequence[str], total: int, spans: Sequence[alignment.AlignedSpan]) -> str:
    """How many words are split differently, and which."""
    if different:
        named = ", ".join(f"“{word[:20]}”" for word in different[:NAMED_WORDS])
        end = " and others." if len(different) > NAMED_WORDS else "."
        count = "The only word is" if total == 1 else f"{len(different)} of {total} words"
        return f"{count} split differently: {messages.escape(named)}{end}"
    if all(span.is_the_same for span in spans):
        return "Both tokenizers split this sentence in the same way."
    return "Both tokenizers split all words in the same way, but not the other characters."


def _marks(spans: Sequence[alignment.AlignedSpan]) -> str:
    """What the marks of the pieces that are shown mean; empty without any."""
    pieces = [token.piece for span in spans for token in (*span.first, *span.second)]
    said = [
        f"{mark} means that {meaning}"
        for mark, meaning in MARKS.items()
        if any(piece.startswith(mark) and len(piece) > len(mark) for piece in pieces)
    ]
    return f"{'; '.join(said)}." if said else ""
