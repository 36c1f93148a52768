"""The choices of a map: the tokens, the method and its options, the colours."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, cast

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from components.analysis.maps import numba_work
from components.analysis.maps.projection import FEW, MapOptions, Method, Metric, check_count, layer_map
from components.analysis.maps.token_set import NUMBERS, PAIR_GROUPS, PAIR_LABEL, of_corpus, of_pair, of_trace
from components.charts.scatter import Colours
from components.shown_code.arrays import Input
from components.shown_code.maps import MapTokens
from components.shown_code.vectors import Vectors, of_tokens
from dashboard import caching, state
from dashboard.corpora import current
from dashboard.jobs import requests
from dashboard.sharing import report
from dashboard.ui import controls, messages, pair_choice
from dashboard.ui.waiting import frame, progress

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from components.analysis.maps.drawing import MapDrawing, MapLayers
    from components.analysis.maps.token_set import TokenSet
    from components.jobs import IsStopped, Job, ReportProgress
    from components.model.backend import Backend
    from components.model.embedding.token_vectors import TokenVectors
    from components.retrieval.corpora.corpus import Corpus

METHOD_NAMES = {"umap": "UMAP", "pca": "PCA", "tsne": "t-SNE", "pacmap": "PaCMAP"}
IN_WORDS = {
    "umap": "UMAP keeps near tokens near.",
    "pca": "PCA shows the directions in which they differ most.",
    "tsne": "t-SNE keeps near tokens near.",
    "pacmap": "PaCMAP keeps near tokens near.",
}
FEW_BEFORE = 20  # points that older addresses meant to be drawn by PCA
SAMPLES = (500, 2_000, 5_000, 20_000, 50_000)
MOST_LABELS = 70  # values of a column that colours may show
PCA_WAIT = 3.0  # seconds; PCA takes long for many tokens, and when it is the first to import its library
TABLE_NAMES = {  # columns of the page's own tables
    *("layer", "sentence", "token", "word", "position", "special", "frequency", "number", "group", "sense"),
    *("x", "y", "z", "before", "after", "cosine"),
}


class ControlRow(NamedTuple):
    """Where a view's controls are drawn: in the row above the figure, or under its "Options"."""

    main: DeltaGenerator
    panel: DeltaGenerator


def row() -> ControlRow:
    """The row above a figure, which the functions below fill: what is used most; the rest stands under "Options"."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="row_map"):
        main = st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="row_map_main")
        return ControlRow(main, controls.options())


def tokens(backend: Backend, place: ControlRow) -> TokenSet | None:
    """The chosen tokens; None without sentences, which is said. Raises NotReady while those of a corpus are being read."""
    with place.panel:
        source = _source()
    if source != "corpus":
        with place.panel:
            special = controls.switch("include_special", "Special tokens", caching.glossary()["special token"])
        if messages.no_sentences():
            return None
        if source == "sentences":
            return of_trace(controls.current_trace(backend), special)
        with place.panel:
            pair = pair_choice.choose(always=True)
        return of_pair(pair.trace(backend), state.get("sentences"), pair.rows, special)
    corpus = current.corpus()
    with place.panel:
        count = _sample_size()
    job = request_tokens(backend, corpus.content_hash, corpus.texts, corpus.name, max_tokens=count)
    return corpus_tokens(job, corpus.texts, label_columns(corpus))


def code_of_tokens(backend: Backend, count: int) -> MapTokens:
    """The code of the tokens that `tokens` gives, so many."""
    if state.get("map_source") == "corpus":
        return MapTokens(Vectors(Input(backend, ()), count, (layer_map,), ()))
    read = pair_choice.chosen(always=True).input(backend) if reads_pair() else controls.current_input(backend)
    return MapTokens(of_tokens(read, bool(state.get("include_special")), count))


def _source() -> str:
    """Draw the choice of tokens: of all sentences, of two that the model reads together, or of the corpus.

    Two settings say it, since Tokens reads the sentences alone or together as well.
    """
    sources = {"sentences": "Sentences", "pair": "A + B", "corpus": "Corpus"}
    chosen = "corpus" if state.get("map_source") == "corpus" else "pair" if reads_pair() else "sentences"

    def choose(source: str) -> None:
        state.put("map_source", "corpus" if source == "corpus" else "sentences")
        if source != "corpus":
            state.put("reading", "together" if source == "pair" else "alone")

    st.session_state["w_map_source"] = chosen
    report.name_values("map_source", sources, chosen)
    controls.checked(
        st.segmented_control,
        "Tokens of",
        options=sources,
        format_func=sources.__getitem__,
        key="w_map_source",
        on_choice=choose,
        required=True,
        help="A + B: two of the sentences, which the model reads together as one input. Choose them under “Options”.",
    )
    return chosen


def reads_pair() -> bool:
    """Whether the tokens are those of two sentences that the model reads as one input."""
    return bool(state.get("reading") == "together")


def about(backend: Backend, token_set: TokenSet) -> None:
    """Which tokens the map shows, and what is missing; drawn below the figure."""
    if state.get("map_source") == "sentences" and reads_pair():
        pair = pair_choice.chosen(always=True)
        pair.tell_truncation(pair.trace(backend).sentences[0])
        st.caption(
            f"The model read both as one input. **A**: {messages.escape(pair.first[:80])} · "
            f"**B**: {messages.escape((pair.second or '')[:80])}"
        )
        return
    if state.get("map_source") == "sentences":
        messages.truncation(controls.current_trace(backend).sentences)
        return
    shown, total = len(token_set), token_set.candidates
    sample = f"All {total:,} tokens" if shown == total else f"A random sample of {shown:,} of {total:,} tokens"
    st.caption(f"{sample} of **{messages.escape(current.corpus().name)}**. Choose another corpus on the Search page.")


def request_tokens(
    backend: Backend, corpus: str, texts: Sequence[str], name: str, word: str = "", max_tokens: int = 2_000
) -> Job:
    """The job that reads a sample of a corpus's tokens, or a word's occurrences, at all layers; its result: TokenVectors.

    `corpus` is a hash of the texts; `name` is what people call the corpus.
    """

    def work(report_progress: ReportProgress, is_stopped: IsStopped) -> TokenVectors:
        return backend.token_vectors(
            texts,
            word=word or None,
            max_tokens=max_tokens,
            folder=caching.token_folder(),
            progress=report_progress,
            is_stopped=is_stopped,
        )

    key = (backend.spec.key, backend.revision, corpus, word, str(max_tokens))
    title = f"Searching {name} for “{word}”" if word else f"Reading the tokens of {name}"
    return caching.token_jobs().request(key, title, work, person=caching.person(), total=len(texts))


def corpus_tokens(job: Job, texts: Sequence[str], labels: Mapping[str, Sequence[str]]) -> TokenSet:
    """The tokens that a job of `request_tokens` reads. Raises NotReady."""
    vectors: TokenVectors = requests.result_of(
        caching.token_jobs(),
        job,
        doing="reading tokens",
        stop_key="tokens_stop",
        again_key="tokens_again",
        unit="sentences that contain them",
    )
    return of_corpus(cast("tuple[str, ...]", job.key), vectors, texts, labels)


def label_columns(corpus: Corpus) -> dict[str, Sequence[str]]:
    """The columns of a corpus with few enough values to colour by, under names that the page's tables do not use."""
    return {
        f"{name} (column)" if name in TABLE_NAMES else name: column
        for name, column in corpus.columns.items()
        if 1 < len(set(column)) <= MOST_LABELS
    }


