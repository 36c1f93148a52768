"""What a cross-encoder is given: query and document as one input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np
import pandas as pd
import streamlit as st

from components.analysis import pair_scales
from components.charts import theme
from components.charts.stand_alone.page import PagePart
from components.errors import InputError, ModelError
from components.model.catalog import EMBEDDED_CROSS_ENCODER_KEY
from components.numbers import apart
from dashboard import caching, pair_links, state
from dashboard.corpora import current
from dashboard.declared import table
from dashboard.settings import DEFAULT_TRIPLE
from dashboard.sharing import report
from dashboard.ui import browser, controls, figures, messages, model_gate
from dashboard.ui.wording import counted

if TYPE_CHECKING:
    from components.arrays import Float32
    from components.model.backend import Backend
    from components.model.tokenization import Truncation
    from components.model.trace import Token, TokenizedSentence

# Query, relevant document, other document; written for this page.
TRIPLES = {
    "An answer": DEFAULT_TRIPLE,
    "One word, two senses": (
        "She put money in the bank.",
        "She paid cash into her account.",
        "She sat on the bank of the river.",
    ),
    "Who does what": ("A dog bites a man.", "A man is bitten by a dog.", "A man bites a dog."),
    "A negation": ("The bottle is not empty.", "There is something in the bottle.", "The bottle is empty."),
    "Shared words": (  # the included cross-encoder scores the other document higher, by 2.2
        "When does the library open?",
        "Its doors are unlocked every weekday at nine.",
        "The library is closed on Sundays.",
    ),
    "What follows": (
        "Dark clouds had gathered over the town.",
        "Soon it began to rain.",
        "The museum bought two paintings.",
    ),
    "A long document": (
        "How do bees find their way home?",
        "Bees leave the hive on the first warm morning of the year. They visit flowers within a few hundred metres, and the "
        "older ones fly much farther. On the way they have to avoid birds, rain and strong wind. After an hour each bee is "
        "heavy with pollen. It returns by the position of the sun, which it remembers from its flight out.",
        "The family moved in the first warm week of the year. They looked at houses near the old mill, and at some that were "
        "much farther away. After a month of searching they found a new home by the river, with a garden for the dog.",
    ),
}
READ = (
    "Each pair is one input, on as many lines as it takes here: blue words are the query (token type A), orange words the "
    "document (B), dashed tokens are added by the tokenizer. Under each piece stand its position, its id and its token type. "
    "The score below is computed from the last layer's [CLS]."
)
NOT_SHOWN = (
    "Whether a score is right. The number has no unit: compare scores of one model only, and best for one query."
)
FROM_CORPUS = "From the corpus"  # a query, its own sentence, and another one, of the same topic where there are topics
ROLES = ("relevant", "other")
SAME_SCORE = 0.005  # scores that differ by less are written as the same
STRATEGIES = {"longest_first": "Longest first", "only_second": "Only the document"}
TEXTS = {"pair_query": "Query", "pair_relevant": "Relevant document", "pair_other": "Other document"}


@dataclass(frozen=True)
class _Reading:
    """One pair as the model gets it, or why it cannot."""

    role: str
    document: str
    tokens: TokenizedSentence | None
    problem: str = ""


def given(backend: Backend) -> None:
    """Draw both pairs' scores, the pairs as chips, what truncation removes, and next-sentence prediction."""
    top = st.container(gap="xsmall")
    with top:
        _examples()
    scorer = model_gate.cross_encoder()
    if scorer is None:
        return
    query, *documents = (str(state.get(name)) for name in TEXTS)
    if not all(text.strip() for text in (query, *documents)):
        with top, st.container(horizontal=True, key="row_texts"):
            _own_texts()
        st.info("**A text is missing.** Type a query and two documents under “Edit the texts”.", icon=":material/edit:")
        return
    with top, st.container(horizontal=True, key="row_texts"):
        _own_texts()
        panel = st.popover("Truncation", icon=":material/content_cut:", width="content")
    with panel:
        truncation = cast("Truncation", controls.choice("truncation", "Truncate", STRATEGIES))
        length, longest = _length(scorer, query, documents)
    readings = [
        _read(scorer, query, document, role, length, truncation)
        for role, document in zip(ROLES, documents, strict=True)
    ]
    scores = [_logits(scorer, reading, query, length, truncation) for reading in readings]
    verdict = _verdict(scorer, scores)
    if verdict:
        counts = dict.fromkeys(len(reading.tokens.tokens) for reading in readings if reading.tokens is not None)
        given = f"**Each pair is one input of {' or '.join(map(str, counts))} tokens.**"
        figures.finding(f"{given} {verdict}", key="given", read=READ, not_shown=NOT_SHOWN)
    _unknown_pieces(scorer, readings)
    for number, (reading, logits) in enumerate(zip(readings, scores, strict=True)):
        is_named = reading.tokens is not None and not any(before.tokens for before in readings[:number])
        _pair(scorer, number, reading, query, logits, is_named)
    st.caption(_legend(scorer, readings))
    if not verdict:
        figures.reading(READ, NOT_SHOWN)
    if scorer.spec.key == EMBEDDED_CROSS_ENCODER_KEY:
        st.markdown(
            "**The included cross-encoder** was trained to score how similar two sentences are (STS-B), not whether a "
            "document answers a query."
        )
    st.markdown(
        "**Why this score cannot be computed in advance:** a document's vector is computed once and kept for all queries; here "
        "every token attends to the tokens of both texts, so that each new query goes through the model "
        "again with each document."
    )
    _removed(scorer, query, documents, length, longest)
    _next_sentence(backend, query, documents)


