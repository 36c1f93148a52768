"""Activation patching: an activation of one sentence is put into another."""

from __future__ import annotations

import html
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd
import streamlit as st

from components.analysis.why import patching
from components.analysis.why.patch_codes import Patch, is_code
from components.analysis.why.patching import Outcomes
from components.charts import theme
from components.charts.why import experiments as charts
from components.errors import InputError
from components.model.catalog import EMBEDDED_KEY
from components.shown_code.patching import effects
from dashboard import caching, settings, state
from dashboard.corpora import current
from dashboard.declared import table
from dashboard.jobs import embedding, interventions
from dashboard.jobs.embedding import EmbedRequest
from dashboard.jobs.interventions import Experiment
from dashboard.ui import browser, controls, figures, messages, model_gate
from dashboard.ui.waiting import before_work
from dashboard.ui.wording import counted
from dashboard.ui.wording import shortened as shorter
from dashboard.views.why import experiment_texts

if TYPE_CHECKING:
    from components.analysis.why.patching import MapKind
    from components.arrays import Float32
    from components.model.backend import Backend
    from components.shown_code.code import AnyCode
    from dashboard.jobs.interventions import Ready, Values

MAPS: dict[MapKind, str] = {"tokens": "Tokens by layer", "heads": "Heads", "parts": "Parts of blocks"}
VALUES: dict[Values, str] = {
    "patch": "A's activation",
    "zero": "zeros",
    "mean": f"the mean of {interventions.SAMPLE} sentences",
    "resample": "another sentence's",
}
OUTCOMES = {"cosine": "Cosine with C", "score": "Cross-encoder", "rank": "Rank for C"}
NUMBERS = {"share": "Share of the way, in %", "change": "Change"}
FIGURE = "experiments_map"
NO_EFFECT = 1e-4
CARRIES = 0.1  # of the way from B to A: what a token that is the same in both has to bring back to be named
MOST_OF_TEXT = 60  # characters of a sentence at an end of the way
STRONGEST = 5  # cells that are offered beside the map


@dataclass(frozen=True, eq=False)
class _Shown:
    """What the view is about, once the sentences are read."""

    experiment: Experiment
    prepared: Ready
    outcome: str
    corpus: Float32 | None  # the cosines of the corpus's texts with C, for ranks

    @property
    def is_patching(self) -> bool:
        return self.experiment.values == "patch"

    @property
    def noun(self) -> str:
        return {"cosine": "cosine", "score": "score", "rank": "rank"}[self.outcome]

    def outcomes(self, values: Float32) -> Outcomes:
        """The outcome of B's vectors, or logits [experiment, dim]."""
        outputs, label = self.prepared.outputs, self.experiment.label
        if self.outcome == "score":
            found = patching.score_outcomes(outputs[0, label], outputs[1, label], values[:, label])
        else:
            found = patching.cosine_outcomes(outputs[0], outputs[1], values, outputs[2])
            if self.outcome == "rank" and self.corpus is not None:
                found = patching.rank_outcomes(found, self.corpus)
        return found if self.is_patching else Outcomes(math.nan, found.of_b, found.patched)

    def number(self, value: float) -> str:
        """An outcome as people read it."""
        return theme.number(value, 0 if self.outcome == "rank" else 3)

    def change(self, value: float) -> str:
        """A change of the outcome, with its sign."""
        return theme.signed(value, 0 if self.outcome == "rank" else 3)

    def name(self, patch: Patch, short: bool = False) -> str:
        """An activation in words."""
        if patch.site == "head":
            return f"head {patch.index} of block {patch.number}"
        if patch.site != "layer":
            part = "attention output" if patch.site == "attention" else "feed-forward output"
            return f"{part} of block {patch.number}"
        position = patch.index or 0
        own = f"“{self.prepared.b.tokens[position].piece}”"
        if short:
            return f"{own} at layer {patch.number}"
        other = self.prepared.alignment.counterpart(position)
        piece = own if other is None else f"“{self.prepared.a.tokens[other].piece}”"
        place = "" if piece == own or not self.is_patching else f" in the place of {own}"
        return f"{piece if self.is_patching else own}{place} at layer {patch.number}"


