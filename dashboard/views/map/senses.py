"""Word senses on the Map page: how a word's occurrences part by sense from layer to layer, or group without labels."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from components.analysis.maps import token_set
from components.charts import curves, scatter
from components.errors import InputError
from components.model.embedding.token_vectors import MAX_TOKENS
from components.retrieval.corpora import senses as reading
from dashboard import caching, state
from dashboard.corpora import current, uploads
from dashboard.ready_made import ASSETS
from dashboard.ui import controls, figures, messages
from dashboard.views.map import choices, pictures, selection
from dashboard.views.map.choices import METHOD_NAMES

if TYPE_CHECKING:
    from components.analysis.maps.token_set import TokenSet
    from components.analysis.word_senses import SenseCurve
    from components.model.backend import Backend
    from components.retrieval.corpora.senses import SenseFile

SOURCES = {"demo": "Ready-made words", "corpus": "A word of a corpus", "file": "Your labels"}
MOST_OCCURRENCES = 2_000


@cache
def demo_senses() -> SenseFile:
    """The ambiguous words that come with the dashboard."""
    return reading.read_senses(ASSETS / "senses.jsonl", "senses.jsonl")


def senses(backend: Backend) -> None:
    """The curve, the map and the sentences of one word."""
    source = controls.choice("sense_source", "Sentences from", SOURCES)
    if source == "corpus":
        _unlabelled(backend)
        return
    labelled = demo_senses() if source == "demo" else _upload()
    if labelled is None:
        return
    word = _word_of(labelled)
    occurrences = _labelled(backend, labelled, word)
    if occurrences is None:
        return
    labels = list(occurrences.labels["sense"])
    counts = Counter(labels)
    if len(counts) < 2 or len(labels) < 2 * len(counts):
        raise InputError(
            f"“{word}” has {len(labels)} sentences in {len(counts)} sense{'s' if len(counts) != 1 else ''} here.",
            "At least two senses, with more than one sentence each, were expected.",
            "Choose another word or file.",
        )
    curve = caching.sense_curve(occurrences.key, tuple(labels), occurrences.vectors)
    _curve_figure(curve, word, labels)
    _map(backend, occurrences, "sense", word, curve.best)
    if source == "demo":
        _all_words(backend, labelled)


def _word_of(labelled: SenseFile) -> str:
    words = labelled.words
    chosen = state.get("sense_word").casefold()
    word = chosen if chosen in words else words[0]
    if chosen and chosen not in words:
        st.warning(f"There are no sentences for “{messages.escape(chosen)}” here: this is “{messages.escape(word)}”.")
    widget = partial(st.pills, required=True) if len(words) <= 30 else st.selectbox
    controls.bind(
        "sense_word",
        widget,
        "Word",
        options=words,
        to_widget=lambda _: word,
        after_change=lambda: state.put("sense_layer", None),
    )
    return word


def _upload() -> SenseFile | None:
    file = st.file_uploader(
        "A file with the columns word, sense, sentence, and perhaps index: .jsonl, .csv, .tsv, .parquet",
        key="senses_file",
        help="index: which word of the sentence is meant, counted from 0 between spaces. Without it, the first "
        "occurrence of the word.",
    )
    labelled = uploads.kept(
        "senses", caching.sense_files(), file, lambda file: reading.read_senses(file.getvalue(), file.name)
    )
    if labelled is None:
        st.caption("Each line is one sentence with an ambiguous word and the sense it has there.")
        return None
    if labelled.bad_rows:
        st.warning(
            f"Left out: {labelled.bad_rows:,} row{'' if labelled.bad_rows == 1 else 's'} without a word, a sense or a "
            "sentence, or with an index that is not a whole number."
        )
    return labelled


def _labelled(backend: Backend, labelled: SenseFile, word: str) -> TokenSet | None:
    """The occurrences of a labelled word; None while they are on their way."""
    rows = labelled.of(word)
    texts = tuple(row.sentence for row in rows)
    # Every occurrence, so that the meant ones are among them; named by these texts, not by their file.
    name = "senses " + hashlib.sha256("\n".join(texts).encode("utf-8", "surrogatepass")).hexdigest()
    job = choices.request_tokens(backend, name, texts, "the labelled sentences", word, MAX_TOKENS)
    if not choices.ready(job):
        return None
    every = choices.corpus_tokens(job, texts, {})
    chosen, missing = reading.meant_occurrences(rows, [(t.sentence, t.start, t.end) for t in every.tokens])
    if missing:
        st.warning(f"{len(missing):,} of {len(rows):,} sentences do not have “{messages.escape(word)}” as written.")
    if not chosen:
        raise InputError(f"No sentence has “{word}” as written.", "At least one was expected.", "Choose another word.")
    labels = [rows[every.tokens[token_row].sentence].sense for token_row in chosen]
    return token_set.choose(every, chosen, {"sense": labels})


def _curve_figure(curve: SenseCurve, word: str, labels: list[str]) -> None:
    layers = len(curve.accuracy)
    majority = np.full(layers, curve.majority, np.float32)
    best = curve.best
    counts = ", ".join(f"{name} {count}" for name, count in Counter(labels).most_common())
    figures.figure(
        curves.layer_curves(
            np.stack([curve.accuracy, majority, curve.silhouette]),
            ["nearest neighbour has the same sense", "always the most frequent sense", "silhouette"],
            f"How well the senses of “{word}” part",
            y_title="share, and silhouette",
            mark_extremes=False,
            scale=controls.scale(),
        ),
        key="senses_curve",
        alt=f"Curves over the layers of how well the senses of {word} part",
        message=f"At **layer {best}** {curve.accuracy[best]:.0%} of the occurrences have a nearest neighbour of their own "
        f"sense (at layer 0: {curve.accuracy[0]:.0%}; always guessing the most frequent sense: {curve.majority:.0%}).",
        read=f"Each sentence's “{messages.escape(word)}” is one vector ({messages.escape(counts)}). The first curve leaves "
        "each out in turn and looks at its nearest other one, by cosine; the silhouette is 1 for senses well apart, 0 for "
        "one heap.",
        not_shown="That the model uses these senses. With some twenty sentences one of them is worth five points, so small "
        "differences between layers mean nothing. The labels are ours.",
        table=lambda: pd.DataFrame(
            {
                "layer": range(layers),
                "nearest neighbour accuracy": curve.accuracy,
                "majority": majority,
                "silhouette": curve.silhouette,
            }
        ),
    )


def _map(backend: Backend, occurrences: TokenSet, by: str, word: str, best: int) -> None:
    """The occurrences at a layer, coloured by sense or group."""
    options = choices.options(len(occurrences))
    last = backend.facts.layers
    layer = controls.number("sense_layer", "Layer of the map", 0, last, best)
    made = choices.drawing(occurrences, options, [layer])
    if made is None:
        return
    drawing, options = made
    layer_map = drawing.maps[layer]
    rows = np.arange(len(occurrences))
    figures.figure(
        scatter.token_map(
            layer_map.points,
            scatter.PointTexts([""] * len(rows), pictures.texts(occurrences, rows).long),
            scatter.Colours(by, groups=occurrences.category(by)),
            f"“{word}” at layer {layer}, {METHOD_NAMES[options.method]}",
            scale=controls.scale(),
        ),
        key="senses_map",
        alt=f"Map of {len(rows)} occurrences of {word} at layer {layer}, coloured by {by}",
        read=pictures.how_to_read(options)[0],
        not_shown=pictures.how_to_read(options)[1],
        table=lambda: pd.DataFrame(
            {
                by: occurrences.category(by),
                "sentence": [occurrences.texts[token.sentence] for token in occurrences.tokens],
                **{axis: layer_map.points[:, column] for column, axis in enumerate("xyz"[: layer_map.points.shape[1]])},
            }
        ),
        on_select=lambda: selection.pick(occurrences, "senses_map", rows),
    )
    pictures.trust(layer_map)
    selection.selection(occurrences, selection.selected(occurrences), [layer], find=False)


def _unlabelled(backend: Backend) -> None:
    """A word of the corpus that nobody labelled: groups of its occurrences with their most typical sentences."""
    corpus = current.corpus()
    st.caption(f"Corpus: **{messages.escape(corpus.name)}**, {len(corpus):,} sentences; change it on the Search page.")
    word = controls.bind(
        "sense_word", st.text_input, "Word", key="w_sense_text", placeholder="court", max_chars=100
    ).strip()
    if not word:
        st.info(
            "**No word yet.** Type one that has several senses, such as court, strike or fire.", icon=":material/edit:"
        )
        return
    if len(word.split()) > 1:
        st.info("One word at a time: the occurrences of a single word are compared.")
        return
    job = choices.request_tokens(backend, corpus.content_hash, corpus.texts, corpus.name, word, MOST_OCCURRENCES)
    if not choices.ready(job):
        return
    every = choices.corpus_tokens(job, corpus.texts, choices.label_columns(corpus))
    if len(every) < 4:
        st.info(f"“{messages.escape(word)}” occurs {len(every)} times here: too few to group.")
        return
    chosen, last = state.get("sense_layer"), backend.facts.layers
    layer = last if chosen is None or chosen > last else int(chosen)
    groups = caching.clusters(every.key, layer, every.at(layer))
    names = {int(row): str(number) for number, group in enumerate(groups, 1) for row in group.members}
    grouped = replace(every, labels={"group": [f"group {names[row]}" for row in range(len(every))]})
    st.markdown(
        f"**{len(every):,} occurrences in {len(groups)} groups at layer {layer}**, and the most typical of each:"
    )
    for number, group in enumerate(groups, start=1):
        lines = [f"**Group {number}**, {len(group.members)}"]
        for token_row in group.typical:
            context = every.in_context(int(token_row), 90)
            before, text, after = (messages.escape(part) for part in (context.before, context.text, context.after))
            lines.append(f"- {before}**{text}**{after}")
        st.markdown("\n".join(lines))
    st.caption("Groups by k-means on directions, as many (2 to 6) as lie apart best. Nobody said that they are senses.")
    _map(backend, grouped, "group", word, backend.facts.layers)


def _all_words(backend: Backend, labelled: SenseFile) -> None:
    """Every ready-made word at its best layer, when somebody asks."""
    panel = st.expander("All ready-made words", icon=":material/table:", key="all_words", on_change="rerun")
    if not panel.open:
        return
    with panel:
        key = (backend.spec.key, backend.revision, labelled.content_hash)
        table = pd.DataFrame(caching.sense_overview(key, backend, labelled))
        percent = st.column_config.NumberColumn(format="percent")
        st.dataframe(
            table,
            hide_index=True,
            key="all_words_table",
            column_config={name: percent for name in ("accuracy there", "at layer 0", "most frequent sense")},
        )
        figures.download(table, "all-words")
