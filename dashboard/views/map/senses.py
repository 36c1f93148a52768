"""Word senses on a map: how a word's occurrences separate by sense, or form groups without labels."""

from __future__ import annotations

import hashlib
import html
import re
from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from components import numbers
from components.analysis import word_senses
from components.analysis.maps import token_set
from components.charts import curves, scatter, theme
from components.errors import InputError
from components.model.embedding.options import MAX_TOKEN_VECTORS
from components.retrieval.corpora import senses as reading
from components.shown_code.arrays import Input
from components.shown_code.maps import MapTokens
from components.shown_code.vectors import MOST_TEXTS, Vectors, of_senses, of_words
from components.words.unicode_words import words
from dashboard import caching, state
from dashboard.corpora import current, uploads
from dashboard.jobs import requests
from dashboard.ready_made import ASSETS
from dashboard.ui import controls, figures, messages, page_header
from dashboard.ui.waiting import frame
from dashboard.ui.wording import counted
from dashboard.views.map import choices, findings, pictures, selection
from dashboard.views.map import labels as map_labels
from dashboard.views.map.choices import METHOD_NAMES, ControlRow

if TYPE_CHECKING:
    from collections.abc import Sequence

    import plotly.graph_objects as go
    from streamlit.delta_generator import DeltaGenerator

    from components.analysis.maps.token_set import TokenSet
    from components.analysis.word_senses import Cluster, SenseCurve
    from components.jobs import IsStopped, Job, ReportProgress
    from components.model.backend import Backend
    from components.retrieval.corpora.corpus import Corpus
    from components.retrieval.corpora.senses import SenseFile
    from components.shown_code.code import AnyCode
    from dashboard.views.map.choices import ReadyMaps

SOURCES = {"demo": "Ready-made", "corpus": "A corpus", "file": "Your file"}
MOST_OCCURRENCES = 2_000
EXAMPLES = ("spring", "strike", "match", "fire", "bank", "line")  # words with several senses, tried in this order
FEWEST = 4  # occurrences that can be grouped
GROUP = "A group holds sentences in which the model gives the word similar vectors. It need not be a sense."
LINES = "Lines join each occurrence with its nearest in all dimensions; a dashed line leads to another sense."
TURN = "Drag to turn the picture."  # in three dimensions
MOST_WRONG = 4  # occurrences that are listed in sentences
CLEAR = 0.85  # share of occurrences whose nearest has the same sense
PARTLY = 0.4  # share of what guessing gets wrong that the vectors get right
HEIGHT, PROJECTED = 450, 370  # of the map in pixels, so that it is whole on the first screen; a projector enlarges it


@cache
def demo_senses() -> SenseFile:
    """The ambiguous words that come with the dashboard."""
    return reading.read_senses(ASSETS / "senses.jsonl", "senses.jsonl")


def intro() -> str:
    """What a point is. A corpus has no senses: there the colours, which the legend names, are groups."""
    if state.get("sense_source") == "corpus":
        return "Each point is a sentence with the word; its colour is a group that the computer found."
    return "Each point is a sentence with the word; its colour is its sense."