def draw(backend: Backend) -> None:
    """Draw the choice of an experiment, the map of all experiments, and those that are chosen together."""
    if experiment_texts.is_page_outdated():
        st.rerun()
    if messages.no_sentences():
        return
    example = experiment_texts.example(backend) if experiment_texts.shows_example() else None
    ready_made = experiment_texts.on_display()
    with controls.row():
        experiment_texts.choose_ready_made(ready_made, backend)
        first, second = experiment_texts.two_sentences() if example is None else (example.a, example.b)
        kind = cast("MapKind", controls.pick("experiment_map", "Map", cast("dict[str, str]", MAPS)))
        c = str(state.get("third_text")).strip() or (first if ready_made is None else ready_made.c)
        panel = controls.options()
    with panel:
        outcome = controls.pick("experiment_outcome", "Outcome", OUTCOMES)
        values = cast(
            "Values",
            controls.pick(
                "experiment_values",
                "Put into B",
                cast("dict[str, str]", VALUES),
                caching.glossary()["activation patching"] + " " + caching.glossary()["ablation"],
            ),
        )
        if values == "resample":
            controls.number("experiment_seed", "Seed: which sentence", 0, settings.MOST_EXPERIMENT_SEED, 0)
        if values == "patch":
            controls.choice("experiment_numbers", "Numbers", NUMBERS)
        pooling = controls.sentence_vector([backend]) if outcome != "score" else backend.own_pooling
    if first == second and values == "patch":
        st.info("**A and B are the same sentence.** Choose two that differ in a word or a few, or a ready-made pair.")
        return
    seed = int(state.get("experiment_seed"))
    if outcome == "score":
        stage = model_gate.cross_encoder_stage()
        if stage is None:
            return
        experiment = Experiment(stage.backend, first, second, c, None, stage.label or 0, values, seed)
    else:
        experiment = Experiment(backend, first, second, c, pooling, 0, values, seed)
    experiment_texts.show((first, second, c), ready_made)
    _draw_experiment(experiment, kind, outcome)


def _draw_experiment(experiment: Experiment, kind: MapKind, outcome: str) -> None:
    try:
        if experiment.values == "patch":
            experiment_texts.advice(experiment.tokens(experiment.a), experiment.tokens(experiment.b))
        prepared = interventions.ready(experiment, "experiments")
    except InputError as problem:
        st.info(f"**{messages.escape(problem.problem)}** {messages.escape(problem.expected)} {problem.fix}")
        return
    alignment = prepared.alignment
    if not alignment.differing and alignment.is_complete and experiment.values == "patch":
        st.info("**A and B have the same tokens for this model.** Choose two sentences that differ in a token.")
        return
    corpus = None
    if outcome == "rank":
        corpus = _corpus_cosines(experiment, prepared)
        if corpus is None:
            return
    shown = _Shown(experiment, prepared, outcome, corpus)
    grid = patching.map_of(kind, experiment.backend.facts, len(prepared.b))
    cells = [
        patch for row in grid for patch in row if patch.site != "layer" or patch.index in prepared.source.positions
    ]
    values = interventions.results(
        experiment,
        prepared,
        [[patch] for patch in cells],
        f"{counted(len(cells), 'experiment')}",
        "experiments_map_job",
    )
    patches = _chosen(shown)
    # All of them together, then each alone.
    both = [patches, *([patch] for patch in patches)] if patches else []
    joint = interventions.results(experiment, prepared, both, "The chosen patches", "experiments_joint_job")
    _draw_results(shown, kind, grid, cells, shown.outcomes(values), patches, shown.outcomes(joint) if both else None)


def _draw_results(
    shown: _Shown,
    kind: MapKind,
    grid: list[list[Patch]],
    cells: list[Patch],
    found: Outcomes,
    patches: list[Patch],
    joint: Outcomes | None,
) -> None:
    pair = experiment_texts.on_display()
    is_included = state.get("model") == EMBEDDED_KEY  # of which the text speaks
    look_for = ""
    if pair is not None and is_included and shown.is_patching and shown.outcome == "cosine":
        look_for = f" {pair.look_for}"
    message = _headline(shown, kind, cells, found, patches, joint)
    texts = {
        "message": message,
        "read": _read(shown, kind, found) + look_for,
        "not_shown": _NOT_SHOWN[shown.is_patching],
    }
    named = _named(shown, cells, found)
    framed = patches or ([] if named is None else [cells[named]])
    _map(shown, kind, grid, cells, found, framed, **texts)
    has_way = _way(shown, cells, found, patches, joint)
    _list(shown, kind, cells, found, patches, joint, has_way)
    _notes(shown)


