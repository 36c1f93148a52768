"""Known failures: minimal pairs whose meaning differs while their cosine stays high, compared with paraphrases."""

from __future__ import annotations

import html
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

from components.analysis.why.contrasts import changed_spans, pair_cosines, separations, shares_above
from components.charts import minimal_pairs as charts
from components.charts import theme
from components.charts.retrieval.evaluation import Curve
from components.numbers import apart
from components.retrieval.corpora import minimal_pairs as reading
from components.retrieval.corpora.minimal_pairs import PARAPHRASE
from components.shown_code.arrays import Input
from components.shown_code.vectors import PAIRS_READ, kinds_apart, pairs_apart
from components.words.unicode_words import words
from dashboard import caching, pair_links, state
from dashboard.corpora import uploads
from dashboard.jobs import requests
from dashboard.jobs.embedding import EmbedRequest
from dashboard.jobs.stored import pairs as stored
from dashboard.jobs.stored.pairs import FILE, demo_pairs
from dashboard.ui import browser, controls, figures, messages, page_header
from dashboard.ui.waiting import frame
from dashboard.ui.wording import POOLING_NAMES, counted
from dashboard.views.why import clinic_probe

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from components.analysis.why.contrasts import PairCosines, Separation
    from components.arrays import Float32, Float64
    from components.jobs import IsStopped, ReportProgress
    from components.model.backend import Backend
    from components.model.trace import Pooling
    from components.retrieval.corpora.minimal_pairs import MinimalPairs

MOST_NEAREST = 4  # pairs in words beside the strips
FIGURES = {"cosines": "Cosines", "layers": "By layer", "probe": "Is it in the vector?"}
SOURCES = {"demo": "Ready-made pairs", "file": "Your pairs"}
# What a pair of each kind has, as the subject of a sentence.
SUBJECTS = {
    "negation": "a negation",
    "numbers": "another number",
    "swapped roles": "swapping who does what",
    "antonyms": "an opposite word",
    "names": "another name",
    "time": "another time",
    "quantity": "another quantity",
}

# The changed sentence of such a pair.
CHANGED = {
    "negation": "A negated sentence",
    "numbers": "A sentence with another number",
    "swapped roles": "A sentence with swapped roles",
    "antonyms": "A sentence with an opposite word",
    "names": "A sentence with another name",
    "time": "A sentence with another time",
    "quantity": "A sentence with another quantity",
}


@dataclass(frozen=True, eq=False)
class ClinicCosines:
    """The cosines of pairs at every layer and pooling."""

    pairs: MinimalPairs
    cosines: PairCosines
    poolings: tuple[Pooling, ...]
    key: tuple[Hashable, ...]  # of the job that gave the cosines
    read: Input  # the same texts for the code of the figures

    def of(self, kind: str, layer: int, pooling: Pooling) -> Float64:
        """The cosines of a kind's pairs, float64 [pair]."""
        return np.asarray(self.at(layer, pooling)[self.pairs.rows_of(kind)])

    def at(self, layer: int, pooling: Pooling) -> Float64:
        """The cosines of all pairs, float64 [pair]."""
        return np.asarray(self.cosines.of_pairs[layer, self.poolings.index(pooling)])

    def unrelated(self, layer: int, pooling: Pooling) -> Float64:
        """The cosines of each pair's first sentence with the second one of its partner, float64 [pair]."""
        return np.asarray(self.cosines.unrelated[layer, self.poolings.index(pooling)])

    def at_all_layers(self, kind: str, pooling: Pooling) -> Float64:
        """The cosines of a kind's pairs, float64 [layer, pair]."""
        return np.asarray(self.cosines.of_pairs[:, self.poolings.index(pooling)][:, self.pairs.rows_of(kind)])

    def shares(self, kind: str, pooling: Pooling) -> list[float]:
        """How often a paraphrase has the higher cosine than a pair of this kind, [layer]."""
        paraphrases, changed = (self.at_all_layers(name, pooling) for name in (PARAPHRASE, kind))
        return [float(share) for share in shares_above(paraphrases, changed)]

    def separations(self, kind: str, pooling: Pooling) -> tuple[Separation, ...]:
        """The same with intervals, [layer]. Raises NotReady while they are computed."""
        paraphrases, changed = (self.at_all_layers(name, pooling) for name in (PARAPHRASE, kind))

        def work(report_progress: ReportProgress, is_stopped: IsStopped) -> tuple[Separation, ...]:
            return separations(paraphrases, changed, progress=report_progress, is_stopped=is_stopped)

        return requests.latest(
            ("separations", *self.key, kind, pooling),
            f"Computing intervals: {kind}",
            work,
            "clinic_intervals",
            "computing the intervals",
            "layers",
            view="clinic",
        )