def senses(backend: Backend) -> None:
    """The map, the curve and the sentences of one word."""
    place = choices.row()
    with place.main:
        word_slot = st.container(width=160)  # the words depend on the source
    with place.panel:
        source = controls.choice("sense_source", "Sentences from", SOURCES)
    if source == "corpus":
        _unlabelled(backend, place, word_slot)
        return
    labelled = demo_senses() if source == "demo" else _upload()
    if labelled is None:
        return
    word = _word_of(labelled, word_slot)
    page_header.measures(
        "Ready-made sentences" if source == "demo" else "Your file",
        f"{counted(len(labelled.of(word)), 'sentence')} with “{messages.escape(word)}”",
    )
    occurrences = _labelled(backend, labelled, word)
    labels = list(occurrences.labels["sense"])
    counts = Counter(labels)
    if len(counts) < 2 or len(labels) < 2 * len(counts):
        raise InputError(
            f"“{word}” has {len(labels)} sentences in {len(counts)} sense{'s' if len(counts) != 1 else ''} here.",
            "At least two senses are needed, with two sentences each on average.",
            "Choose another word or file.",
        )
    curve = caching.sense_curve(occurrences.key, tuple(labels), occurrences.vectors)
    best = curve.best
    shown = _layer_of(backend, place, best)
    options = choices.options(len(occurrences), ControlRow(place.panel, place.panel))
    found = choices.ready(occurrences, options, [shown])
    figures.finding(
        finding(curve, word, len(labels), word_senses.by_chance(labels), shown),
        key="senses",
        read=f"Each point is one occurrence of “{messages.escape(word)}” in its sentence, as a vector of this layer. "
        f"{LINES if found.options.dims == 2 else TURN} Point at one to read its sentence. "
        "Of several equally near occurrences each counts in part. "
        f"{_read_curve(labels, backend.structure.has_position_vectors)}",
        not_shown="That the model uses the senses: people gave the labels, and the nearest vector is one test of many. One of "
        f"{len(labels)} sentences changes the share by {100 / len(labels):.0f} points, so small differences between layers say "
        f"nothing. {pictures.how_to_read(found.options)[1]}",
    )
    with figures.together("senses_map"):
        left, right = st.columns([6, 5], gap="large")
        with left, frame.figure("senses"):
            _map(backend, occurrences, found, "sense", word, shown, is_wide=False)
        with right:
            _curve_figure(curve, word, labels, of_senses(_vectors(backend, occurrences), labels), shown)
            if curve.accuracy[0] < word_senses.by_chance(labels):
                start = _at_layer_0(backend.structure.has_position_vectors)
                st.caption(f"At layer 0 {start}: a share below chance says nothing about senses there.")
            _nearest_in_words(occurrences, labels, shown)
    selection.selection(occurrences, selection.selected(occurrences), [shown])
    if source == "demo":
        _all_words(backend, labelled)


def finding(curve: SenseCurve, word: str, count: int, chance: float, shown: int) -> str:
    """How often the nearest other occurrence has the same sense: at the layer that is shown, at the best, and at layer 0."""
    best = curve.best
    share, start = float(curve.accuracy[best]), float(curve.accuracy[0])
    # Over always guessing the most frequent sense, as a share of what that gets wrong: stricter than over a nearest by chance.
    gain = (share - curve.majority) / (1 - curve.majority) if curve.majority < 1 else 0.0
    name = f"“{messages.escape(word)}”"
    how = "stay mixed" if gain < PARTLY else "come apart" if share >= CLEAR else "come apart in part"
    if best == 0:
        how = "are apart from the start" if gain >= PARTLY else "are never better apart than before the first block"

    # Of several equally near occurrences each counts in part, which gives shares that no count has: the reading says it.
    is_whole = abs(share * count - round(share * count)) < 1e-3
    told = _percent(share) + (f" ({round(share * count)} of {count})" if is_whole else "")
    first = f"at layer {best}, {told} have a nearest neighbour of the same sense"
    here = "" if shown == best else f"; at layer {shown}, as shown, {_percent(float(curve.accuracy[shown]))}"
    before = "" if best == 0 else f"; before the first block {_percent(start)}"
    # A high share that always naming the most frequent sense nearly reaches is no success, and it is said why.
    is_frequent = gain < PARTLY and share >= CLEAR
    frequent = f", {_percent(curve.majority)} by always naming the most frequent" if is_frequent else ""
    return f"The senses of {name} **{how}**: {first}{here}{before}, by chance {_percent(chance)}{frequent}."


def _layer_of(backend: Backend, place: ControlRow, best: int) -> int:
    """Draw the choice of the map's layer."""
    with place.main, st.container(width=round(160 * controls.scale())):
        return controls.number("sense_layer", "Layer of the map", 0, backend.facts.layers, best)


