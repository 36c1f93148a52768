"""What the Map page maps and how: the tokens, the method and its options, the colours."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import streamlit as st

from components.analysis.maps import numba_work, token_set
from components.analysis.maps.projection import FEW, MapOptions, Method, Metric, check_count
from components.charts.scatter import Colours
from dashboard import caching, state
from dashboard.corpora import current
from dashboard.ui import controls, messages, wording

if TYPE_CHECKING:
    from collections.abc import Sequence

    from components.analysis.maps.map_shelf import Drawing
    from components.analysis.maps.token_set import TokenSet
    from components.model.backend import Backend
    from components.model.token_shelf import TokenJob
    from components.retrieval.corpora.corpus import Corpus

METHOD_NAMES = {"umap": "UMAP", "pca": "PCA", "tsne": "t-SNE", "pacmap": "PaCMAP"}
SAMPLES = (500, 2_000, 5_000, 20_000, 50_000)
MOST_LABELS = 70  # values of a column that may be a colour
PCA_WAIT = 3.0  # seconds; PCA takes long for many tokens, or when its library is imported by it
OUR_NAMES = {
    *("layer", "sentence", "token", "word", "position", "special", "frequency", "number", "group", "sense"),
    *("x", "y", "z", "before", "after", "cosine"),
}


def tokens(backend: Backend) -> TokenSet | None:
    """The tokens to map, by the person's choice; None while those of a corpus are on their way (progress is drawn)."""
    left, right = st.columns([2, 3], vertical_alignment="bottom")
    with left:
        source = controls.choice("map_source", "Tokens of", {"sentences": "Your sentences", "corpus": "A corpus"})
    if source == "sentences":
        with right:
            special = controls.switch("include_special", "Special tokens", caching.glossary()["special token"])
        if messages.needs_sentences():
            return None
        trace = controls.current_trace(backend)
        messages.truncation(trace.sentences)
        return token_set.of_trace(trace, special)
    corpus = current.corpus()
    with right:
        count = _sample_size()
    job = caching.token_shelf().request(backend, corpus.content_hash, corpus.texts, max_tokens=count)
    if not ready(job, f"Reading the tokens of {messages.escape(corpus.name)}"):
        return None
    assert job.vectors is not None
    taken, there = len(job.vectors.tokens), job.vectors.found
    amount = f"All {there:,} tokens of" if taken == there else f"{taken:,} of {there:,} tokens, at random, of"
    st.caption(f"{amount} **{messages.escape(corpus.name)}**. Choose another corpus on the Search page.")
    return token_set.of_corpus(job.key, job.vectors, corpus.texts, label_columns(corpus))


def label_columns(corpus: Corpus) -> dict[str, Sequence[str]]:
    """The columns of a corpus with few enough values to colour by; none hides a name of ours."""
    return {
        f"{name} (column)" if name in OUR_NAMES else name: column
        for name, column in corpus.columns.items()
        if 1 < len(set(column)) <= MOST_LABELS
    }


def _sample_size() -> int:
    def nearest(asked: int) -> int:
        return min(SAMPLES, key=lambda size: abs(size - asked))

    options = {size: f"{size:,}" for size in SAMPLES}
    return int(controls.bind("map_tokens", st.select_slider, "How many", options=options, shown=nearest))


def ready(job: TokenJob, doing: str) -> bool:
    """Whether a job has its vectors; else its progress, or its error, is drawn."""
    if job.finished.wait(0.4) and job.vectors is not None:
        return True
    if job.finished.is_set():
        if job.cancelled:
            st.info("Stopped.")
        else:
            messages.explain(job.error or RuntimeError("no error given"), "reading tokens")
        st.button("Try again", key="tokens_again", on_click=caching.token_shelf().forget, args=(job,))
        return False

    @st.fragment(run_every=0.5)
    def bar() -> None:
        if job.finished.is_set():
            st.rerun()
        left = job.seconds_left
        text = f"{doing}: {job.done:,} of {job.total:,} sentences"
        st.progress(
            min(1.0, job.done / max(1, job.total)),
            text=text + (f" · {wording.duration(left)} left" if left is not None else ""),
        )
        st.button("Stop", key="tokens_stop", icon=":material/stop:", on_click=job.cancel.set)

    bar()
    return False


