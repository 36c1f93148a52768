"""Retrieve and re-rank: what changes, and what each stage costs."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from components import numbers
from components.charts.retrieval import reranking as charts
from components.charts.retrieval.reranking import CostLine
from components.model.catalog import EMBEDDED_CROSS_ENCODER_KEY, EMBEDDED_KEY
from components.retrieval.rankings.ranking import Ranking
from components.shown_code.code import NoCode
from dashboard import navigation, state
from dashboard.corpora import current, marks
from dashboard.jobs import reranking
from dashboard.jobs.embedding import EmbedRequest
from dashboard.jobs.reranking import STAGE_NAMES, StageKind
from dashboard.jobs.stored import cross_looks
from dashboard.ui import browser, controls, figures, messages, model_gate, token_matches
from dashboard.ui.waiting import before_work, frame
from dashboard.ui.wording import POOLING_NAMES, counted, duration, shortened
from dashboard.views.pairs import rerank_quality

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from components.arrays import Int64
    from components.charts.retrieval.reranking import Kind
    from components.model.backend import Backend
    from components.retrieval.corpora.corpus import Corpus
    from dashboard.jobs.reranking import FirstStage, PassCosts, SecondStage, TimedScores
    from dashboard.views.pairs.rerank_quality import CollectionLook

# Headlines of the demo corpus, and what the second stage does to them with the included models and 10 to 20 candidates: it
# moves the correct answer up to rank 1 (repaired), or down from it (harmed).
REPAIRED = ("Title slips away by one run", "Ninety-four and faster than ever")
HARMED = ("Army rescues villagers by boat", "Voters stay away in record numbers")
READY_QUERIES = (*REPAIRED, *HARMED, "Hikers flee as sleeping peak wakes")
EFFECTS: dict[StageKind, dict[str, str]] = {
    "rerank": dict.fromkeys(REPAIRED, "repaired") | dict.fromkeys(HARMED, "harmed"),
    "maxsim": {READY_QUERIES[0]: "repaired", HARMED[1]: "harmed", READY_QUERIES[-1]: "repaired"},
}
READY_CHARACTERS, OWN_CHARACTERS = 20, 40  # of a ready-made query in the row, and of one of a person's own corpus
_CORPUS = "_rerank_corpus"  # session key: the corpus that was last shown
EFFECTS_HOLD = range(10, 21)  # candidates
EFFECTS_NOTE = "It repairs the first two ready-made queries and harms the next two."
TRAINED_NOTE = (
    "The included cross-encoder was trained to grade how similar two sentences are (STS-B), not to answer queries. "
    "Cross-encoders trained on search, such as ms-marco-MiniLM, can be chosen in the sidebar."
)
# Reimers and Gurevych 2019, section 1: the most similar pair of 10,000 sentences, by BERT on one V100 GPU.
PUBLISHED_TEXTS, PUBLISHED_JOINT, PUBLISHED_SINGLE = 10_000, 65 * 3_600.0, 5.0
SHOWN = 10  # candidates, of which the others come with a click
SHOWN_ON_PROJECTOR = 7
SHOWN_CHARACTERS = 200  # of a text
_WHY_SO_LONG: dict[StageKind, str] = {
    "rerank": "the cross-encoder reads the query with each candidate",
    "maxsim": "here the model reads each candidate again for its token vectors; where an index keeps them, they are only "
    "compared, which takes the time that “Quality and time” shows",
}
SECOND_NAMES: dict[StageKind, str] = {"rerank": "cross-encoder", "maxsim": "MaxSim"}
SIZES = np.unique(np.geomspace(10, 1_000_000, 51).round().astype(np.int64))


@dataclass(frozen=True, eq=False)
class _TwoStages:
    """The candidates of a query before and after re-ranking."""

    corpus: Corpus
    query: str
    first: FirstStage
    scores: TimedScores
    reranked: Ranking
    stage: SecondStage
    correct: frozenset[int]  # rows of the corpus that are known to be correct answers

    @property
    def before(self) -> Int64:
        """The rank of each candidate by vectors, [candidate], the best now first."""
        return self.first.ranking.places(self.reranked.best)

    @property
    def moves(self) -> list[tuple[int, int]]:
        """Rank before and after of each correct answer among the candidates, the best now first."""
        rows = zip(self.before.tolist(), self.reranked.best.tolist(), strict=True)
        return [(before, rank) for rank, (before, row) in enumerate(rows, start=1) if row in self.correct]


def intro() -> str:
    """What the chosen second stage does."""
    return "The vectors find some sentences; " + (
        "MaxSim sorts them again: each token of the query looks for its best token in the text."
        if state.get("second_stage") == "maxsim"
        else "a cross-encoder sorts them again: it reads the query together with each."
    )


def rerank(backend: Backend) -> None:
    """Draw both orders with lines between them, what MaxSim does over all queries, and the cost of both stages."""
    messages.cross_encoder_note([backend])
    corpus = current.corpus()
    panel = _controls()
    query = str(state.get("query"))
    if not query.strip():
        below = ", or choose a query below" if _ready_queries() else ""
        st.info(f"**No query yet.** Type a few words{below}.", icon=":material/edit:")
        _ready_made()
        return
    stage = model_gate.second_stage(state.get("second_stage"), backend)
    if stage is None:
        return
    first = reranking.first_stage(backend, corpus, query, "rerank")
    before_work.other_layers(EmbedRequest.of_session(backend), corpus, "rerank")
    with panel:
        model_gate.label_choice(stage)
    left, right = st.columns([5, 2], gap="medium")
    line, lists = left.container(), left.container()  # beside each other the lines of both pictures are one row
    scores: TimedScores | None = None
    with left, frame.figure("second_stage"):  # the first order does not wait for the second
        scores = reranking.first_scored(stage, corpus, query, first.ranking.best, state.get("k"), "pairs")
    sets: list[CollectionLook] = []
    if stage.kind == "maxsim":
        with right:
            chart = st.container()
            sets = rerank_quality.measured(stage, first.layer, first.pooling, corpus)
            with chart:
                rerank_quality.picture(sets)
    if scores is None:
        with lists:
            draw_lists(hits_of(first.ranking, corpus, state.get("k")), None, frozenset(), stage)
        with left:
            _ready_made()
        return
    rows = first.ranking.best[: len(scores.scores)]
    reranked = Ranking.of_candidates(stage.title, stage.unit, scores.scores, rows, len(corpus))
    orders = _TwoStages(corpus, query, first, scores, reranked, stage, _correct_answers(corpus, query))
    with line:
        _changes(orders, sets)
    with lists:
        draw_lists(hits_of(first.ranking, corpus, len(rows)), _last_order(orders), orders.correct, stage)
    with left:
        _pieces(orders)
        _ready_made()
    if stage.kind == "rerank":
        with right:
            _about_cross_encoder(stage)
    _times(orders)
    if stage.kind == "rerank":
        _cost_curve(backend)


def _controls() -> DeltaGenerator:
    ready, query = _ready_queries(), str(state.peek("query"))
    # One of the demo says nothing of another corpus, once that is chosen; what an address has, or is typed, stays.
    key = state.peek("corpus")
    is_other = st.session_state.get(_CORPUS, key) != key
    st.session_state[_CORPUS] = key
    is_of_demo = is_other and query in READY_QUERIES and not current.own_rows(current.corpus(), query)
    if "query" not in st.session_state or is_of_demo:
        state.put("query", ready[0] if ready else "")  # a query whose correct answer is known
    with controls.row():
        controls.bind("query", st.text_input, "Query", max_chars=1_000, placeholder="Type a query and press Enter")
        stages = {kind: STAGE_NAMES[kind] for kind in ("maxsim", "rerank")}
        controls.choice("second_stage", "Second stage", stages, show_label=False)
        panel = controls.options()
    with panel:
        controls.number("k", "Candidates (k)", 1, reranking.MOST_CANDIDATES, 10)
        st.caption("The candidates are the first k hits of the model's last layer by the cosine.")
    return panel


def _ready_queries() -> tuple[str, ...]:
    """Queries whose correct answers are known: headlines of the demo corpus, or the first ones of a person's own."""
    return (
        current.own_queries(current.corpus(), len(READY_QUERIES), named=False) if state.get("corpus") else READY_QUERIES
    )