def _nearest_in_words(occurrences: TokenSet, labels: list[str], layer: int) -> None:
    """In sentences: the occurrences whose nearest has another sense, then some whose nearest has the same."""
    found = word_senses.nearest_other(occurrences.at(layer), labels)
    wrong, right = np.flatnonzero(found.same == 0), np.flatnonzero(found.same == 1)
    order = [rows[np.argsort(-found.cosines[rows], kind="stable")].tolist() for rows in (wrong, right)]
    parts = []
    for rows, title, most in (
        (order[0], f"Another sense is nearest: {len(wrong)} of {len(labels)}", MOST_WRONG),
        (order[1], f"The same sense is nearest: {len(right)} of {len(labels)}, for example", max(1, 3 - len(wrong))),
    ):
        if not rows:
            continue
        parts.append(f"<h4>{title}</h4>")
        # Two occurrences can each be the other's nearest: they are told once.
        once = [
            row
            for row in rows
            if not (found.rows[found.rows[row]] == row and found.rows[row] in rows[: rows.index(row)])
        ]
        for row in once[:most]:
            other = int(found.rows[row])
            parts.append(
                f"<p><i>{html.escape(labels[row])}</i> {_sentence(occurrences, row)}<br><small>nearest, "
                f"{numbers.number(float(found.cosines[row]), 2)}: <i>{html.escape(labels[other])}</i> "
                f"{_sentence(occurrences, other)}</small></p>"
            )
        if len(rows) > most and rows is order[0]:
            parts.append(f"<p><small>and {len(rows) - most} more</small></p>")
    ties = len(labels) - len(wrong) - len(right)
    if ties:
        parts.append(f"<p><small>{ties} have several equally near, of several senses.</small></p>")
    figures.markup(f'<div class="bi-nearest">{"".join(parts)}</div>', "senses_nearest", of="senses_map")


def _sentence(occurrences: TokenSet, row: int) -> str:
    """An occurrence in its sentence, with the word in bold, as HTML."""
    context = occurrences.in_context(row, 70)
    return f"{html.escape(context.before)}<b>{html.escape(context.text)}</b>{html.escape(context.after)}"


def _word_of(labelled: SenseFile, place: DeltaGenerator) -> str:
    words = labelled.words
    chosen = state.get("sense_word").casefold()
    word = chosen if chosen in words else words[0]
    if chosen and chosen not in words:
        st.warning(
            f"There are no sentences for “{messages.escape(chosen)}” here. The word shown is “{messages.escape(word)}”."
        )
    with place:
        controls.bind(
            "sense_word",
            st.selectbox,
            "Word",
            options=words,
            to_widget=lambda _: word,
            after_change=lambda: state.put("sense_layer", None),
        )
    return word


def _upload() -> SenseFile | None:
    file = uploads.uploader(
        "senses",
        "A file with the columns word, sense, sentence and, if needed, index: .jsonl, .csv, .tsv, .parquet",
        key="senses_file",
        help="index: the position of the word in the sentence. Words are separated by spaces and counted from 0. Without an "
        "index, the first occurrence of the word counts.",
    )
    labelled = uploads.kept(
        "senses",
        caching.sense_files(),
        file,
        lambda file, is_stopped: reading.read_senses(file.getvalue(), file.name, is_stopped),
    )
    if labelled is None:
        st.caption("Each line is one sentence with an ambiguous word and the sense of the word in this sentence.")
        return None
    if labelled.bad_rows:
        st.warning(
            f"Left out: {labelled.bad_rows:,} row{'' if labelled.bad_rows == 1 else 's'} without a word, a sense or a "
            "sentence, or with an index that is not a whole number."
        )
    return labelled