def _corpus_cosines(experiment: Experiment, prepared: Ready) -> Float32 | None:
    """The cosine of each text of the session's corpus with C; None without its vectors, which is said. Raises NotReady."""
    request, corpus = EmbedRequest.of_session(experiment.backend, exact=True), current.corpus()
    index = embedding.index_of(request, corpus, "experiments")
    before_work.other_layers(request, corpus, "experiments")
    if experiment.pooling is None:
        return None
    layer = experiment.backend.facts.layers
    if (layer, experiment.pooling) not in index.engines:
        st.info(
            "The corpus was not embedded with this sentence vector at the last layer. Choose another one in “Options”."
        )
        return None
    vector = prepared.outputs[2]
    engine = index.engine(layer, experiment.pooling)
    return engine.scores(np.pad(vector, (0, engine.vectors.shape[1] - len(vector))))


def _chosen(shown: _Shown) -> list[Patch]:
    """The chosen patches that this model and these sentences have."""
    codes: tuple[str, ...] = state.get("patches")
    patches = [Patch.parse(code) for code in codes]
    facts, positions = shown.experiment.backend.facts, shown.prepared.source.positions
    kept = [patch for patch in patches if patch.exists(facts, positions)]
    if len(kept) < len(patches):
        gone = ", ".join(patch.code for patch in patches if patch not in kept)
        state.refuse(
            "patches",
            tuple(patch.code for patch in kept),
            f"The patches {gone} are not available for these sentences and this model.",
        )
    return kept


def _add(code: str) -> None:
    experiment_texts.work_with_example()
    patches: tuple[str, ...] = state.get("patches")
    if code in patches:
        return
    if len(patches) >= settings.MOST_PATCHES:
        text = f"At most {settings.MOST_PATCHES} patches are made together: remove one first."
        state.notice(text, table.place_of("experiments"))
        return
    state.put("patches", (*patches, code))


def _remove(code: str) -> None:
    state.put("patches", tuple(other for other in state.get("patches") if other != code))


def _clicked(kind: MapKind) -> None:
    cell = browser.place_selected(FIGURE)
    # The patch itself is checked when it is drawn.
    if len(cell) == 2 and is_code(code := _code(kind, *cell)):
        _add(code)


def _code(kind: MapKind, row: int, column: int) -> str:
    """The code of a map's cell."""
    if kind == "parts":
        return f"{'f' if column else 'a'}{row}"
    return f"{'t' if kind == 'tokens' else 'h'}{row}.{column}"


def _headline(
    shown: _Shown, kind: MapKind, cells: list[Patch], found: Outcomes, patches: list[Patch], joint: Outcomes | None
) -> str:
    """What the chosen patches do together; without any, what a token carries that is the same in both, or the strongest."""
    if joint is not None:
        return _effect(shown, patches, joint, 0)
    if (
        kind == "tokens"
        and shown.is_patching
        and found.shares is not None
        and (shared := _carried(shown, cells, found))
    ):
        return shared
    best = _strongest(found)
    if best is None:
        return "No activation of this map can be replaced."
    return _effect(shown, [cells[best]], found, best)


def same_tokens(shown: _Shown, cells: Sequence[Patch], found: Outcomes) -> int | None:
    """The cell of a token that is the same in both which moves B most: between the first block and the last, and no special
    token, since before the first block equal tokens have equal vectors and the last one shares everything out."""
    shares = found.shares
    if shares is None:
        return None
    tokens, differing = shown.prepared.b.tokens, shown.prepared.alignment.differing
    last = shown.experiment.backend.facts.layers
    rows = [
        row
        for row, patch in enumerate(cells)
        if patch.index is not None
        and 0 < patch.number < last
        and patch.index not in differing
        and not tokens[patch.index].special
    ]
    return max(rows, key=lambda row: float(shares[row]), default=None)