def _ready_made() -> None:
    """Ready-made queries, each with what the second stage does to it where that is known."""
    kind = state.get("second_stage")
    effects = EFFECTS[kind] if is_included(kind) and state.get("k") in EFFECTS_HOLD else {}
    is_own = bool(state.get("corpus"))
    texts = {
        query: f"{effects[query]}: {shortened(query, READY_CHARACTERS)}"
        if query in effects
        else messages.escape(shortened(query, OWN_CHARACTERS))
        if is_own
        else query
        for query in _ready_queries()
    }
    controls.ready_row(
        "Ready-made queries",
        texts,
        state.get("query"),
        lambda query: state.put("query", query),
        key="w_ready_pair_query",
    )


def is_included(kind: StageKind) -> bool:
    """Whether what was measured for this page holds: with the included models, the demo corpus and the default length."""
    scorer = EMBEDDED_CROSS_ENCODER_KEY if kind == "rerank" else state.get("cross_encoder")  # MaxSim needs none
    chosen = (state.get("model"), state.get("cross_encoder"), state.get("corpus"), state.get("max_length"))
    return chosen == (EMBEDDED_KEY, scorer, state.default("corpus"), state.default("max_length"))


def _included_note(kind: StageKind, k: int) -> str:
    """What is known of the included cross-encoder besides its quality, as far as it holds for the session's choices."""
    if kind != "rerank" or state.get("cross_encoder") != EMBEDDED_CROSS_ENCODER_KEY:
        return ""
    return f"{EFFECTS_NOTE} {TRAINED_NOTE}" if is_included(kind) and k in EFFECTS_HOLD else TRAINED_NOTE


