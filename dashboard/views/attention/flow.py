"""Attention flow: by an estimate, how much of a token's vector comes from each token of the input."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from components import numbers
from components.analysis.attention.flow import median_of_others, norm_flow, rollout, summed_norms, weighted_norms
from components.analysis.attention.weights import PairAttention, second_text, select_pair
from components.charts import matrices
from components.shown_code.attention import rolled_out
from components.shown_code.code import AnyCode, Command
from components.shown_code.inside import Inside
from dashboard import state
from dashboard.ui import browser, controls, figures, messages
from dashboard.views.attention.head_choice import (
    BLOCK_HELP,
    FILTERS,
    AttentionInput,
    choose_head,
    chosen_position,
    options,
)

FLOWS = {"through": "All blocks (norms)", "rollout": "All blocks (rollout)", "norms": "One block (norms)"}
FLOW_HELP = (
    "Norms weigh attention by how long the vectors are that it adds, through all blocks up to the chosen one or in one block. "
    "Rollout follows the bare attention weights."
)
MOST_WORDS, WORDS_OF_MANY = 24, 20  # tokens with a ribbon of their own, and how many where there are more
COMPARED = "what it gives another word (median)"
ALIKE = 0.25  # of what a token gives to the other words: no more apart than that is about the same
FIGURES = {"token": "One token", "all": "All tokens"}
SPECIAL_HELP = "[CLS] and [SEP] often have so large a share that those of all other tokens look equally small."
NOT_SHOWN = {
    "through": "That this share is used, or what for. Contributions can point in opposite directions and cancel, which "
    "shares of lengths leave out, and the feed-forward parts count as the token's own.",
    "rollout": "Value vectors, feed-forward parts and norms: rollout uses nothing but the attentions. It becomes more "
    "even with each block in every model.",
    "norms": "What is left of a contribution: those of several tokens can point in opposite directions and cancel. The effect "
    "of the residual and of norms is not included either.",
}


@dataclass(frozen=True, eq=False)
class FlowEstimate:
    """How much each token's vector (query) takes from each token of the input (key)."""

    method: str  # one of FLOWS
    values: np.ndarray  # [query, key]: per cent of the vector (through, rollout), or a length (norms)
    block: int
    last: int  # the model's last block
    head: int | None = None  # None: all heads together

    @property
    def of_head(self) -> str:
        """In a title, the one head that counts."""
        return "" if self.head is None else f", head {self.head}"

    @property
    def is_share(self) -> bool:
        """Whether the values are shares through all blocks, of which each row sums to 100."""
        return self.method != "norms"

    @property
    def unit(self) -> str:
        return "share (%)" if self.is_share else "length"

    def number(self, value: float) -> str:
        if self.method == "norms":
            return numbers.number(value, 2)
        return numbers.percent(value / 100)


def intro() -> str:
    """What the figure shows."""
    if state.get("flow_figure") == "all":
        return "Each row is a token. The stronger a cell's blue, the more of the row's vector comes from there, by an estimate."
    return "The thicker a ribbon, the more of the chosen token's vector comes from there, by an estimate."