def options(count: int) -> MapOptions:
    """The method, and its options in a panel. PCA is what few tokens get unless somebody chose."""
    chosen = state.get("map_method")
    method = ("pca" if count <= FEW else "umap") if chosen == "auto" else chosen
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        help_text = caching.glossary()["projection"]
        controls.choice("map_method", "Map by", METHOD_NAMES, help_text, shown=lambda _: method)
        dims = controls.choice("map_dims", "Dimensions", {"2": "2-D", "3": "3-D"})
        panel = st.popover("Options", icon=":material/tune:")
    with panel:
        neighbors = controls.number(
            "map_neighbors",
            "Neighbours (in t-SNE: perplexity)",
            2,
            200,
            15,
            "How many neighbours each token should keep: few show small groups, many the large shape.",
        )
        min_dist = controls.number(
            "map_min_dist",
            "Least distance, in hundredths (UMAP)",
            0,
            99,
            10,
            "How tightly UMAP may pack points: 0 makes dense clumps.",
        )
        metric = controls.choice("map_metric", "Near by", {"cosine": "Cosine", "euclidean": "Euclidean distance"})
        seed = controls.number("map_seed", "Seed", 0, 9_999, 0, "The same seed gives the same picture.")
    if count <= FEW and chosen == "auto":
        st.caption(
            f"With {FEW} tokens or fewer PCA shows as much as the others, and bends nothing. Try them all the same."
        )
    check_count(count, cast(Method, method))
    return MapOptions(cast(Method, method), int(dims), neighbors, min_dist / 100, cast(Metric, metric), seed)


def drawing(
    shown: TokenSet, wanted_options: MapOptions, wanted: Sequence[int | tuple[int, int]]
) -> tuple[Drawing, MapOptions] | None:
    """The maps, and the options they are of: PCA's stand in while slower ones are on their way (a notice says so).

    None while there is nothing to draw yet: its progress, or why not, stands there.
    """
    with st.container(key="map_notice"):  # always there, so that nothing below it moves to another place
        return _drawing(shown, wanted_options, wanted)


def _drawing(
    shown: TokenSet, wanted_options: MapOptions, wanted: Sequence[int | tuple[int, int]]
) -> tuple[Drawing, MapOptions] | None:
    shelf = caching.map_shelf()
    if wanted_options.method == "umap":
        numba_work.warm_up()
    drawing = shelf.request(shown, wanted_options, wanted)
    if _wait(drawing, wanted, PCA_WAIT if wanted_options.method == "pca" else 0.5):
        return drawing, wanted_options
    instead = replace(wanted_options, method="pca")
    quick = drawing if wanted_options.method == "pca" else shelf.request(shown, instead, wanted)
    there = quick is not drawing and _wait(quick, wanted, PCA_WAIT)
    stopped = (
        drawing.cancelled or drawing.cancel.is_set()
    )  # a fit that is under way goes on, but nobody has to wait for it
    if drawing.error is None and not stopped:
        _progress(drawing, quick, wanted, wanted_options.method, there)
    else:
        if stopped:
            st.info(f"{METHOD_NAMES[wanted_options.method]} was stopped" + ("; this is PCA." if there else "."))
        else:
            messages.explain(drawing.error or RuntimeError("no error given"), "drawing the map")
        st.button("Draw it again", key="map_again", icon=":material/refresh:", on_click=shelf.forget, args=(drawing,))
    return (quick, instead) if there else None


def _wait(drawing: Drawing, wanted: Sequence[int | tuple[int, int]], seconds: float) -> bool:
    """Whether the maps are there within this time."""
    until = time.monotonic() + seconds
    while not drawing.has(wanted) and drawing.error is None and time.monotonic() < until:
        time.sleep(0.02)
    return drawing.has(wanted)


def _progress(
    drawing: Drawing, quick: Drawing, wanted: Sequence[int | tuple[int, int]], method: Method, there: bool
) -> None:
    """What is being drawn, drawn again twice a second until it is there, or until PCA can stand in."""

    @st.fragment(run_every=0.5)
    def bar() -> None:
        if drawing.has(wanted) or drawing.idle.is_set() or drawing.cancel.is_set() or (not there and quick.has(wanted)):
            st.rerun()
        name, meanwhile = METHOD_NAMES[method], " Meanwhile this is PCA." if there else ""
        if method in ("umap", "pacmap") and not numba_work.is_ready(method):
            text = f"**{name} is getting ready**, once after the server's start (some 20 seconds).{meanwhile}"
        else:
            text = f"**{name} is being drawn.**{meanwhile}"
        st.progress(min(1.0, drawing.fraction), text=text)
        st.button("Stop", key="map_stop", icon=":material/stop:", on_click=drawing.cancel.set)

    bar()


def colours(shown: TokenSet, layer_allowed: bool) -> str:
    """What the points are coloured by: "layer", "sentence", "token", "word", "position", "special", "frequency", a label."""
    plain = {
        "sentence": "Sentence",
        "token": "Token",
        "word": "Word",
        "position": "Position",
        "frequency": "Frequency here",
        "special": "Special or not",
    }
    names = ({"layer": "Layer"} if layer_allowed else {}) | plain | {name: name for name in shown.labels}
    if state.get("map_colour") not in names:
        state.put("map_colour", "")  # of another set of tokens, or of a link that is wrong
    first = next(iter(names)) if layer_allowed else next(iter(shown.labels), "sentence")
    return controls.pick("map_colour", "Colour by", names, shown=lambda chosen: chosen or first)


def coloured(shown: TokenSet, by: str) -> Colours:
    """The colours of a set's tokens."""
    if by in token_set.NUMBERS and by not in shown.labels:
        return Colours(by, numbers=shown.number(by))
    return Colours(by, groups=shown.category(by))