def _carried(shown: _Shown, cells: list[Patch], found: Outcomes) -> str:
    """What one vector of a token that is the same in both brings back of the difference; empty where there is none."""
    best, prepared = same_tokens(shown, cells, found), shown.prepared
    differing = prepared.alignment.differing
    if best is None or found.shares is None or not differing:
        return ""
    share, patch = float(found.shares[best]), cells[best]
    if share >= CARRIES:
        own = messages.escape(prepared.b.tokens[patch.index or 0].piece)
        changed = [row for row, cell in enumerate(cells) if cell.index in differing]
        if not changed:
            way = f"**{100 * share:.0f} % of the way** to A (layer {patch.number})"
            return f"A's “{own}”, the same word in both, takes B {way}."
        most = changed[int(found.shares[changed].argmax())]
        counterpart = prepared.alignment.counterpart(cells[most].index or 0)
        word = messages.escape(prepared.a.tokens[counterpart or 0].piece)
        place = messages.escape(prepared.b.tokens[cells[most].index or 0].piece)
        told = (
            f"A's “{word}” for “{place}” takes B **{100 * found.shares[most]:.0f} % of the way** to A (layer "
            f"{cells[most].number}); “{own}”, in both, **{100 * share:.0f} %** (layer {patch.number})."
        )
        if not prepared.alignment.is_complete:  # its position may be another one too
            return told
        changed_words = f"“{word}”" if len(differing) == 1 else "the changed words"
        return f"{told} A's “{own}” differs there from B's: attention has mixed {changed_words} into it."
    strongest = _strongest(found)
    if strongest is None:
        return ""
    least = f"{100 * CARRIES:.0f} %"
    effect = _effect(shown, [cells[strongest]], found, strongest)
    return f"{effect} No token that is the same in both brings back {least} of it."


def _named(shown: _Shown, cells: list[Patch], found: Outcomes) -> int | None:
    """The cell of which the sentence above the map speaks where none is chosen."""
    best = same_tokens(shown, cells, found) if cells and cells[0].site == "layer" else None
    if best is None or found.shares is None or float(found.shares[best]) < CARRIES:
        return _strongest(found)
    return best


def _way(shown: _Shown, cells: list[Patch], found: Outcomes, patches: list[Patch], joint: Outcomes | None) -> bool:
    """The way from B to A as a line, with the place to which the chosen activations, or the named one, bring B, if there is."""
    if not shown.is_patching or found.shares is None or shown.outcome == "rank":
        return False
    if joint is not None and joint.shares is not None:
        share, value = float(joint.shares[0]), float(joint.patched[0])
        name = shown.name(patches[0], short=True) if len(patches) == 1 else f"{len(patches)} activations"
    else:
        best = _named(shown, cells, found)
        if best is None:
            return False
        share, value, name = float(found.shares[best]), float(found.patched[best]), shown.name(cells[best], short=True)
    at = 100 * min(max(share, 0.0), 1.0)
    a, b = (
        html.escape(shorter(shown.experiment.a, MOST_OF_TEXT)),
        html.escape(shorter(shown.experiment.b, MOST_OF_TEXT)),
    )
    side = "right" if at > 50 else "left"
    shift = theme.number(100 - at if at > 50 else at, 1)
    figures.markup(
        '<div class="bi-way" role="img" aria-label="The way from B to A">'
        f'<span class="name" style="{side}:{shift}%">B with A’s {html.escape(name)}: {shown.number(value)}</span>'
        f'<div><i style="width:{theme.number(at, 1)}%"></i><b style="left:{theme.number(at, 1)}%"></b></div>'
        f"<p><span>B: {shown.noun} {shown.number(found.of_b)}<br>{b}</span>"
        f"<span>A: {shown.noun} {shown.number(found.of_a)}<br>{a}</span></p></div>",
        "experiments_way",
    )
    return True


def _strongest(found: Outcomes) -> int | None:
    """The cell that moves B's outcome most: towards A where it is patched from A."""
    effects = np.abs(found.changes) if found.shares is None else found.shares
    return int(np.argmax(effects)) if len(effects) else None