def flow(model_input: AttentionInput, row: Any) -> None:
    """Attention rollout, and norm-based attention: for one token as bars, or for all as a matrix."""
    last = model_input.attentions.shape[0] - 1
    with row:
        # Of one block by itself the first one, as addresses of it have always meant.
        of_one = state.get("flow") == "norms"
        block = controls.stepped(
            "flow_block", "Block" if of_one else "After block", 0, last, 0 if of_one else last, BLOCK_HELP
        )
        panel = options(model_input)
    with panel:
        method = controls.choice("flow", "Estimate", FLOWS, FLOW_HELP)
        shown = controls.choice("flow_figure", "Figure", FIGURES)
        with_special = controls.switch("flow_special", "Special tokens", SPECIAL_HELP)
        estimate = _norms(model_input, block) if method == "norms" else _through(model_input, method, block)
    special = model_input.special
    kept = np.flatnonzero(special <= with_special)  # positions
    part = select_pair(
        estimate.values[np.ix_(kept, kept)], second_text(model_input.sentence)[kept], model_input.direction
    )
    if not part.matrix.size:
        st.info("There is nothing to show: one of the texts has no tokens of its own.")
        return
    queries, keys = ([int(kept[index]) for index in indices] for indices in (part.queries, part.keys))
    if shown == "all":
        _matrix(model_input, estimate, part, queries, keys, with_special)
        return
    token = chosen_position(model_input, "flow_token")
    token = token if token in queries else queries[0]

    def choose(_: int, position: int) -> None:
        state.put("flow_token", position)
        if special[position]:
            state.put("flow_special", True)
        if position not in queries and not special[position]:  # it is in the text that is left out
            state.put("texts_filter", "all")

    _ribbons(model_input, estimate, token, queries, keys, with_special, choose)
    _bars(model_input, estimate, token, keys, with_special)
    if len(queries) > MOST_WORDS:  # those without a place in the picture
        controls.token_chips(
            [model_input.sentence],
            (token,),
            "chips_flow",
            unknown_id=model_input.backend.tokenization.unknown_id,
            on_pick=choose,
        )
        st.caption("Click a token to see where its vector comes from.")


def _through(model_input: AttentionInput, method: str, block: int) -> FlowEstimate:
    """Shares through all blocks up to one, by norms or by rollout."""
    attentions = model_input.attentions[: block + 1]
    if method == "rollout":
        shares = 100 * rollout(attentions)  # [block, query, key]
    else:
        shares = 100 * norm_flow(attentions, model_input.inside(), model_input.backend.block_norms())
    return FlowEstimate(method, shares[block], block, model_input.attentions.shape[0] - 1)


def _norms(model_input: AttentionInput, block: int) -> FlowEstimate:
    """Norm-based attention of a block, of all heads together or of one head."""
    inside, last = model_input.inside(), model_input.attentions.shape[0] - 1
    if controls.choice("flow_heads", "Heads", {"together": "All together", "one": "One head"}) == "together":
        values = summed_norms(model_input.attentions[block], inside.value_contributions(block))
        return FlowEstimate("norms", values, block, last)
    head = choose_head(model_input)
    norms = weighted_norms(
        model_input.attentions[block : block + 1, head : head + 1],
        inside.value_norms[block : block + 1, head : head + 1],
    )[0, 0]
    return FlowEstimate("norms", norms, block, last, head)


def _ribbons(
    model_input: AttentionInput,
    estimate: FlowEstimate,
    token: int,
    queries: Sequence[int],
    keys: Sequence[int],
    with_special: bool,
    choose: Callable[[int, int], None],
) -> None:
    """The finding, and from where each token's vector comes as ribbons, of which those into the chosen token are drawn."""
    origins, takers, values = shown_tokens(estimate.values, token, queries, keys)
    others = len(keys) - len(origins)
    pieces = model_input.pieces
    left_out = _left_out(model_input, estimate, [token], "its", with_special)
    figures.above(
        _takeaway(model_input, estimate, token, keys),
        key="flow_ribbons",
        place=".st-key-flow_picture",
        table=lambda: _table(model_input, estimate, queries, keys),
        code=_code(model_input, estimate, queries, keys),
        title=f"Sources of “{pieces[token][:20]}”",
        read="Above, the tokens of the input; below, the same tokens after the block. A ribbon is as thick as what the "
        "chosen token takes. Point at a token above to see to which tokens it gives, and press one below to choose it. "
        + _read(model_input, estimate, "bar", left_out),
        not_shown=_not_shown(estimate, with_special),
    )

    def part(position: int) -> dict[str, str]:
        return {"text": pieces[position], "kind": "special" if model_input.special[position] else "word"}

    def chosen() -> None:
        sent = browser.sent_by("flow_picture", "chosen")
        if browser.is_index(sent, len(takers)):
            choose(0, takers[sent])

    share = estimate.is_share
    place = f"after block {estimate.block}" if share else f"in block {estimate.block}"
    browser.web_component("ribbons", '<div class="ribbons"></div>', "focus")(
        key="flow_picture",
        data={
            "first": [part(key) for key in origins] + [{"text": f"{others} others", "kind": "rest"}] * bool(others),
            "second": [part(query) for query in takers],
            "values": ((values / 100 if share else values).round(7)).tolist(),
            "whole": 1.0,
            "parts": not share,
            "chosen": takers.index(token),
            "names": ["gives", "takes"],
            "said": [
                f"{'input' if share else 'tokens that contribute'}, and how much comes from each",
                f"tokens {place}: press one",
            ],
            "unit": "token",
            "all": "Row gives column (most: {})",
            "label": f"Ribbons from {len(origins)} tokens to {len(takers)} tokens {place}",
            "scale": controls.scale(),
        },
        on_chosen_change=chosen,
    )
    if left_out:
        figures.note(left_out, key="flow_left_out")