def _labelled(backend: Backend, labelled: SenseFile, word: str) -> TokenSet:
    """The occurrences of a labelled word. Raises NotReady while they are being read."""
    rows = labelled.of(word)
    texts = tuple(row.sentence for row in rows)
    # All occurrences are read, and those that are meant chosen afterwards. The job is named by these texts, not by their file.
    name = "senses " + hashlib.sha256("\n".join(texts).encode("utf-8", "surrogatepass")).hexdigest()
    job = choices.request_tokens(backend, name, texts, "the labelled sentences", word, MAX_TOKEN_VECTORS)
    occurrences = choices.corpus_tokens(job, texts, {})
    chosen, missing = reading.meant_occurrences(rows, [(t.sentence, t.start, t.end) for t in occurrences.tokens])
    if missing:
        st.warning(
            f"{len(missing):,} of {len(rows):,} sentences do not contain “{messages.escape(word)}” in this form."
        )
    if not chosen:
        raise InputError(
            f"No sentence contains “{word}” in this form.", "At least one is needed.", "Choose another word."
        )
    labels = [rows[occurrences.tokens[token_row].sentence].sense for token_row in chosen]
    return token_set.choose(occurrences, chosen, {"sense": labels})


def _vectors(backend: Backend, occurrences: TokenSet) -> Vectors:
    """How to get the vectors of the occurrences; texts are only tokenized where their number fits into a code."""
    read = Input(backend, occurrences.texts)
    if len(occurrences.texts) > MOST_TEXTS:
        return Vectors(read, len(occurrences), (word_senses.sense_curve,), ())
    sentences = backend.tokenize(occurrences.texts)
    return of_words(
        read,
        [(token.sentence, sentences[token.sentence].word_positions(token.position)) for token in occurrences.tokens],
    )


def _curve_figure(curve: SenseCurve, word: str, labels: list[str], code: AnyCode, shown: int) -> None:
    layers = len(curve.accuracy)
    chance = np.full(layers, word_senses.by_chance(labels), np.float32)
    chart = curves.layer_curves(
        np.stack([curve.accuracy, chance]),
        ["nearest neighbour has the same sense", "the same with a nearest by chance"],
        "Same sense nearest",
        y_title="",
        mark_extremes=False,
    )
    figures.figure(
        _beside_the_map(chart, curve, float(chance[0]), shown),
        key="senses_curve",
        code=code,
        alt=f"Curves over the layers of how well the senses of {word} separate",
        table=lambda: pd.DataFrame(
            {
                "layer": range(layers),
                "nearest neighbour accuracy": curve.accuracy,
                "by chance": chance,
                "silhouette": curve.silhouette,
            }
        ),
    )


def _read_curve(labels: list[str], has_position_vectors: bool) -> str:
    """How the curve beside the map is read."""
    counts = ", ".join(f"{name} {count}" for name, count in Counter(labels).most_common())
    return (
        f"The curve is the share of occurrences ({messages.escape(counts)}) whose nearest other one, by cosine, has the same "
        f"sense; of several equally near ones each counts in part. At layer 0 {_at_layer_0(has_position_vectors)}: "
        "the nearest one says nothing about the sense, and its share can lie below that by chance. The table in Share has the "
        "separation of the senses too (silhouette): 1 if they are well apart, 0 if they overlap."
    )


def _at_layer_0(has_position_vectors: bool) -> str:
    if has_position_vectors:
        return "the vectors of one word differ by their positions alone"
    return "all vectors of one word are the same"