def _nearest_size(chosen: int) -> int:
    return min(SAMPLES, key=lambda size: abs(size - chosen))


def _sample_size() -> int:
    options = {size: f"{size:,}" for size in SAMPLES}
    return int(
        controls.bind("map_tokens", st.select_slider, "Number of tokens", options=options, to_widget=_nearest_size)
    )


def options(count: int, place: ControlRow) -> MapOptions:
    """The method and its options. Unless a method was chosen, few tokens are mapped by PCA."""
    chosen = state.get("map_method")
    is_few = count <= FEW_BEFORE if chosen == "older" else count < FEW
    method = ("pca" if is_few else "umap") if chosen in ("auto", "older") else chosen
    with place.panel:
        help_text = caching.glossary()["projection"]
        controls.choice("map_method", "Map by", METHOD_NAMES, help_text, to_widget=lambda _: method)
        dims = controls.choice("map_dims", "Dimensions", {"2": "2-D", "3": "3-D"})
        # What the method does not use is not offered, and so not stated in a report.
        neighbors, min_dist = state.default("map_neighbors"), state.default("map_min_dist")
        if method != "pca":
            neighbors = controls.number(
                "map_neighbors",
                "Perplexity" if method == "tsne" else "Neighbours",
                2,
                200,
                15,
                "How many neighbours each token should keep. Few neighbours show small groups; many show the overall shape.",
            )
        if method == "umap":
            min_dist = controls.number(
                "map_min_dist",
                "Minimum distance, in hundredths",
                0,
                99,
                10,
                "How tightly UMAP may place points: 0 gives dense groups.",
            )
        metric = controls.choice("map_metric", "Neighbours by", {"cosine": "Cosine", "euclidean": "Euclidean distance"})
        seed = controls.number("map_seed", "Seed", 0, 9_999, 0, "The same seed gives the same picture.")
        if is_few and chosen in ("auto", "older"):
            st.caption(
                f"With fewer than {FEW} tokens, PCA shows as much as the other methods and distorts less. You can try them too."
            )
    check_count(count, cast("Method", method))
    return MapOptions(cast("Method", method), int(dims), neighbors, min_dist / 100, cast("Metric", metric), seed)


class ReadyMaps(NamedTuple):
    """The maps that can be drawn now, if any, with their options."""

    drawing: MapDrawing | None
    options: MapOptions
    tell: Callable[[], None]  # draws what is said of a method that is not finished