def shown_tokens(
    values: np.ndarray, token: int, queries: Sequence[int], keys: Sequence[int]
) -> tuple[list[int], list[int], np.ndarray]:
    """The tokens that have a ribbon: origins, takers, and what they take [origin, taker], with a last row for all others.

    All of them, or of many those from which the chosen `token` takes most, and itself. `values`: [query, key].
    """
    origins, takers = list(keys), list(queries)
    if max(len(origins), len(takers)) > MOST_WORDS:
        most = sorted(keys, key=lambda key: (key != token, -float(values[token, key])))[:WORDS_OF_MANY]
        origins = sorted(most)
        takers = [query for query in queries if query in {*origins, token}]
        if takers == [token]:  # the texts that give and take are two
            takers = sorted({token, *list(queries)[: WORDS_OF_MANY - 1]})
    taken = values[np.ix_(takers, origins)].T
    if len(origins) < len(keys):
        rest = values[np.ix_(takers, keys)].sum(axis=1) - taken.sum(axis=0)
        taken = np.vstack([taken, rest])
    return origins, takers, taken


def _table(
    model_input: AttentionInput, estimate: FlowEstimate, queries: Sequence[int], keys: Sequence[int]
) -> pd.DataFrame:
    """What each token takes from each: a row for a token that takes."""
    rows, columns = (matrices.axis_labels(model_input.pieces, positions) for positions in (queries, keys))
    frame = pd.DataFrame(estimate.values[np.ix_(queries, keys)].round(4), columns=columns)
    frame.insert(0, "query", rows)
    return frame


def _bars(
    model_input: AttentionInput, estimate: FlowEstimate, token: int, keys: Sequence[int], with_special: bool
) -> None:
    """What the vector of one token takes from each token at the positions `keys`."""
    values, piece = estimate.values[token, keys], model_input.pieces[token]
    labels = matrices.axis_labels(model_input.pieces, keys)
    title = (
        f"Sources of “{piece[:20]}” after block {estimate.block}"
        if estimate.is_share
        else f"Added to “{piece[:20]}” in block {estimate.block}{estimate.of_head}"
    )
    others = median_of_others(estimate.values, model_input.special, token, keys)
    is_compared = estimate.is_share and not np.isnan(others).all()
    left_out = _left_out(model_input, estimate, [token], "its", with_special)
    columns = {"token": labels, estimate.unit: values.round(4)}
    if is_compared:
        columns[COMPARED] = others.round(4)
    figures.figure(
        matrices.key_bars(
            values,
            labels,
            title,
            keys="token of the input",
            value=estimate.unit,
            itself=keys.index(token) if token in keys else None,
            decimals=0 if estimate.is_share else 2,
            compared=(COMPARED, others) if is_compared else None,
        ),
        key="flow_bars",
        code=_code(model_input, estimate, [token], keys),
        alt=f"{title}: bars of {len(keys)} tokens",
        read=_read(model_input, estimate, "bar", left_out),
        not_shown=_not_shown(estimate, with_special),
        table=lambda: pd.DataFrame(columns),
    )