def _beside_the_map(chart: go.Figure, curve: SenseCurve, chance: float, shown: int) -> go.Figure:
    """The curves small, with their names at their ends and a line at the layer that the map shows."""
    last, best = len(curve.accuracy) - 1, curve.best
    ends = {"same sense": curve.accuracy[-1], "by chance": chance}
    for trace, colour in zip(chart.data, (theme.BLUE, theme.GREY), strict=True):
        trace.line.color = trace.marker.color = colour
        trace.marker.size = 5 if colour == theme.BLUE else 1
        trace.line.width = 3 if colour == theme.BLUE else 1.5
        trace.line.dash = "solid"
    places = curves.spread(list(map(float, ends.values())), 0.13)
    back = max(0.0, -min(places)) - max(0.0, max(places) - 1)  # plotly draws no text beyond the ends of the axis
    for (name, value), at in zip(ends.items(), places, strict=True):
        chart.add_annotation(
            x=last,
            y=at + back,
            text=f"{name} {_percent(float(value))}",
            xanchor="left",
            xshift=8,
            showarrow=False,
        )
    if best < last:  # the share that the finding names; at the end of the curve it stands there already
        chart.add_annotation(
            x=best,
            y=float(curve.accuracy[best]),
            text=_percent(float(curve.accuracy[best])),
            xshift=22,  # below the curve, beside the line of the layer
            yshift=-13,
            showarrow=False,
        )
    chart.add_shape(  # up to the curve, so that no number stands on it; orange is a sense
        x0=shown,
        x1=shown,
        y0=-0.03,
        y1=float(curve.accuracy[shown]),
        line={"color": theme.GREY, "width": 2, "dash": "dot"},
    )
    chart.update_layout(showlegend=False, height=264)
    chart.layout.margin.r = 150
    chart.update_xaxes(title={"text": "layer", "standoff": 4}, range=[-0.3, last + 0.3])
    chart.update_yaxes(range=[-0.03, 1.03], tickvals=[0, 0.5, 1], ticktext=list(map(_percent, (0.0, 0.5, 1.0))))
    return chart


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _key_of_lines(pairs: Sequence[tuple[int, int, bool]]) -> str:
    """The key of the lines of the map, as HTML: a sample of each kind that is drawn, and what it leads to."""
    kinds = {is_other for _, _, is_other in pairs}
    parts = [
        f'<span><i style="border-top: {line}"></i> {what}</span>'
        for is_other, line, what in (
            (False, f"1px solid {theme.GREY}", "to the nearest, of the same sense"),
            (True, f"2px dashed {theme.VERMILION}", "to the nearest, of another sense"),
        )
        if is_other in kinds
    ]
    return f'<div class="bi-map-key">{"".join(parts)}</div>' if parts else ""


def _map(
    backend: Backend,
    occurrences: TokenSet,
    found: ReadyMaps,
    by: str,
    word: str,
    layer: int,
    message: str = "",
    is_wide: bool = True,
) -> None:
    """A map of the occurrences at a layer, coloured by sense or group, with a message above it; alone, if it `is_wide`."""
    figure_slot, drawing, options = choices.place_of(found)
    layer_map = drawing.maps[layer]
    rows = np.arange(len(occurrences))
    groups = occurrences.category(by)
    names = [name for name, _ in Counter(groups).most_common()]
    is_named = (
        options.dims == 2 and len(names) <= len(pictures.SENTENCE_SHAPES) and len(occurrences) <= scatter.LABELLED
    )
    chart = scatter.token_map(
        layer_map.points,
        scatter.PointTexts(
            [_beside(occurrences, row) for row in rows.tolist()], pictures.texts(occurrences, rows).long
        ),
        scatter.Colours(
            by,
            groups=groups,
            shapes=[pictures.SENTENCE_SHAPES[names.index(name)] for name in groups] if is_named else None,
            has_key=not is_named,
        ),
        f"“{word}” at layer {layer}, {METHOD_NAMES[options.method]}",
        selected=selection.selected(occurrences),
        height=HEIGHT if controls.scale() == 1 else PROJECTED,
        scale=controls.scale(),
    )
    key_of_lines = ""
    if is_named:
        chart.update_traces(mode="markers")  # the names of the senses stand there, and the sentences beside the map
        scatter.name_groups(chart, layer_map.points, groups, controls.scale())
        if by == "sense":
            nearest = word_senses.nearest_other(occurrences.at(layer), groups)
            pairs = [(row, int(other), bool(nearest.same[row] == 0)) for row, other in enumerate(nearest.rows)]
            scatter.join_pairs(chart, layer_map.points, pairs)
            key_of_lines = _key_of_lines(pairs)
    read, not_shown = pictures.how_to_read(options)
    with figure_slot:
        figures.figure(
            chart,
            key="senses_map",
            code=MapTokens(_vectors(backend, occurrences)).layers(options, [layer]),
            alt=f"Map of {len(rows)} occurrences of {word} at layer {layer}, coloured by {by}",
            message=message,
            read=read if is_wide else "",
            not_shown=f"{not_shown} {pictures.in_numbers({layer: layer_map})}" if is_wide else "",
            table=lambda: pd.DataFrame(
                {
                    by: occurrences.category(by),
                    "sentence": [occurrences.texts[token.sentence] for token in occurrences.tokens],
                    **{
                        axis: layer_map.points[:, column]
                        for column, axis in enumerate("xyz"[: layer_map.points.shape[1]])
                    },
                }
            ),
            on_select=lambda: selection.pick(occurrences, "senses_map", rows),
        )
        if key_of_lines:
            figures.markup(key_of_lines, "senses_key")
    map_labels.thin()
    said = findings.trust({layer: layer_map}, METHOD_NAMES[options.method], occurrences.vectors.shape[2], len(rows))
    if not is_wide:  # there is no room for more beside the sentences
        st.caption(findings.kept(layer_map), help=f"{said} {pictures.in_numbers({layer: layer_map})}")
    else:
        st.caption(said)
        selection.selection(occurrences, selection.selected(occurrences), [layer])