def _examples() -> None:
    """Ready-made texts, and some of the corpus."""
    texts = tuple(state.get(name) for name in TEXTS)
    controls.ready_row(
        "Ready-made texts",
        {name: name for name in (*TRIPLES, FROM_CORPUS)},
        next((name for name, triple in TRIPLES.items() if triple == texts), None),
        lambda name: _from_corpus() if name == FROM_CORPUS else _put(TRIPLES[name]),
        key="w_triple",
    )


def _put(texts: Sequence[str]) -> None:
    for name, text in zip(TEXTS, texts, strict=True):
        state.put(name, text)


def _from_corpus() -> None:
    """Take the next query at random, its sentence, and another sentence."""
    corpus = current.in_use()
    column = current.query_column(corpus)
    rows = [] if column is None else [row for row, query in enumerate(corpus.columns[column]) if query.strip()]
    if column is None or not rows or len(corpus) < 2:
        state.notice(f"{corpus.name} has no column with a query for each sentence.", page=table.place_of("one-input"))
        return
    number = st.session_state["_corpus_triple"] = st.session_state.get("_corpus_triple", -1) + 1
    randomness = np.random.default_rng(number)
    row = int(randomness.choice(rows))
    topics = current.topics(corpus)
    others = [
        other
        for other in range(len(corpus))
        if other != row
        and (topics is None or topics[other] == topics[row])
        and corpus.texts[other] != corpus.texts[row]
    ] or [other for other in range(len(corpus)) if other != row]
    _put((corpus.columns[column][row], corpus.texts[row], corpus.texts[int(randomness.choice(others))]))


def _own_texts() -> None:
    """The three texts as fields."""
    panel = st.popover("Edit the texts", icon=":material/edit:", width="content", key="own_texts", on_change="rerun")
    if not panel.open:
        return  # a field in a closed panel shows its first text when the panel opens, not the current one
    with panel:
        for name, label in TEXTS.items():
            controls.bind(name, st.text_area, label, max_chars=4_000, height=68 if name == "pair_query" else 110)


def _length(scorer: Backend, query: str, documents: Sequence[str]) -> tuple[int, int]:
    """The chosen number of tokens of a pair, and that of the longer pair without truncation."""
    tokenization = scorer.tokenization
    lengths = np.array(tokenization.lengths([query, *documents])) - tokenization.frame_length
    longest = int(lengths[0] + lengths[1:].max()) + tokenization.pair_frame_length
    most = min(longest, scorer.own_max_length)
    least = min(tokenization.pair_frame_length + 2, most)
    if least == most:
        return most, longest
    length = controls.bind(
        "pair_length",
        st.slider,
        "At most (tokens)",
        default=most,
        min_value=least,
        max_value=most,
        to_widget=lambda value: min(max(value, least), most),
        from_widget=lambda value: None if value >= most else value,
        help="Special tokens included. At the right end nothing is truncated, unless a pair is longer than the model allows.",
        width=round(280 * controls.scale()),
    )
    return int(length), longest