def _code(model_input: AttentionInput, estimate: FlowEstimate, queries: Sequence[int], keys: Sequence[int]) -> AnyCode:
    read = model_input.pair.input(model_input.backend)
    if estimate.method == "rollout":
        return rolled_out(read, estimate.block, queries, keys)
    if estimate.method == "through":
        return Command(norm_flow)
    return Inside(read).norms(estimate.block, estimate.head, queries, keys)


def _takeaway(model_input: AttentionInput, estimate: FlowEstimate, token: int, keys: Sequence[int]) -> str:
    """What the bars say, from their numbers."""

    def name(position: int) -> str:
        return f"“{messages.escape(model_input.pieces[position][:20])}”"

    values = estimate.values[token]
    most = max((key for key in keys if key != token), key=lambda key: float(values[key]), default=None)
    own = estimate.number(values[token]) if token in keys else ""
    if not estimate.is_share:
        if most is None:
            return ""
        itself = f"; {name(token)} itself adds {own}" if own else ""
        return (
            f"Of the other tokens, {name(most)} adds most to {name(token)} (a vector of length "
            f"{estimate.number(values[most])}){itself}."
        )
    after = f"{name(token)} after block {estimate.block}"
    given = ""
    if most is not None:
        # Without what other words get, a share reads as if it belonged to this token.
        usual = float(median_of_others(estimate.values, model_input.special, token, [most])[0])
        to_others = (
            "" if np.isnan(usual) else f", {beside(float(values[most]), usual)} (median {estimate.number(usual)})"
        )
        given = f"{name(most)} gives {'it' if own else after} most: {estimate.number(values[most])}{to_others}"
    if not own:
        return f"{given[:1].upper()}{given[1:]}."
    return f"**{own}** of {after} comes from itself" + (f"; of the others, {given}." if given else ".")


def beside(share: float, usual: float) -> str:
    """What a token gives to the chosen one, beside what it gives to the others."""
    if abs(share - usual) <= ALIKE * usual:
        return (
            "hardly more than it gives to other words" if share >= usual else "hardly less than it gives to other words"
        )
    return f"{'more' if share > usual else 'less'} than it gives to other words"


def _matrix(
    model_input: AttentionInput,
    estimate: FlowEstimate,
    part: PairAttention,
    queries: Sequence[int],
    keys: Sequence[int],
    with_special: bool,
) -> None:
    """What every token takes from every other."""
    by = "rollout" if estimate.method == "rollout" else "norms"
    place = (
        f"fter block {estimate.block} ({by})"
        if estimate.is_share
        else f"n block {estimate.block}{estimate.of_head} (norms)"
    )
    title = ("A" if estimate.is_share else "I") + place
    rows, columns = (matrices.axis_labels(model_input.pieces, positions) for positions in (queries, keys))
    # A token's share of itself is much larger than any other: a scale up to it would leave the rest dark.
    others = part.matrix[np.not_equal.outer(queries, keys)]
    figures.matrix(
        part.matrix,
        rows,
        columns,
        title,
        key="flow_matrix",
        code=_code(model_input, estimate, queries, keys),
        alt=f"{title}: {len(rows)} by {len(columns)} tokens",
        rows=f"token after block {estimate.block}" if estimate.is_share else "token that receives",
        columns="comes from the input token" if estimate.is_share else "token that contributes",
        value=estimate.unit,
        limits=(float(others.min()), float(others.max())) if others.size else None,
        pale=True,
        message=_of_all(model_input, estimate, queries, keys),
        read=_read(model_input, estimate, "row", _left_out(model_input, estimate, queries, "a token's", with_special)),
        not_shown=_not_shown(estimate, with_special),
    )