def question() -> str:
    """The title: what can be read from a vector is no failure of it."""
    if state.get("clinic_figure") == "probe":
        return "What is in the vector, though the cosine does not show it?"
    return "What can the model not see?"


def draw(backend: Backend) -> None:
    """Draw the chosen figure of the chosen pairs."""
    messages.cross_encoder_note([backend])
    with controls.row():
        figure = controls.choice("clinic_figure", "Figure", FIGURES, show_label=False)
        kind_slot = st.container(width=190, key="clinic_kind_slot")  # the kinds depend on the pairs
        with controls.options():
            layer = controls.stepped("layer", "Layer", 0, backend.facts.layers, backend.facts.layers)
            source = controls.choice("clinic_source", "Pairs", SOURCES, after_change=_new_pairs)
            pooling = controls.sentence_vector([backend])
    page_header.measures(SOURCES[source])
    pairs = demo_pairs() if source == "demo" else _upload()
    if pairs is None:
        return
    page_header.measures(SOURCES[source], counted(sum(kind != PARAPHRASE for kind in pairs.kinds), "changed pair"))
    is_all = figure != "probe" or source != "demo"
    kind = _kind(pairs, kind_slot, lambda name: is_all or name in clinic_probe.QUESTIONS)
    if figure == "probe":
        with frame.figure("clinic_probe"):
            clinic_probe.draw(backend, pairs, kind, layer, pooling, source == "demo")
    else:
        measured = _measured(backend, pairs.with_paraphrases_of(demo_pairs()))
        with frame.figure("clinic"):
            if figure == "cosines":
                above = st.container()
                left, right = st.columns([8, 5], gap="medium")
                with left:
                    _cosines(measured, kind, layer, pooling, above)
                with right:
                    _nearest_in_words(measured, kind, layer, pooling)
            else:
                _by_layer(measured, measured.separations(kind, pooling), kind, layer, pooling)
        if figure == "cosines":
            _one_pair(measured, kind, layer, pooling)
    if pooling == "own":
        messages.head_note([backend], "own")
    _about(pairs, source)


def _new_pairs() -> None:
    state.put("clinic_kind", state.default("clinic_kind"))
    state.put("clinic_pair", None)


def _kind(pairs: MinimalPairs, place: st.delta_generator.DeltaGenerator, is_readable: Callable[[str], bool]) -> str:
    """The chosen kind of difference; the first one if these pairs have no such kind."""
    readable = {name: is_readable(name) for name in pairs.changed_kinds}
    kinds = sorted(readable, key=lambda name: not readable[name])  # those of which nothing can be shown come last
    chosen = state.get("clinic_kind")
    kind = chosen if chosen in kinds else kinds[0]
    if kind != chosen and chosen != state.default("clinic_kind"):
        st.warning(f"These pairs have no kind “{messages.escape(chosen)}”. Shown is “{messages.escape(kind)}”.")
    with place:
        controls.bind(
            "clinic_kind",
            st.selectbox,
            "Difference",
            options={name: name.capitalize() + ("" if readable[name] else ": not readable") for name in kinds},
            to_widget=lambda _: kind,
            after_change=partial(state.put, "clinic_pair", None),
        )
    return kind


def _upload() -> MinimalPairs | None:
    file = uploads.uploader(
        "minimal_pairs",
        "A file with the columns first, second and, if you like, kind: .csv, .tsv, .jsonl, .parquet",
        key="clinic_file",
        help="Each row is a pair of sentences. The kind names their difference; pairs of the kind “paraphrase” are the "
        "comparison. If there are fewer than ten of them, the ready-made paraphrases are.",
    )
    pairs = uploads.kept(
        "minimal_pairs",
        caching.minimal_pairs(),
        file,
        lambda file, is_stopped: reading.read_minimal_pairs(file.getvalue(), file.name, is_stopped=is_stopped),
    )
    if pairs is None:
        st.caption(
            "Each row is a pair of sentences whose meanings differ. If the second sentence of each pair has what the first "
            "lacks, such as a “not”, “Is it in the vector?” can find out whether the vectors hold it."
        )
    return pairs


