"""What the Map page maps and how: the tokens, the method and its options, the colours."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

import streamlit as st

from components.analysis.maps import numba_work, token_set
from components.analysis.maps.projection import FEW, MapOptions, Method, Metric, check_count
from components.charts.scatter import Colours
from dashboard import caching, state
from dashboard.corpora import current
from dashboard.jobs import progress
from dashboard.ui import controls, messages

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from components.analysis.maps.drawing import Drawing, MapLayers
    from components.analysis.maps.token_set import TokenSet
    from components.jobs import IsCancelled, Job, ReportProgress
    from components.model.backend import Backend
    from components.model.embedding.token_vectors import TokenVectors
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
        if messages.no_sentences():
            return None
        trace = controls.current_trace(backend)
        messages.truncation(trace.sentences)
        return token_set.of_trace(trace, special)
    corpus = current.corpus()
    with right:
        count = _sample_size()
    job = request_tokens(backend, corpus.content_hash, corpus.texts, corpus.name, max_tokens=count)
    if not ready(job):
        return None
    taken, there = len(job.result.tokens), job.result.candidates
    which = f"All {there:,} tokens of" if taken == there else f"{taken:,} of {there:,} tokens, at random, of"
    st.caption(f"{which} **{messages.escape(corpus.name)}**. Choose another corpus on the Search page.")
    return corpus_tokens(job, corpus.texts, label_columns(corpus))


def request_tokens(
    backend: Backend, corpus: str, texts: Sequence[str], name: str, word: str = "", max_tokens: int = 2_000
) -> Job:
    """The job of a sample of a corpus's tokens, or of a word's occurrences, at all layers; its result: TokenVectors.

    `corpus` names exactly these texts, by a hash of their content; `name` is for people.
    """

    def work(report_progress: ReportProgress, is_cancelled: IsCancelled) -> TokenVectors:
        return backend.token_vectors(
            texts,
            word=word or None,
            max_tokens=max_tokens,
            folder=caching.token_folder(),
            progress=report_progress,
            is_cancelled=is_cancelled,
        )

    key = (backend.spec.key, backend.revision, corpus, word, str(max_tokens))
    doing = f"Looking for “{word}” in {name}" if word else f"Reading the tokens of {name}"
    return caching.token_jobs().request(key, doing, work, person=caching.person(), total=len(texts))


def corpus_tokens(job: Job, texts: Sequence[str], labels: Mapping[str, Sequence[str]]) -> TokenSet:
    """The tokens of a finished job."""
    return token_set.of_corpus(cast("tuple[str, ...]", job.key), job.result, texts, labels)


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
    return int(controls.bind("map_tokens", st.select_slider, "How many", options=options, to_widget=nearest))


def ready(job: Job) -> bool:
    """Whether a job has its vectors; else its progress, or its error, is drawn."""
    return progress.ready(
        caching.token_jobs(),
        job,
        doing="reading tokens",
        stop_key="tokens_stop",
        again_key="tokens_again",
        unit="sentences",
    )


def options(count: int) -> MapOptions:
    """The method, and its options in a panel. PCA is what few tokens get unless somebody chose."""
    chosen = state.get("map_method")
    method = ("pca" if count <= FEW else "umap") if chosen == "auto" else chosen
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        help_text = caching.glossary()["projection"]
        controls.choice("map_method", "Map by", METHOD_NAMES, help_text, to_widget=lambda _: method)
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
    shown: TokenSet, wanted_options: MapOptions, wanted: Sequence[MapLayers]
) -> tuple[Drawing, MapOptions] | None:
    """The maps, and the options they are of: PCA's stand in while slower ones are on their way (a notice says so).

    None while there is nothing to draw yet: its progress, or why not, stands there.
    """
    with st.container(key="map_notice"):  # always there, so that nothing below it moves to another place
        return _drawing(shown, wanted_options, wanted)


def _drawing(
    shown: TokenSet, wanted_options: MapOptions, wanted: Sequence[MapLayers]
) -> tuple[Drawing, MapOptions] | None:
    maps, person = caching.maps(), caching.person()
    if wanted_options.method == "umap":
        numba_work.warm_up()
    wanted_drawing = maps.request(shown, wanted_options, wanted, person)
    # A fit that is under way goes on for a while after a stop, but nobody has to wait for it.
    is_stopped = wanted_drawing.is_stopped_for(person)
    if wanted_drawing.wait(0.0 if is_stopped else PCA_WAIT if wanted_options.method == "pca" else 0.5):
        return wanted_drawing, wanted_options
    pca_options = replace(wanted_options, method="pca")
    pca_drawing = wanted_drawing
    if wanted_options.method != "pca":
        pca_drawing = maps.request(shown, pca_options, wanted, person)
    stands_in = pca_drawing is not wanted_drawing and pca_drawing.wait(PCA_WAIT)
    if wanted_drawing.error is None and not is_stopped:
        _progress(wanted_drawing, pca_drawing, wanted_options.method, stands_in)
    else:
        if is_stopped:
            st.info(f"{METHOD_NAMES[wanted_options.method]} was stopped" + ("; this is PCA." if stands_in else "."))
        else:
            messages.explain(wanted_drawing.error or RuntimeError("no error given"), "drawing the map")
        progress.again("Draw it again", "map_again", maps.forget, (wanted_drawing, person))
    return (pca_drawing, pca_options) if stands_in else None


def _progress(wanted_drawing: Drawing, pca_drawing: Drawing, method: Method, stands_in: bool) -> None:
    """What is being drawn, drawn again twice a second until it is there, or until PCA can stand in."""
    maps, person = caching.maps(), caching.person()

    def is_over() -> bool:
        is_awaited = wanted_drawing.is_at_work and not wanted_drawing.is_stopped_for(person)
        return not is_awaited or (not stands_in and pca_drawing.is_complete)

    def text() -> str:
        name, meanwhile = METHOD_NAMES[method], " Meanwhile this is PCA." if stands_in else ""
        if method in ("umap", "pacmap") and not numba_work.is_ready(method):
            return f"**{name} is getting ready**, once after the server's start (some 20 seconds).{meanwhile}"
        return f"**{name} is being drawn.**{meanwhile}"

    progress.bar(
        text,
        lambda: wanted_drawing.fraction,
        is_over,
        stop_key="map_stop",
        stop=maps.stop,
        arguments=(wanted_drawing, person),
    )


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
    return controls.pick("map_colour", "Colour by", names, to_widget=lambda chosen: chosen or first)


def coloured(shown: TokenSet, by: str) -> Colours:
    """The colours of a set's tokens."""
    if by in token_set.NUMBERS and by not in shown.labels:
        return Colours(by, numbers=shown.number(by))
    return Colours(by, groups=shown.category(by))