def _of_all(model_input: AttentionInput, estimate: FlowEstimate, queries: Sequence[int], keys: Sequence[int]) -> str:
    """What the matrix says: how much is a token's own, and from which other token most comes."""
    values = estimate.values
    said = []
    both = [position for position in queries if position in keys]
    if estimate.is_share and both:
        own = float(np.mean([values[position, position] for position in both]))
        said.append(f"On average {estimate.number(own)} of a token after block {estimate.block} comes from itself.")
    means = {
        key: float(np.mean([values[query, key] for query in queries if query != key]))
        for key in keys
        if any(query != key for query in queries)
    }
    if means:
        most = max(means, key=lambda key: means[key])
        piece = f"“{messages.escape(model_input.pieces[most][:20])}”"
        gives = "gives most to others" if estimate.is_share else "adds most to others"
        said.append(f"{piece} {gives}: {estimate.number(means[most])} on average.")
    return " ".join(said)


def _left_out(
    model_input: AttentionInput, estimate: FlowEstimate, queries: Sequence[int], whose: str, with_special: bool
) -> str:
    """What the special tokens, which the figure leaves out, contribute; empty if it leaves out none."""
    special = model_input.special
    if with_special or model_input.direction != "all" or special.all() or not special.any():
        return ""
    values = estimate.values[queries]
    share = float(values[:, special].sum() / values.sum())
    names = " and ".join(
        dict.fromkeys(piece for piece, is_special in zip(model_input.pieces, special, strict=True) if is_special)
    )
    what = f"of {whose} vector comes from" if estimate.is_share else "of all the lengths belongs to"
    return f"**{numbers.percent(share)}** {what} {messages.escape(names)}, left out here."


def _read(model_input: AttentionInput, estimate: FlowEstimate, mark: str, left_out: str) -> str:
    """How to read the figure, whose `mark` stands for one token: a bar, or a row of the matrix; and what is left out."""
    if estimate.is_share:
        each = {
            "bar": "The bars say what share of the chosen token's vector comes from each input token",
            "row": "Each row says what share of a token's vector comes from each input token",
        }[mark]
        whole = {"bar": "All bars", "row": "Whole rows"}[mark]
        if not state.get("flow_special"):
            whole += ", with the special tokens that are left out (see Options),"
        if estimate.method == "rollout":
            how = (
                f"**Rollout** multiplies the attentions of all blocks up to this one. {each}, if attention were the only "
                "effect. Half of each vector stays with its own token in every block, for the residual connection "
                "([Abnar and Zuidema 2020](https://aclanthology.org/2020.acl-main.385/)). "
            )
        else:
            how = (
                "**Norms through all blocks**: in each block, what a token gets from another counts by the length of that "
                "vector, with the residual connection and the norm after attention "
                "([Kobayashi et al. 2021](https://aclanthology.org/2021.emnlp-main.373/)); the shares of all blocks up to this "
                f"one are multiplied. {each}. "
            )
        read = how + (
            f"{whole} sum to 100 %."
            if model_input.direction == "all"
            else f"{whole} sum to 100 % together with the other text; this is the part {FILTERS[model_input.direction]}."
        )
        if mark == "bar":
            read += " Orange lines: what the other words take from the same token, as a median."
    else:
        read = (
            "**Norms** measure one block: the length (norm) of the vector that each token contributes to each other token: "
            "attention times the transformed value vector, in one head or summed over all heads "
            "([Kobayashi et al. 2020](https://aclanthology.org/2020.emnlp-main.574/)). [CLS] and [SEP] often contribute little "
            "although attention to them is high."
        )
    if mark == "row":
        read += " Colours reach up to the largest value off the diagonal; a token's share of itself may be larger."
    return f"{read} {left_out}".strip()


def _not_shown(estimate: FlowEstimate, with_special: bool) -> str:
    left_out = " Special tokens are left out (see Options)." if not with_special and not estimate.is_share else ""
    return NOT_SHOWN[estimate.method] + left_out