def _correct_answers(corpus: Corpus, query: str) -> frozenset[int]:
    """The rows of the sentences that belong to the query, and of those marked as relevant on the Search page."""
    judged = marks.judgements(corpus).of(query)
    rows = {*current.own_rows(corpus, query)} | {row for row, relevant in judged.items() if relevant}
    return frozenset(int(corpus.first_rows[row]) for row in rows)


def _kinds(orders: _TwoStages) -> list[Kind]:
    corpus = orders.corpus
    topics = current.topics(corpus)
    wanted = set() if topics is None else {topics[row] for row in orders.correct}
    return [
        "correct" if row in orders.correct else "topic" if topics is not None and topics[row] in wanted else "other"
        for row in orders.reranked.best.tolist()
    ]


def _message(orders: _TwoStages) -> str:
    before, moves = orders.before, orders.moves
    if not orders.correct:
        changes = before - np.arange(1, len(before) + 1)
        rank = int(np.argmax(np.abs(changes)))
        if not changes[rank]:
            return "Re-ranking changes no rank."
        text = messages.escape(shortened(orders.corpus.texts[orders.reranked.best[rank]], 60))
        return (
            f"The largest change: “{text}” moves from rank {before[rank]} to {rank + 1}. No correct answer of this query "
            "is known: mark one with ✓ on the Search page."
        )
    if not moves:
        return (
            f"The correct answer is not among the first {len(before)} hits: re-ranking cannot find it. Increase k, or "
            "improve the first stage."
        )
    old, new = map(min, zip(*moves, strict=True))  # the best one before and the best one after can be two
    subject = "correct answer" if len(orders.correct) == 1 else "best correct answer"
    if old == new:
        return f"Here the {subject} stays at rank {new}."
    return f"Here the {subject} {'rises' if new < old else 'falls'} from rank {old} to {new}."


def _changes(orders: _TwoStages, sets: Sequence[CollectionLook]) -> None:
    reranked, stage, corpus = orders.reranked, orders.stage, orders.corpus
    second = SECOND_NAMES[stage.kind]
    texts = [corpus.texts[row] for row in reranked.best]
    table = _table(orders)
    over_all = (
        cross_looks.finding() if stage.kind == "rerank" and is_included(stage.kind) else rerank_quality.finding(sets)
    )
    figures.above(
        f"{_message(orders)} {over_all}".strip(),
        key="rank_changes",
        table=lambda: table,
        code=stage.code(orders.query, texts),
        title=f"From the rank by vectors to that by {second}",
        read=both_orders(
            len(texts),
            f"of {len(corpus):,} sentences by vectors (layer {orders.first.layer}, {POOLING_NAMES[orders.first.pooling]}, "
            "cosine)",
            stage,
        )
        + " The blue line is the correct answer's. A dotted end names the place of a text that stood further below.",
        not_shown="Sentences outside the candidates: the second stage never sees them, so that it cannot repair what the first "
        "stage did not find.",
        chart=charts.rank_changes(
            orders.before, _kinds(orders), texts, first="vectors", second=second, scale=controls.scale()
        ),
        alt=f"Lines from the rank of each of {len(texts)} candidates by vectors to its rank by {second}",
    )