def drawing(
    token_set: TokenSet, options: MapOptions, spaces: Sequence[MapLayers]
) -> tuple[DeltaGenerator, MapDrawing, MapOptions]:
    """Where to draw the figure, and the maps with their options. Raises NotReady while there is nothing to draw."""
    return place_of(ready(token_set, options, spaces))


def place_of(found: ReadyMaps) -> tuple[DeltaGenerator, MapDrawing, MapOptions]:
    """As `drawing`, of maps that have been asked for. A notice below the figure shows the progress or the error."""
    figure_slot = st.container()
    with st.container(key="map_notice"):  # in every run, so that the elements below keep their positions
        if found.drawing is None:
            raise frame.Instead(found.tell)
        found.tell()
        return figure_slot, found.drawing, found.options


def ready(token_set: TokenSet, options: MapOptions, spaces: Sequence[MapLayers]) -> ReadyMaps:
    """The maps by the chosen method, or by PCA until that is finished."""
    maps, person = caching.maps(), caching.person()
    if options.method == "umap":
        numba_work.warm_up()
    chosen = maps.request(token_set, options, spaces, person)
    # A fit under way takes a while to stop, but nobody has to wait for it.
    is_stopped = chosen.is_stopped_for(person)
    if chosen.wait(0.0 if is_stopped else PCA_WAIT if options.method == "pca" else 0.5):
        return ReadyMaps(chosen, options, lambda: None)
    pca_options, pca = replace(options, method="pca"), chosen
    if options.method != "pca":
        pca = maps.request(token_set, pca_options, spaces, person)
    has_pca = pca is not chosen and pca.wait(PCA_WAIT)
    tell = partial(_tell, chosen, pca, options.method, has_pca)
    return ReadyMaps(pca, pca_options, tell) if has_pca else ReadyMaps(None, options, tell)


def _tell(chosen: MapDrawing, pca: MapDrawing, method: Method, has_pca: bool) -> None:
    """Say how far the chosen method is, or why it has no map, with the button that draws it again."""
    maps, person = caching.maps(), caching.person()
    is_stopped = chosen.is_stopped_for(person)
    if chosen.error is None and not is_stopped:
        _progress(chosen, pca, method, has_pca)
        return
    if is_stopped:
        st.info(f"{METHOD_NAMES[method]} was stopped" + ("; this is PCA." if has_pca else "."))
    else:
        messages.explain(chosen.error or RuntimeError("no error given"), "drawing the map")
    progress.again("Draw it again", "map_again", maps.forget, (chosen, person))


def _progress(chosen: MapDrawing, pca: MapDrawing, method: Method, has_pca: bool) -> None:
    """The progress of the chosen method, until it is finished, or until PCA can replace it."""
    maps, person = caching.maps(), caching.person()

    def is_over() -> bool:
        is_awaited = chosen.is_at_work and not chosen.is_stopped_for(person)
        return not is_awaited or (not has_pca and pca.is_complete)

    def text() -> str:
        name, notice = METHOD_NAMES[method], " Until then, this is PCA." if has_pca else ""
        if method in ("umap", "pacmap") and not numba_work.is_ready(method):
            return f"**{name} is getting ready**, once after the server's start (about 20 seconds).{notice}"
        return f"**{name} is being drawn.**{notice}"

    progress.bar(
        text, lambda: chosen.fraction, is_over, stop_key="map_stop", stop=maps.stop, arguments=(chosen, person)
    )


def colours(token_set: TokenSet, place: ControlRow, layer_allowed: bool = False, is_joint: bool = False) -> str:
    """What colours show: "layer", "sentence", "token", "word", "position", "special", "frequency", or a label.

    By default the layer in a joint map; else the first label, or the sentence, or for a single sentence the word.
    """
    names = {"layer": "Layer"} if layer_allowed else {}
    names |= {
        "sentence": "Sentence",
        "token": "Token",
        "word": "Word",
        "position": "Position",
        "frequency": "Frequency in this set",
        "special": "Special or not",
    }
    names |= {label: label for label in token_set.labels}
    if state.get("map_colour") not in names:
        state.put("map_colour", "")  # a label of another set of tokens, or a wrong link
    own = "sentence" if len({token.sentence for token in token_set.tokens}) > 1 else "word"
    first = "layer" if is_joint else next(iter(token_set.labels), own)
    with place.panel:
        return controls.pick("map_colour", "Colour by", names, to_widget=lambda chosen: chosen or first)


def coloured(token_set: TokenSet, by: str) -> Colours:
    """The colours of a set's tokens."""
    if by in NUMBERS and by not in token_set.labels:
        return Colours(by, numbers=token_set.number(by))
    return Colours(by, groups=token_set.category(by), order=PAIR_GROUPS if _is_pair(token_set, by) else ())


def _is_pair(token_set: TokenSet, by: str) -> bool:
    """Whether colours show the two texts of a pair (and not a column of a corpus that has this name)."""
    return by == PAIR_LABEL and set(token_set.labels.get(by, ())) <= set(PAIR_GROUPS)