def _read(scorer: Backend, query: str, document: str, role: str, length: int, truncation: Truncation) -> _Reading:
    try:
        (tokens,) = scorer.tokenize([query], [document], length, truncation)
    except InputError as problem:
        return _Reading(role, document, None, f"{problem.problem} {problem.fix}")
    return _Reading(role, document, tokens)


def _logits(scorer: Backend, reading: _Reading, query: str, length: int, truncation: Truncation) -> Float32 | None:
    """One pair's logits [label]; None if it cannot be read."""
    if reading.tokens is None:
        return None
    logits: Float32 = caching.pair_logits(scorer, (query,), (reading.document,), length, truncation)[0]
    return logits


def _pair(scorer: Backend, number: int, reading: _Reading, query: str, logits: Float32 | None, is_named: bool) -> None:
    """One pair's chips and score; `is_named`: its first chip says what stands under all."""
    with st.container(gap="xsmall", key=f"pair_{reading.role}"):
        if reading.tokens is None or logits is None:
            st.warning(f"The {reading.role} document: {messages.escape(reading.problem)}")
            return

        def under(token: Token) -> tuple[str, ...]:
            kind = (
                "–"
                if scorer.facts.segments < 2
                else " ".join((str(token.segment), *"AB"[token.segment : token.segment + 1]))
            )
            names = ("position ", "id ", "type ") if is_named and token.position == 0 else ("", "", "")
            return f"{names[0]}{token.position}", f"{names[1]}{token.id}", f"{names[2]}{kind}"

        browser.chips(
            [browser.ChipRow(number, reading.tokens, label=f"Query and {reading.role} document")],
            key=f"chips_{reading.role}",
            unknown_id=scorer.tokenization.unknown_id,
            scale=controls.scale(),
            under=under,
            by_text=True,
            fold=True,
        )
        said = f"**{number + 1} · {reading.role} document** — {_scores(scorer.pair_labels(), logits)}"
        report.add(f"score_{reading.role}", PagePart(message=said))
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(said, width="content")
            pair_links.draw(query, reading.document, key=f"_{reading.role}", model=str(state.get("cross_encoder")))


def _unknown_pieces(scorer: Backend, readings: Sequence[_Reading]) -> None:
    """Say which of the three texts are nothing but unknown pieces to the model."""
    unknown = scorer.tokenization.unknown_id
    sides = {("query", False): readings[0]} | {(f"{reading.role} document", True): reading for reading in readings}
    names = []
    for (name, in_pair), reading in sides.items():
        tokens = () if reading.tokens is None else reading.tokens.tokens
        own = [token.id for token in tokens if not token.special and token.in_pair == in_pair]
        if own and all(piece == unknown for piece in own):
            names.append(name)
    if names:
        piece = messages.escape(scorer.tokenization.special_tokens["unk"][0])
        st.warning(
            f"**The {' and the '.join(names)} {'is' if len(names) == 1 else 'are'} only {piece} to the model:** its vocabulary "
            "has no piece of that text, so that the score says nothing about it.",
            icon=":material/help:",
        )


def _scores(labels: Sequence[str], logits: np.ndarray) -> str:
    """The logit of each label, with its sigmoid or softmax."""
    (_, scale) = pair_scales.scales_for(len(labels))
    values = pair_scales.on_scale(logits[None], scale)[0]
    if len(labels) == 1:
        return f"score: logit **{theme.number(logits[0], 2)}**, {scale} **{theme.number(values[0], 2)}**"
    return " · ".join(
        f"{messages.escape(label)}: logit {theme.number(logit, 2)}, {scale} **{theme.number(value, 2)}**"
        for label, logit, value in zip(labels, logits, values, strict=True)
    )


def _legend(scorer: Backend, readings: Sequence[_Reading]) -> str:
    unknown = scorer.tokenization.unknown_id
    has_unknown = any(
        token.id == unknown for reading in readings for token in (reading.tokens.tokens if reading.tokens else ())
    )
    marks = "Dashed: special token." + " Striped: not in the vocabulary." * has_unknown
    marks += " Logit: the model’s own number; a sigmoid or softmax maps it to 0–1."
    if scorer.facts.segments < 2:
        return f"Under each piece: position and id; this model has no token types. {marks}"
    text = f"Under each piece: position, id, token type (0 A: query, 1 B: document). {marks}"
    if not scorer.tokenization.gives_segments:
        text += (
            " This model's tokenizer was published without token types: the score is computed with type 0 everywhere."
        )
    return text