def _beside(occurrences: TokenSet, row: int) -> str:
    """A short label of an occurrence: its word with the words beside it, of which the hover shows more."""
    context = occurrences.in_context(row)
    before = context.before.split(" ")[-2:]  # with the space between the words
    after = re.match(r"\S*(\s+\S+){0,2}", context.after)
    return f"{' '.join(before).lstrip()}{context.text}{after.group() if after else ''}"


def _unlabelled(backend: Backend, place: ControlRow, word_slot: DeltaGenerator) -> None:
    """A word of the corpus, without labels: groups of its occurrences with their most typical sentences."""
    corpus = current.corpus()
    page_header.measures_corpus(corpus)
    example = _example_word(corpus)
    with word_slot:
        typed = controls.bind(
            "sense_word",
            st.text_input,
            "Word",
            key="w_sense_text",
            to_widget=lambda word: word or example,
            max_chars=100,
        )
    word = typed.strip() or example
    if not word:
        st.info(
            f"**No word yet.** Type a word with several senses that {messages.escape(corpus.name)} contains.",
            icon=":material/edit:",
        )
        return
    if len(word.split()) > 1:
        st.info("Type a single word: its occurrences are compared.")
        return
    job = choices.request_tokens(backend, corpus.content_hash, corpus.texts, corpus.name, word, MOST_OCCURRENCES)
    occurrences = choices.corpus_tokens(job, corpus.texts, choices.label_columns(corpus))
    if len(occurrences) < FEWEST:
        st.info(f"“{messages.escape(word)}” has only {len(occurrences)} occurrences here: too few for groups.")
        return
    layer = _layer_of(backend, place, backend.facts.layers)
    vectors = occurrences.at(layer)
    job = caching.sense_jobs().request(
        ("groups", *occurrences.key, layer),
        f"Grouping the occurrences of “{word}”",
        lambda report_progress, is_stopped: word_senses.clusters(vectors, is_stopped=is_stopped),
        person=caching.person(),
    )
    requests.given_time(job)
    groups: list[Cluster] = job.result if job.finished.is_set() and job.error is None else []
    names = {int(row): f"group {number}" for number, group in enumerate(groups, 1) for row in group.members}
    # Until there are groups, the map is drawn without them.
    grouped = replace(
        occurrences, labels={"group": [names.get(row, "no group yet") for row in range(len(occurrences))]}
    )
    sizes = [f"{len(group.members):,} in group {number}" for number, group in enumerate(groups, 1)]
    answer = (
        f"**{len(occurrences):,} sentences of {messages.escape(corpus.name)}:** {', '.join(sizes)}. " if groups else ""
    )
    options = choices.options(len(occurrences), ControlRow(place.panel, place.panel))
    with frame.figure("senses"):
        found = choices.ready(grouped, options, [layer])
        _map(backend, grouped, found, "group", word, layer, message=answer + GROUP)
    requests.result_of(
        caching.sense_jobs(),
        job,
        doing="grouping the occurrences",
        stop_key="groups_stop",
        again_key="groups_again",
    )
    st.markdown(
        f"**{len(occurrences):,} occurrences in {len(groups)} groups at layer {layer}**, with the most typical ones:"
    )
    for number, group in enumerate(groups, start=1):
        lines = [f"**Group {number}**, {len(group.members)}"]
        for token_row in group.typical:
            context = occurrences.in_context(int(token_row), 90)
            before, text, after = (messages.escape(part) for part in (context.before, context.text, context.after))
            lines.append(f"- {before}**{text}**{after}")
        st.markdown("\n".join(lines))
    st.caption(
        "The groups come from k-means on the vectors' directions; their number (2 to 6) is the one with the best separation. "
        "They need not be senses. "
        f"Corpus: **{messages.escape(corpus.name)}**, {len(corpus):,} sentences; choose another on the Search page."
    )