def _measured(backend: Backend, pairs: MinimalPairs) -> ClinicCosines:
    """The cosines of the pairs; those of the ready-made ones in the included model are kept in a file. Raises NotReady."""
    options = EmbedRequest.of_session(backend).pair_options()
    key = (backend.spec.key, backend.revision, options, pairs.content_hash)
    read = Input(backend, (), options.max_length, prompt=options.prompt, source=PAIRS_READ)
    kept = stored.cosines(backend, pairs, options)
    if kept is not None:
        return ClinicCosines(pairs, kept, options.poolings, key, read)

    def embed(texts: Sequence[str], report_progress: ReportProgress, is_stopped: IsStopped) -> Float32:
        return backend.embed(texts, options=options, progress=report_progress, is_stopped=is_stopped)

    def work(report_progress: ReportProgress, is_stopped: IsStopped) -> PairCosines:
        return pair_cosines(embed, pairs.first, pairs.second, progress=report_progress, is_stopped=is_stopped)

    cosines = requests.latest(
        ("minimal pairs", *key),
        f"Embedding {2 * len(pairs):,} sentences",
        work,
        "clinic",
        "embedding the pairs",
        "sentences",
        view="clinic",
    )
    return ClinicCosines(pairs, cosines, options.poolings, key, read)


def _subject(kind: str) -> str:
    return SUBJECTS.get(kind, f"the difference “{messages.escape(kind)}”")


def by_layer_finding(share: Separation, kind: str, layer: int) -> str:
    """How often the cosine ranks a paraphrase above a pair with this difference, and whether guessing does."""
    right = _percent(share.value)
    start = f"Beside {_subject(kind)}, layer {layer} ranks the paraphrase first in **{right}** of cases"
    if share.high < 0.5:
        return f"{start} (guessing: 50 %)."
    if share.low > 0.5:
        return f"{start}: better than guessing (50 %)."
    return f"{start}: no better and no worse than guessing (50 %)."


def _percent(share: float) -> str:
    """A share as text; only none and all are written as 0 and 100 %."""
    if 0 < share < 0.01 or 0.99 < share < 1:
        return "less than 1 %" if share < 0.5 else "more than 99 %"
    return f"{100 * share:.0f} %"


def kind_finding(kind: str, nearer: str) -> str:
    """How often a pair of the chosen kind is `nearer` than a paraphrase, each compared with each."""
    changed = CHANGED.get(kind, f"A sentence changed in “{messages.escape(kind)}”")
    return f"{changed} is nearer than a paraphrase in **{nearer}** of comparisons."


def finding(medians: Mapping[str, float], paraphrase: float) -> str:
    """In how many kinds the typical changed pair is nearer than the typical paraphrase; `medians` are the kinds' cosines."""
    above = [kind for kind in medians if medians[kind] > paraphrase]
    told = [medians[kind] for kind in above] or list(medians.values())
    level, low, high = apart(paraphrase, min(told), max(told))
    same = f"two sentences that mean the same ({level})"
    if len(medians) == 1:
        how = "nearer than" if above else "no nearer than"
        return f"The typical pair of “{messages.escape(next(iter(medians)))}” ({high}) is {how} {same}."
    count = f"all {len(medians)}" if len(above) == len(medians) else f"{len(above)} of {len(medians)}"
    if not above:
        return f"In **none of {len(medians)} kinds** is the typical changed pair ({low} to {high}) nearer than {same}."
    span = low if len(above) == 1 else f"{low} to {high}"
    return f"In **{count} kinds** the typical changed pair ({span}) is nearer than {same}."


def _nearest_in_words(measured: ClinicCosines, kind: str, layer: int, pooling: Pooling) -> None:
    """The nearest pairs of a kind with their changed words underlined, and below them the paraphrase that is farthest."""
    pairs, values = measured.pairs, measured.at(layer, pooling)
    rows = pairs.rows_of(kind)
    nearest = rows[np.argsort(-values[rows], kind="stable")][:MOST_NEAREST].tolist()
    same = pairs.rows_of(PARAPHRASE)
    far = int(same[np.argmin(values[same])])

    def pair(row: int, is_marked: bool) -> str:
        texts = pairs.first[row], pairs.second[row]
        spans = changed_spans(*texts) if is_marked else ((), ())
        lines = "<br>".join(_underlined(text, own) for text, own in zip(texts, spans, strict=True))
        return f"<div><b>{apart(float(values[row]))[0]}</b><p>{lines}</p></div>"

    parts = [
        f"<h4>{html.escape(kind.capitalize())}: the nearest</h4>",
        *(pair(row, True) for row in nearest),
        "<h4>The same meaning, yet far apart</h4>",
        pair(far, False),
    ]
    figures.markup(f'<div class="bi-pairs">{"".join(parts)}</div>', "clinic_nearest", of="clinic_cosines")