def _effect(shown: _Shown, patches: list[Patch], found: Outcomes, row: int) -> str:
    """One sentence on what some patches do together."""
    b, patched = shown.number(found.of_b), shown.number(found.patched[row])
    what = messages.escape(shown.name(patches[0])) if len(patches) == 1 else f"these {len(patches)} activations"
    if shown.is_patching:
        what = f"Putting A's {what} into B" if len(patches) == 1 else f"Putting {what} of A into B"
        if found.shares is not None:
            a, share = shown.number(found.of_a), 100 * found.shares[row]
            way = f"{share:.0f} % of the way from {b} to {a}" if share >= 0 else f"away from {a}, from {b} to {patched}"
            return f"{what} moves the {shown.noun} **{way}**."
    else:
        is_one = len(patches) == 1
        by = {
            "zero": "zeros",
            "mean": f"{'its mean' if is_one else 'their means'} over {interventions.SAMPLE} sentences",
            "resample": f"{'that' if is_one else 'those'} of another sentence",
        }
        what = f"Replacing {what} by {by[shown.experiment.values]}"
    change = found.changes[row]
    if abs(change) < 0.0005:
        return f"{what} **does not change** the {shown.noun} of {b}."
    verb = "raises" if change > 0 else "lowers"
    if shown.outcome == "rank":
        verb = "changes"
    return f"{what} {verb} the {shown.noun} **from {b} to {patched}** ({shown.change(change)})."


def _patched_name(shown: _Shown, position: int) -> str:
    """A token of B, and below it the one of A that takes its place, where that is another."""
    own, alignment = shown.prepared.b.tokens[position].piece, shown.prepared.alignment
    other = alignment.counterpart(position) if position in alignment.differing else None
    return own if other is None else f"{own}\n→ {shown.prepared.a.tokens[other].piece}"


def _map(
    shown: _Shown,
    kind: MapKind,
    grid: list[list[Patch]],
    cells: list[Patch],
    found: Outcomes,
    framed: Collection[Patch],
    **texts: Any,
) -> None:
    """Draw the map with its `texts`, the cells of some patches `framed`."""
    as_share = found.shares is not None and state.get("experiment_numbers") == "share"
    effects = found.shares if as_share and found.shares is not None else found.changes
    number = {patch: row for row, patch in enumerate(cells)}
    values = np.full((len(grid), len(grid[0])), np.nan)
    hints = [["" for _ in row] for row in grid]
    for row, line in enumerate(grid):
        for column, patch in enumerate(line):
            if patch in number:
                values[row, column] = effects[number[patch]]
                hints[row][column] = _hint(shown, patch, found, number[patch])
    tokens, alignment = shown.prepared.b.tokens, shown.prepared.alignment
    if kind == "tokens":
        rows, row_title = [str(layer) for layer in range(len(grid))], "layer"
        columns = [
            _patched_name(shown, place) if shown.is_patching else item.piece for place, item in enumerate(tokens)
        ]
        column_title = "token of B" + (" (bold: → that of A)" if shown.is_patching else "")
    elif kind == "heads":
        rows, row_title = [str(block) for block in range(len(grid))], "block"
        columns, column_title = [str(head) for head in range(len(grid[0]))], "head"
    else:
        rows, row_title = [str(block) for block in range(len(grid))], "block"
        columns, column_title = ["attention", "feed-forward"], "output of"
    names = {"tokens": "each token at each layer", "heads": "each head", "parts": "each part of each block"}
    largest = float(np.nanmax(np.abs(values))) if np.isfinite(values).any() else 1.0
    figures.figure(
        charts.effect_map(
            values,
            rows,
            columns,
            "Share of the way from B to A, in %" if as_share else f"Change of the {shown.noun} with C",
            row_title=row_title,
            column_title=column_title,
            hints=hints,
            limit=1.0 if as_share else max(largest, 0.01),
            as_percent=as_share,
            digits=0 if shown.outcome == "rank" else 2,
            blue_adds=as_share,
            dark=controls.is_dark(),
            chosen=[
                (row, column) for row, line in enumerate(grid) for column, patch in enumerate(line) if patch in framed
            ],
            marked_columns=alignment.differing if kind == "tokens" and shown.is_patching else (),
        ),
        key=FIGURE,
        code=_shown_code(shown, kind, as_share),
        alt=f"Map of {len(cells)} experiments: the effect of {names[kind]} on the {shown.noun} with text C",
        table=lambda: _table(shown, cells, found),
        on_select=partial(_clicked, kind),  # a callback must not keep the results
        select_many=False,
        **texts,
    )