def _example_word(corpus: Corpus) -> str:
    """A word with several senses that occurs often enough in a corpus; empty if none of EXAMPLES does."""
    for word in EXAMPLES:
        found = (text for text in corpus.texts if word in text.lower() and word in words(text))
        if len(list(islice(found, FEWEST))) == FEWEST:
            return word
    return ""


def _all_words(backend: Backend, labelled: SenseFile) -> None:
    """Every ready-made word at its best layer, measured when the panel is opened."""
    panel = st.expander("All ready-made words", icon=":material/table:", key="all_words", on_change="rerun")
    if not panel.open:
        return
    with panel, frame.figure("all_words"):
        rows = requests.result_of(
            caching.sense_jobs(),
            _request_overview(backend, labelled),
            doing="reading every word's sentences",
            stop_key="all_words_stop",
            again_key="all_words_again",
            unit="words",
        )
        table = pd.DataFrame(rows)
        shares = ["accuracy at best layer", "accuracy at layer 0", "most frequent sense"]
        st.dataframe(
            table.assign(**{name: 100 * table[name] for name in shares}),
            hide_index=True,
            key="all_words_table",
            column_config={name: st.column_config.NumberColumn(format="%.1f %%") for name in shares},
        )
        figures.download(table, "all-words")


def _request_overview(backend: Backend, labelled: SenseFile) -> Job:
    """The job that measures every word of a file at its best layer; its result: a row per word."""

    def work(report_progress: ReportProgress, is_stopped: IsStopped) -> list[dict[str, object]]:
        rows = []
        for done, word in enumerate(labelled.words):
            report_progress(done, len(labelled.words))
            labelled_rows = labelled.of(word)
            texts = [row.sentence for row in labelled_rows]
            vectors = backend.token_vectors(texts, word=word, is_stopped=is_stopped)
            occurrences = [(token.sentence, token.start, token.end) for token in vectors.tokens]
            chosen, _ = reading.meant_occurrences(labelled_rows, occurrences)
            meant = [labelled_rows[vectors.tokens[occurrence].sentence].sense for occurrence in chosen]
            curve = word_senses.sense_curve(vectors.vectors[:, chosen], meant)
            rows.append(
                {
                    "word": word,
                    "senses": len(set(meant)),
                    "sentences": len(meant),
                    "best layer": curve.best,
                    "accuracy at best layer": float(curve.accuracy[curve.best]),
                    "accuracy at layer 0": float(curve.accuracy[0]),
                    "most frequent sense": curve.majority,
                }
            )
        return rows

    key = ("overview", backend.spec.key, backend.revision, labelled.content_hash)
    total = len(labelled.words)
    return caching.sense_jobs().request(
        key, "Reading every word's sentences", work, person=caching.person(), total=total
    )