def both_orders(count: int, by: str, stage: SecondStage) -> str:
    """How a picture of two orders is read; `by`: what gave the first one."""
    return (
        f"At the left stand the first {counted(count, 'hit')} {by}, at the right is their order by "
        f"{messages.escape(stage.title)}. A line leads from the place of each text to its new one."
    )


def _last_order(orders: _TwoStages) -> list[dict[str, object]]:
    """The candidates in their new order, as the lists show them."""
    hits = hits_of(orders.reranked, orders.corpus, len(orders.before))
    return [hit | {"before": rank} for hit, rank in zip(hits, orders.before.tolist(), strict=True)]


def hits_of(ranking: Ranking, corpus: Corpus, count: int) -> list[dict[str, object]]:
    """The first hits, as the lists show them."""
    return [
        {
            "rank": rank,
            "row": int(row),
            "text": shortened(corpus.texts[row], SHOWN_CHARACTERS),
            "score": numbers.number(float(score), 2),
        }
        for rank, (row, score) in enumerate(zip(ranking.best[:count], ranking.hit_scores[:count], strict=True), start=1)
    ]


def draw_lists(
    before: Sequence[Mapping[str, object]],
    after: Sequence[Mapping[str, object]] | None,
    correct: frozenset[int],
    stage: SecondStage,
    query: str = "",
    chosen: int | None = None,
) -> None:
    """Both orders; without the second one, that it is being computed.

    A `query` that is chosen elsewhere is named in their title. The row `chosen` has a frame.
    """
    untrained = "" if stage.is_trained_max_sim else ", not trained for it"
    of_pieces = (
        ", one score for both texts: higher is better" if stage.kind == "rerank" else f", token by token{untrained}"
    )
    browser.reranked_component()(
        key="reranked",
        data={
            "scale": controls.list_scale(),
            "shown": SHOWN if controls.scale() == 1 else SHOWN_ON_PROJECTOR,
            "titles": [
                ["Vectors", f" for “{query}”" if query else ", one cosine a text"],
                [STAGE_NAMES[stage.kind], of_pieces],
            ],
            "before": before,
            "after": after,
            "correct": sorted(correct),
            "chosen": chosen,
            "waiting": f"Looking at {counted(len(before), 'candidate')} again …",
        },
    )


def _pieces(orders: _TwoStages) -> None:
    """What each piece of the query takes from the text that matters: the correct answer, or else the first one now."""
    stage = orders.stage
    if stage.kind != "maxsim" or stage.is_trained_max_sim:
        return
    rows = orders.reranked.best.tolist()
    row = next((row for row in rows if row in orders.correct), rows[0])
    matches = token_matches.of_texts(
        stage.backend, orders.query, orders.corpus.texts[row], stage.layer, stage.max_length
    )
    if matches is None:
        return
    similarity = matches.similarity
    chips = []
    for place, (position, best) in enumerate(zip(similarity.query_positions, similarity.best, strict=True)):
        cosine = float(similarity.matrix[place, best])
        piece = html.escape(matches.query.tokens[position].piece)
        taken = html.escape(matches.document.tokens[similarity.document_positions[best]].piece)
        strength = round(34 * max(0.0, min(1.0, cosine)))
        chips.append(
            f'<span style="--strength: {strength}%"><b>{piece}</b> → {taken} <i>{numbers.number(cosine, 2)}</i></span>'
        )
    text = html.escape(shortened(orders.corpus.texts[row], 60))
    figures.markup(
        f'<div class="bi-taken"><p>Each piece of the query takes its nearest token of “{text}”; the sum is '
        f"{numbers.number(similarity.total, 2)}</p>{''.join(chips)}</div>",
        "rerank_pieces",
    )


def _about_cross_encoder(stage: SecondStage) -> None:
    """What is known of the cross-encoder over all queries, and where more of it is shown."""
    if is_included(stage.kind):
        figures.note("**Correct answer first, over all queries**")
        rerank_quality.cost_lines(
            [rerank_quality.of_all(name, look, cross_looks.DEPTH) for name, look in cross_looks.looks().items()],
            "rerank_cross",
        )
    if note := _included_note(stage.kind, state.get("k")):
        st.caption(note)
    if st.button(
        "Where it disagrees with the vectors", key="to_disagreement", icon=":material/science:", type="tertiary"
    ):
        navigation.go_to("disagreement")