def _underlined(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """A text as HTML whose words in these spans are underlined."""
    parts, end = [], 0
    for start, stop in spans:
        parts += [html.escape(text[end:start]), f"<u>{html.escape(text[start:stop])}</u>"]
        end = stop
    return "".join([*parts, html.escape(text[end:])])


def _told(measured: ClinicCosines, kind: str, layer: int, pooling: Pooling) -> dict[str, Any]:
    """The finding above strips and sentences, and how they are read, with the chosen kind in numbers."""
    pairs = measured.pairs
    paraphrases, own = measured.of(PARAPHRASE, layer, pooling), measured.of(kind, layer, pooling)
    median = float(np.median(paraphrases))
    rows = pairs.rows_of(kind)
    typical = int(rows[np.argsort(own, kind="stable")[len(own) // 2]])
    shown = f"“{messages.escape(pairs.first[typical])}” and “{messages.escape(pairs.second[typical])}”"
    above = int(np.count_nonzero(own > median))
    of_median, of_typical = apart(median, measured.at(layer, pooling)[typical])
    nearer = _percent(1 - measured.shares(kind, pooling)[layer])
    every = finding({name: float(np.median(measured.of(name, layer, pooling))) for name in pairs.changed_kinds}, median)
    return {
        "message": f"{kind_finding(kind, nearer)} {every}" if len(pairs.changed_kinds) > 1 else every,
        "read": "Each point is a pair of sentences; hover over it to read them; a click opens a pair that differs below. The "
        "tick is the typical pair of its row, with as many pairs above it as below (the median). In the blue row the two "
        "sentences mean the same in other words (paraphrases); in the last row they have nothing to do with each other. In "
        "all other rows a few words make the meanings differ; the chosen difference is orange. At the right: the typical "
        "cosine, and how often such a pair is nearer than a paraphrase.\n\n"
        f"{messages.escape(kind.capitalize())}: {above} of {counted(len(own), 'pair')} have a higher cosine than the typical "
        f"pair that means the same ({of_median}). Each compared with each, the changed pair is nearer in "
        f"{nearer} of all cases. A typical pair: {shown}, {of_typical}.",
        "not_shown": "That the model knows nothing of the difference: see “Is it in the vector?”. "
        + words_in_words(pairs, kind),
    }


def _cosines(
    measured: ClinicCosines, kind: str, layer: int, pooling: Pooling, above: st.delta_generator.DeltaGenerator
) -> None:
    """The first figure: a strip of points for each kind, with its line `above` it and the sentences beside it."""
    pairs, told = measured.pairs, _told(measured, kind, layer, pooling)
    median = float(np.median(measured.of(PARAPHRASE, layer, pooling)))
    figures.figure(
        charts.value_strips(
            _strips(measured, kind, layer, pooling),
            f"Cosines at layer {layer}, {POOLING_NAMES[pooling]}",
            value="cosine",
            level=(median, "same meaning"),
            chosen=_opened(pairs, kind),
            notes=("typical", "% above a paraphrase"),
        ),
        key="clinic_cosines",
        code=pairs_apart(measured.read, layer, pooling),
        alt=f"Cosines of {len(pairs.changed_kinds)} kinds of pairs, of paraphrases and of unrelated sentences",
        table=lambda: _table(measured, layer, pooling),
        on_select=partial(_clicked, pairs.kinds, _places(pairs)),
        select_many=False,
        most_above=len(told["message"]),
        line_in=above,
        is_shared=True,
        **told,
    )


def words_in_words(pairs: MinimalPairs, kind: str) -> str:
    """How many words the two sentences of a pair share, and those of a paraphrase, and what follows for the test."""

    def share(of: str) -> float:
        rows = pairs.rows_of(of).tolist()
        both = [(set(words(pairs.first[row])), set(words(pairs.second[row]))) for row in rows]
        return float(np.mean([len(a & b) / max(1, len(a | b)) for a, b in both]))

    own, paraphrase = share(kind), share(PARAPHRASE)
    shares = f"a pair shares {_percent(own)} on average and a paraphrase {_percent(paraphrase)}"
    text = f"Of all words of its two sentences, {shares}"
    if own <= paraphrase:
        return f"{text}: shared words do not make this test hard."
    return f"{text}, which makes the test hard. It shows what to expect where a search must tell such sentences apart."


def _strips(measured: ClinicCosines, kind: str, layer: int, pooling: Pooling) -> list[charts.Strip]:
    pairs, values = measured.pairs, measured.at(layer, pooling)

    def strip(name: str, of_kind: str, colour: str) -> charts.Strip:
        rows = pairs.rows_of(of_kind).tolist()
        texts = [_hover(pairs.first[row], pairs.second[row]) for row in rows]
        note = "" if of_kind == PARAPHRASE else _percent(1 - measured.shares(of_kind, pooling)[layer])
        is_own = of_kind == kind
        label = f"{name} ({len(rows)})"
        return charts.Strip(label, values[rows], texts, rows, colour, note=note, is_marked=is_own, has_number=True)

    partners = measured.cosines.partners.tolist()
    by_median = sorted(pairs.changed_kinds, key=lambda name: -float(np.median(values[pairs.rows_of(name)])))
    return [
        strip("Same meaning", PARAPHRASE, theme.BLUE),
        *(strip(name.capitalize(), name, theme.ORANGE if name == kind else theme.GREY) for name in by_median),
        charts.Strip(
            "Unrelated",
            measured.unrelated(layer, pooling),
            [_hover(first, pairs.second[partner]) for first, partner in zip(pairs.first, partners, strict=True)],
            [-2] * len(pairs),  # they are no pairs to open
            theme.GREY,
            is_faint=True,
        ),
    ]


def _hover(first: str, second: str) -> str:
    return f"{theme.plain(first, 100)}<br>{theme.plain(second, 100)}"


def _places(pairs: MinimalPairs) -> tuple[int, ...]:
    """The place of each pair among those of its kind, by pair: it names an opened pair."""
    seen: dict[str, int] = {}
    places = []
    for kind in pairs.kinds:
        places.append(seen.get(kind, 0))
        seen[kind] = places[-1] + 1
    return tuple(places)


def _clicked(kinds: tuple[str, ...], places: tuple[int, ...]) -> None:
    """Open the pair of a clicked point. A paraphrase has no strip of its own to choose, and stays closed."""
    place = browser.place_selected("clinic_cosines")
    if place and browser.is_index(place[0], len(kinds)) and kinds[place[0]] != PARAPHRASE:
        state.put("clinic_kind", kinds[place[0]])
        state.put("clinic_pair", places[place[0]])


def _opened(pairs: MinimalPairs, kind: str) -> int | None:
    """The row of the opened pair, if one was chosen."""
    rows, place = pairs.rows_of(kind), state.get("clinic_pair")
    return int(rows[place]) if place is not None and place < len(rows) else None


def _one_pair(measured: ClinicCosines, kind: str, layer: int, pooling: Pooling) -> None:
    """One pair, with its changed words marked and links to the views that explain its cosine."""
    pairs, values = measured.pairs, measured.at(layer, pooling)
    rows = pairs.rows_of(kind)
    order = np.argsort(-values[rows], kind="stable").tolist()  # places among the kind's pairs, the most similar first
    figures.subheader("One pair")
    place = int(
        controls.bind(
            "clinic_pair",
            st.selectbox,
            "Pair, the most similar first",
            options={
                place: f"{theme.number(values[rows[place]])}  {pairs.first[rows[place]][:70]} · "
                f"{pairs.second[rows[place]][:70]}"
                for place in order
            },
            default=order[0],
            offers=f"There are {counted(len(rows), 'such pair')}.",
        )
    )
    row = int(rows[place])
    first, second = pairs.first[row], pairs.second[row]
    spans = changed_spans(first, second)
    st.markdown(f"A: {_marked(first, spans[0])}  \nB: {_marked(second, spans[1])}")
    rank = order.index(place) + 1
    paraphrases = measured.of(PARAPHRASE, layer, pooling)
    st.caption(
        f"Cosine {theme.number(values[row])}, number {rank} of {counted(len(rows), 'pair')} of this kind; higher than "
        f"{of_paraphrases(int(np.count_nonzero(paraphrases < values[row])), len(paraphrases))}."
    )
    pair_links.draw(first, second, key="_clinic")


def of_paraphrases(below: int, count: int) -> str:
    """How many of all paraphrases have a lower cosine."""
    which = "all" if below == count else f"{below or 'none'} of the"
    return f"{which} {counted(count, 'paraphrase')}"


def _marked(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """A text whose words in these spans are bold."""
    parts, end = [], 0
    for start, stop in spans:
        parts += [messages.escape(text[end:start]), f"**{messages.escape(text[start:stop])}**"]
        end = stop
    return "".join([*parts, messages.escape(text[end:])])


def _table(measured: ClinicCosines, layer: int, pooling: Pooling) -> pd.DataFrame:
    pairs = measured.pairs
    return pd.DataFrame(
        {
            "kind": pairs.kinds,
            "first": pairs.first,
            "second": pairs.second,
            "cosine": measured.at(layer, pooling).round(5),
            "cosine with another pair's second": measured.unrelated(layer, pooling).round(5),
        }
    )


def _by_layer(measured: ClinicCosines, found: Sequence[Separation], kind: str, layer: int, pooling: Pooling) -> None:
    """How often the paraphrase is the more similar one, by kind over the layers; `found` [layer] is of the chosen kind."""
    kinds = measured.pairs.changed_kinds
    layers = range(measured.cosines.of_pairs.shape[0])
    shares = {name: measured.shares(name, pooling) for name in kinds}
    curves = [
        Curve(
            name.capitalize(),
            100 * np.array(shares[name]),
            np.array([100 * share.low for share in found]) if name == kind else None,
            np.array([100 * share.high for share in found]) if name == kind else None,
        )
        for name in kinds
    ]
    figures.figure(
        charts.shares_by_layer(
            curves,
            list(layers),
            f"How often the cosine is right: {POOLING_NAMES[pooling]}",
            y_title="right (%)",
            colours=[theme.ORANGE if name == kind else theme.GREY for name in kinds],
            names=[f"{name.capitalize()} {_percent(shares[name][-1])}" for name in kinds],
            chosen=layer,
        ),
        key="clinic_layers",
        code=kinds_apart(measured.read, kinds, pooling),
        alt=f"How often a paraphrase is more similar than a changed pair, for {len(kinds)} kinds by layer",
        message=f"{by_layer_finding(found[layer], kind, layer)} Over all layers that is between "
        f"{_percent(min(shares[kind]))} and {_percent(max(shares[kind]))}.",
        read="A question for the model: which of two pairs means the same? One pair is a paraphrase, which says the same in "
        "other words, the other a changed pair. The answer is the pair with the higher cosine. A curve says how often that is "
        "right, over all paraphrases and all pairs of a kind: 100 % would be always, 50 % is guessing, and 0 % means that a "
        "changed word always counts less than other words for the same. (This is the area under the ROC curve.) The band is "
        "the 95 % interval of the chosen kind.",
        not_shown="How high the cosines are: only their order counts. A low curve does not mean that the model has lost the "
        "difference, only that its cosine counts shared words more; see “Is it in the vector?”.",
        table=lambda: pd.DataFrame(
            [
                {
                    "kind": name,
                    "layer": each,
                    "AUC": round(share, 4),
                    "low": round(found[each].low, 4) if name == kind else None,
                    "high": round(found[each].high, 4) if name == kind else None,
                    "median cosine": round(float(np.median(measured.of(name, each, pooling))), 4),
                }
                for name in kinds
                for each, share in enumerate(shares[name])
            ]
        ),
    )


def _about(pairs: MinimalPairs, source: str) -> None:
    own = len(pairs.rows_of(PARAPHRASE))
    changed = len(pairs) - own
    if source == "demo":
        st.caption(
            f"{counted(changed, 'pair')} of {len(pairs.changed_kinds)} kinds and {own} paraphrases, written for this "
            "dashboard: a demonstration, not a benchmark."
        )
        st.download_button(
            "Save these pairs (JSON lines)",
            FILE.read_bytes,
            file_name=FILE.name,
            mime="application/jsonl",
            key="clinic_save",
            icon=":material/download:",
            on_click="ignore",
        )
        return
    text = f"{counted(changed, 'pair')} of yours"
    if own >= reading.FEWEST_PARAPHRASES:
        text += f", compared with your {own} paraphrases."
    else:
        text += f", compared with the ready-made paraphrases: your file has fewer than {reading.FEWEST_PARAPHRASES}."
    if pairs.bad_rows:
        text += f" Left out: {counted(pairs.bad_rows, 'row')} without two different sentences."
    st.caption(text)