def _verdict(scorer: Backend, scores: Sequence[Float32 | None]) -> str:
    """Both scores in one line, and which is higher; for several labels the most probable one of each; empty without both."""
    relevant, other = scores
    if relevant is None or other is None:
        return ""
    labels = scorer.pair_labels()
    if len(labels) > 1:
        (_, scale) = pair_scales.scales_for(len(labels))
        likely = [
            f"{role} document: **{messages.escape(labels[int(np.argmax(logits))])}** "
            f"({scale} {theme.number(float(pair_scales.on_scale(logits[None], scale).max()), 2)})"
            for role, logits in zip(ROLES, (relevant, other), strict=True)
        ]
        return f"Most probable label, {', '.join(likely)}."
    difference = float(relevant[0] - other[0])
    is_same = abs(difference) < SAME_SCORE
    first, second = (theme.number(logits[0], 2) for logits in (relevant, other))
    if not is_same:
        first, second = apart(relevant[0], other[0])
    text = f"The relevant document scores **{first}**, the other **{second}**: "
    if is_same:
        return f"{text}**the same score**, to two decimals. It does not say which is relevant."
    text += (
        f"the **{'relevant' if difference > 0 else 'other'} document** is higher by {apart(abs(difference), 0.0)[0]}."
    )
    return text if difference > 0 else f"{text} Here the model is wrong."


def _removed(scorer: Backend, query: str, documents: Sequence[str], length: int, longest: int) -> None:
    """What both strategies remove from each side at this length."""
    if longest <= length:
        st.caption(
            f"Nothing is truncated: the longer pair has {counted(longest, 'token')}, special tokens included. Move “At most”, "
            "under “Truncation”, to the left to see from which text tokens are removed."
        )
        return
    figures.subheader("What truncation removes")
    rows = []
    for truncation, title in STRATEGIES.items():
        for role, document in zip(ROLES, documents, strict=True):
            reading = _read(scorer, query, document, role, length, cast("Truncation", truncation))
            row = {"truncate": title.lower(), "pair": f"query + {role}"}
            if reading.tokens is None:
                rows.append(row | {"from the query": "not possible", "from the document": reading.problem})
                continue
            dropped = {item.of_pair: f"{item.tokens}: {item.text[:300]}" for item in reading.tokens.dropped}
            rows.append(
                row
                | {"from the query": dropped.get(False, "nothing"), "from the document": dropped.get(True, "nothing")}
            )
    figures.plain_table(pd.DataFrame(rows))
    st.caption(
        f"At most {length} tokens per pair; each cell has the number of removed tokens and their text. “Longest first” "
        "removes tokens from the longer text until both are equally long, then from both; “only the document” keeps the "
        "whole query."
    )


def _next_sentence(backend: Backend, query: str, documents: Sequence[str]) -> None:
    """The probability that each document follows the query, by the main model's head for next-sentence prediction."""
    title = "Does B follow A? Next-sentence prediction"
    try:
        probabilities = caching.next_sentence_probabilities(backend, (query,) * len(documents), tuple(documents))
    except ModelError as problem:
        if problem.kind != "unsupported":  # it has a head, which cannot be used
            figures.subheader(title)
            messages.explain(problem, "reading the head for next-sentence prediction")
            return
        st.caption(
            f"Next-sentence prediction (does B follow A?) needs a part that {messages.escape(backend.spec.title)} was "
            "published without. BERT's own checkpoints have it: choose BERT base as the model in the sidebar (a download, "
            "if it is not on this machine)."
        )
        return
    figures.subheader(title)
    columns = st.columns(2)
    for column, role, probability in zip(columns, ROLES, probabilities, strict=True):
        column.metric(f"P({role} document follows the query)", f"{100 * probability:.1f} %")
    st.caption(
        f"From {messages.escape(backend.spec.title)}'s own head: BERT was trained to tell the next sentence of a text from "
        "a sentence of another text (Devlin et al. 2019), so that a change of topic lowers the number more than a missing "
        "link does. It is not a measure of relevance."
    )