def _table(orders: _TwoStages) -> pd.DataFrame:
    rows, before, corpus = orders.reranked.best, orders.before, orders.corpus
    own = {
        "now": range(1, len(rows) + 1),
        "before": before,
        "correct": ["yes" if row in orders.correct else "" for row in rows.tolist()],
        "cosine": orders.first.ranking.hit_scores[before - 1].round(4),
        orders.stage.unit: orders.reranked.hit_scores.round(4),
        "number": rows,
        "text": [corpus.texts[row] for row in rows],
    }
    return pd.DataFrame(own | figures.corpus_columns(own, corpus.columns, rows))


def _times(orders: _TwoStages) -> None:
    figures.subheader("Time of each stage, on this server")
    first, scores, count = orders.first, orders.scores, len(orders.reranked.best)
    columns = st.columns(3)
    columns[0].metric("Embedding the query", _milliseconds(first.embed_seconds))
    columns[1].metric(f"Searching {len(orders.corpus):,} vectors", _milliseconds(first.search_seconds))
    columns[2].metric(f"Re-ranking {counted(count, 'candidate')}", _milliseconds(scores.seconds))
    alone = "" if scores.was_alone and first.was_alone else " Other jobs were at work meanwhile: alone it is faster."
    st.caption(
        "Measured on this server once the models are warm: the first pass of each, which takes longer, is not counted. The "
        f"first two are the median of {reranking.REPEATS} passes. Other programs make the times longer. The time of the "
        f"second stage grows with k: {_WHY_SO_LONG[orders.stage.kind]}"
        f".{alone}"
    )


def _milliseconds(seconds: float) -> str:
    milliseconds = 1_000 * seconds
    return f"{numbers.number(milliseconds, 2)} ms" if milliseconds < 10 else f"{milliseconds:,.0f} ms"


def _cost_curve(backend: Backend) -> None:
    figures.subheader("Why not compare all texts with a cross-encoder?")
    scorer = model_gate.cross_encoder()
    if scorer is None:
        return
    costs = reranking.pass_costs(backend, scorer, "rerank")
    lines = cost_lines(costs)
    published = [
        ("published: BERT, all pairs together, 65 hours", PUBLISHED_TEXTS, PUBLISHED_JOINT),
        ("published: SBERT, texts one by one, 5 seconds", PUBLISHED_TEXTS, PUBLISHED_SINGLE),
    ]
    here = {line.name: float(np.interp(PUBLISHED_TEXTS, SIZES, line.seconds)) for line in lines}
    single, joint, *_ = here.values()
    figures.figure(
        charts.pair_cost(SIZES, lines, published, "Time to compare all pairs of n texts"),
        key="pair_cost",
        code=NoCode("There is no code for it: these are times that this machine took when they were measured."),
        alt="Time to compare all pairs of n texts on logarithmic axes, by single and by joint passes",
        message=f"10,000 texts: about {duration(single)} by single passes here, and {_long_duration(joint)} by joint passes.",
        read="Vectors need n passes, one per text. A cross-encoder needs a pass for each of the n(n−1)/2 pairs, so that ten "
        "times as many texts take a hundred times as long. The marks are the published times for 10,000 sentences "
        "([Reimers and Gurevych 2019](https://arxiv.org/abs/1908.10084), one V100 GPU).",
        not_shown="Measured times of large n: the lines are the time of one pass on this server "
        f"({numbers.number(1e3 * costs.single, 2)} ms "
        f"single, {numbers.number(1e3 * costs.joint, 2)} ms joint, {1e6 * costs.max_sim:.0f} µs for MaxSim of two texts; "
        "sentences of about "
        "20 tokens) times the number of passes. The comparison of vectors itself is left out: it is far cheaper.",
        table=lambda: pd.DataFrame({"texts": SIZES} | {f"{line.name} (s)": line.seconds.round(4) for line in lines}),
    )
    if not costs.was_alone:
        st.caption("Other jobs were at work while the passes were timed: alone they are faster.")


def cost_lines(costs: PassCosts) -> list[CostLine]:
    """The time for all pairs of SIZES texts by each way of comparing them."""
    texts = SIZES.astype(np.float64)
    pairs = texts * (texts - 1) / 2
    return [
        CostLine("vectors: n single passes", texts * costs.single),
        CostLine("cross-encoder: n(n−1)/2 joint passes", pairs * costs.joint),
        CostLine("MaxSim: n single passes, n(n−1)/2 token matrices", texts * costs.single + pairs * costs.max_sim),
    ]


def _long_duration(seconds: float) -> str:
    return duration(seconds) if seconds < 2 * 86_400 else f"{seconds / 86_400:,.0f} days"