def _shown_code(shown: _Shown, kind: MapKind, as_share: bool) -> AnyCode:
    experiment, is_short = shown.experiment, shown.is_patching and shown.outcome == "cosine"
    texts, pooling = (experiment.a, experiment.b, experiment.c), experiment.pooling if is_short else None
    return effects(experiment.backend, texts, shown.prepared.alignment, pooling, kind, as_share)


def _hint(shown: _Shown, patch: Patch, found: Outcomes, row: int) -> str:
    name = shown.name(patch)
    lines = [
        name[0].upper() + name[1:],
        f"{shown.noun} {shown.number(found.patched[row])} ({shown.change(found.changes[row])})",
    ]
    if found.shares is not None:
        lines.append(f"{theme.number(100 * found.shares[row], 1)} % of the way from B to A")
    return "\n".join(lines)


def _table(shown: _Shown, cells: Sequence[Patch], found: Outcomes) -> pd.DataFrame:
    columns: dict[str, Any] = {
        "code": [patch.code for patch in cells],
        "activation": [shown.name(patch) for patch in cells],
        shown.noun: found.patched.round(5),
        "change": found.changes.round(5),
    }
    if found.shares is not None:
        columns["share"] = found.shares.round(5)
    return pd.DataFrame(columns)


def _list(
    shown: _Shown,
    kind: MapKind,
    cells: list[Patch],
    found: Outcomes,
    patches: list[Patch],
    joint: Outcomes | None,
    has_way: bool,
) -> None:
    """The chosen patches with a button to remove each, their joint effect, and the strongest cells to add."""
    if not has_way:  # which has the numbers
        left = f"{shown.noun.capitalize()} with C: **{shown.number(found.of_b)}** for B"
        st.markdown(left + (f", **{shown.number(found.of_a)}** for A." if shown.is_patching else "."))
    if joint is None:
        st.caption("Click cells of the map to make several patches at once, or choose here.")
    else:
        for row, patch in enumerate(patches, start=1):
            with st.container(
                horizontal=True, vertical_alignment="center", gap="small", wrap=False, key=f"patch_{patch.code}"
            ):
                st.button(
                    "Remove",
                    key=f"remove_{patch.code}",
                    icon=":material/close:",
                    help=f"Remove {shown.name(patch, short=True)}",
                    on_click=_remove,
                    args=(patch.code,),
                )
                st.markdown(f"{messages.escape(shown.name(patch))}: **{_short(shown, joint, row)}**")
        if len(patches) > 1:
            alone = joint.changes[1:].sum() if joint.shares is None else joint.shares[1:].sum()
            total = shown.change(alone) if joint.shares is None else f"{theme.number(100 * alone, 0)} %"
            st.markdown(f"Together: **{_short(shown, joint, 0)}**. The single effects sum to {total}.")
            st.button("Remove all", key="remove_all_patches", on_click=state.put, args=("patches", ()))
    effects = np.abs(found.changes) if found.shares is None else found.shares
    order: dict[Any, Patch] = {}
    for row in np.argsort(-effects, kind="stable").tolist():
        if cells[row] not in patches and effects[row] > NO_EFFECT:
            order.setdefault(cells[row].index if kind == "tokens" else row, cells[row])
    offered = {patch.code: shown.name(patch, short=True) for patch in list(order.values())[:STRONGEST]}
    if offered:
        st.session_state["w_add_patch"] = None
        controls.checked(
            st.pills,
            "Strongest of each token" if kind == "tokens" else "Strongest",
            options=offered,
            format_func=lambda code: messages.escape(offered.get(code, "")),
            key="w_add_patch",
            wrap=True,
            on_choice=_add,
        )
    if experiment_texts.shows_example():
        experiment_texts.leave_example(experiment_texts.example(shown.experiment.backend))


def _short(shown: _Shown, found: Outcomes, row: int) -> str:
    """An effect in a few characters."""
    patched = shown.number(found.patched[row])
    if found.shares is None:
        return f"{shown.change(found.changes[row])} ({shown.noun} {patched})"
    return f"{theme.number(100 * found.shares[row], 0)} % ({shown.noun} {patched})"


def _notes(shown: _Shown) -> None:
    """What is special about these sentences."""
    prepared, notes = shown.prepared, []
    if shown.is_patching:
        alignment = prepared.alignment
        if not alignment.is_complete:
            positions = set(alignment.positions)
            missing = [f"“{item.piece}”" for item in prepared.b.tokens if item.position not in positions]
            matched = {first for first, _ in alignment.pairs}
            extra = [f"“{item.piece}”" for item in prepared.a.tokens if item.position not in matched]
            parts = [f"{', '.join(tokens)} of {name}" for name, tokens in (("A", extra), ("B", missing)) if tokens]
            notes.append(
                f"A has {len(prepared.a)} tokens and B {len(prepared.b)}: only those that both have can be patched. "
                f"{messages.escape(' and '.join(parts))} {'have' if len(extra) + len(missing) > 1 else 'has'} no counterpart."
            )
        if shown.outcomes(prepared.outputs[:1]).shares is None:
            notes.append(
                f"A and B differ by less than {patching.SMALL_DIFFERENCE} here, too little to take a share of: the map shows "
                "the change itself."
            )
    elif prepared.other:
        notes.append(f"The other sentence: {messages.escape(prepared.other)}")
    if shown.outcome == "rank":
        corpus = current.corpus()
        notes.append(
            f"The rank is 1 + the number of texts of {messages.escape(corpus.name)} ({len(corpus):,}) that are nearer to C: "
            "the nearer the text, the lower its rank."
        )
        prompt = EmbedRequest.of_session(shown.experiment.backend, exact=True).document_options().prompt
        if prompt:
            notes.append(
                f"This model reads the corpus's texts with “{messages.escape(prompt.strip())}” before them. A, B and C are "
                "read without, so that the rank is not the one that Search gives."
            )
    if shown.outcome == "score":
        notes.append(
            f"{messages.escape(shown.experiment.backend.spec.title)} reads each sentence together with C as one input, and the "
            "patches are made in it: its layers, heads and tokens, of which those after the first [SEP] are C's."
        )
    for note in notes:
        st.caption(note)


def _read(shown: _Shown, kind: MapKind, found: Outcomes) -> str:
    cell = {
        "tokens": "Each cell is one token's vector at one layer (layer 0: before the first block).",
        "heads": "Each cell is one attention head: what it passes on at all tokens, before the heads are mixed.",
        "parts": "Each cell is what the attention or the feed-forward part of a block adds to all tokens.",
    }[kind]
    if not shown.is_patching:
        return (
            f"{cell} It is replaced in B, everything after it is computed anew, and the {shown.noun} is measured again. "
            "Blue cells lower it: it depended on them. Blocks and heads count from 0."
        )
    share = (
        "100 means that this activation alone makes B as near to C as A is, 0 that it changes nothing; a negative number leads "
        "away from A."
        if found.shares is not None
        else "Orange raises it, blue lowers it."
    )
    return (
        f"{cell} B is run with A's in its place, everything after it is computed anew, and the {shown.noun} with C is "
        f"measured. {share} Blocks and heads count from 0 "
        "([Vig et al. 2020](https://arxiv.org/abs/2004.12265), [Meng et al. 2022](https://arxiv.org/abs/2202.05262))."
    )


_SAME_FOR_BOTH = (
    "The model is in a state that no text puts it into, and later parts may make up for what was replaced. It is one pair of "
    "sentences: others may give another map."
)
_NOT_SHOWN = {
    True: "That the model uses an activation in this way in general: it is enough for the difference here, and others may be "
    f"as well, so that the numbers need not sum to 100. {_SAME_FOR_BOTH}",
    False: "What an activation is for: replacing it also breaks what does not depend on its content, with zeros most of all. "
    f"{_SAME_FOR_BOTH}",
}
