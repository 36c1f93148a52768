"""Addresses and settings as they were written before views had addresses of their own, in today's form.

An older address has no `v`: its page says which view is meant, together with `view`, and its keys mean what they meant on
that page. The tables are frozen: whatever is renamed or moved later, they lead to today's names and places. They are those
of the last commit that wrote this form, 9db9ccd4.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from dashboard.declared import table

OLDER_VIEW = "view"  # the key of the view in older addresses
_OF_FLOW = ("flow_block", "flow_token", "flow_figure", "flow_heads", "flow_special")  # what else is chosen there
PACKED = "z"  # the key of packed texts in older addresses: the keys in it are older ones too

MAPS_OF_SENTENCES = ("two-layers", "layer-by-layer")
# Page to the older names of its views and today's; the first was the one that opened.
_VIEWS = {
    "tokens": "pieces:pieces tensors:input-tensors decoding:decoding vocabulary:vocabulary compare:two-tokenizers",
    "model": (
        "facts:model-facts vectors:output-vectors zero:layer-zero inner:feed-forward compare:compare-models "
        "catalog:available-models"
    ),
    "layers": "across:one-word within:two-tokens against:one-against-all sentences:sentence-curves",
    "heatmaps": (
        "blocks:block inside:inside-block tokens:token-pairs pairs:read-together layers:layer-pairs "
        "sentences:sentence-pairs"
    ),
    "attention": (
        "head:head-view model:model-view neuron:neuron-view scores:attention-scores matrix:attention-matrix "
        "glance:all-heads patterns:head-patterns flow:attention-flow mask:mask-token"
    ),
    "map": "ends:two-layers through:layer-by-layer senses:word-senses",
    "search": "results:hits queries:many-queries pairs:similar-pairs corpus:corpus",
    "evaluate": (
        "grid:layer-grid compare:compare-runs kinds:search-kinds graded:graded-relevance similarity:sentence-similarity "
        "lab:pooling-lab approximation:approximation pairs:evaluated-data"
    ),
    "pairs": "given:one-input scores:pair-scores rerank:retrieve-rerank disagree:disagreement learnt:learnt-ranking",
    "why": "split:score-split methods:important-words experiments:experiments debugger:failed-search clinic:known-failures",
    "training": "data:training-data objective:training-objective run:training-run after:before-after",
}
# Page to the keys of its addresses and the names of their settings.
_SHARED = (
    "m:model m2:model2 ce:cross_encoder s:sentences len:max_length proj:projector lesson:lesson class:class_code "
    "sa:sentence_a sb:sentence_b rd:reading corpus:corpus"
)
_NAMES = {
    "tokens": "t:tokens n:sentence q:vocabulary_query jt:joint_token mode:vocabulary_mode with:other_tokenizer",
    "model": (
        "t:tokens n:sentence fb:inner_block with:compared_models cv:depth_curve w1:depth_first_word w2:depth_second_word "
        "n2:depth_other_sentence meas:compare_measured cka:cka_pair l:layer pct:percentiles"
    ),
    "layers": (
        "t:tokens l:layer t2:second_token n:layers_sentence word:whole_word pool:pooling sp:include_special c:centred "
        "b:show_baseline pct:percentiles"
    ),
    "heatmaps": (
        "l:layer pool:pooling sp:include_special pct:percentiles b1:first_block b2:second_block ag:against "
        "ag2:also_against pb:partners own:own_scale side:one_side clu:clustered"
    ),
    "attention": (
        "l:block h:head f:texts_filter agg:combination bs:chosen_blocks hs:chosen_heads qt:queries word:merge_words "
        "sp:special_tokens p:pattern pa:pattern_over_all fl:flow fb:flow_block ft:flow_token ff:flow_figure fh:flow_heads "
        "mp:masked sq:score_query sk:score_key cell:long_cells fs:flow_special mw:mask_word"
    ),
    "map": (
        "l:layer sp:include_special src:map_source by:map_method d:map_dims nn:map_neighbors md:map_min_dist "
        "met:map_metric seed:map_seed n:map_tokens col:map_colour j:map_joint l1:map_first q:map_find w:sense_word "
        "sl:sense_layer ws:sense_source"
    ),
    "search": (
        "l:layer pool:pooling pct:percentiles blind:blind q:query sim:similarity k:k vs:compare_with cand:reranked_hits "
        "l2:layer2 pool2:pooling2 sim2:similarity2 eng:engine why:why wb:why_by qs:typed_queries n:shown_pairs lab:score_label"
    ),
    "evaluate": (
        "l:layer pool:pooling sim:similarity col:query_column by:measure r:runs kc:candidates ref:reference "
        "fig:compare_figure at:right_at f:query_filter n:opened kind:searched_kind gs:graded_source gm:graded_measure "
        "gq:graded_query_field gd:graded_document_fields am:all_measures src:sts_source cor:correlation run:sts_run "
        "d:lab_dims seed:lab_seed lp:lab_pooling way:approximation lab:score_label"
    ),
    "pairs": (
        "q:query k:k gs:graded_source gq:graded_query_field gd:graded_document_fields pq:pair_query pr:pair_relevant "
        "po:pair_other cut:truncation pl:pair_length sc:score_scale lab:score_label n:scored_documents rel:relevant_by "
        "top:relevant_topic seed:sample_seed th:threshold by:second_stage nq:disagreement_queries dis:disagreement "
        "ll:learnt_layer lp:learnt_pooling lr:learnt_reading lc:learnt_c lq:learnt_queries"
    ),
    "why": (
        "l:layer pool:pooling col:query_column cx:context_source by:score_split ref:split_reference steps:split_steps "
        "xt:experiment_texts xc:third_text xm:experiment_map xa:experiment_values xo:experiment_outcome "
        "xv:experiment_numbers xs:experiment_seed xp:patches del:deletion_order from:deletion_from aw:all_words "
        "cf:clinic_figure ck:clinic_kind cs:clinic_source cp:clinic_pair fq:failed_query fo:failed_order dq:typed_query "
        "dr:right_row fc:failure_cause"
    ),
    "training": (
        "preset:training_preset src:training_data obj:objective obj2:second_objective neg:negatives "
        "weights:trained_weights pool:training_pooling lr:learning_rate ep:epochs bs:batch_size wu:warm_up "
        "tl:training_length mg:margin rows:most_rows dmg:damage ho:held_out seed:training_seed run:training_run "
        "fig:training_figure sm:smoothing step:training_step l:training_layer w:watch_word part:after_part on:after_data"
    ),
}


@cache
def _pairs(text: str) -> dict[str, str]:
    return dict(pair.split(":") for pair in text.split())


def is_older(page: str, address: Mapping[str, list[str]]) -> bool:
    """Whether an address of a page is in the older form. One without any key says nothing but its page, if that exists."""
    return table.VIEW not in address and page in _VIEWS and (bool(address) or page not in table.PAGE_BY_KEY)


def translated(page: str, address: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """An address of a page in today's form, with the view that it means.

    Keys that the view does not use are left out, since nothing that it shows depends on them; keys that the page never had
    stay, so that a notice names them, and so do packed texts, which `unpacked` translates.
    """
    if not is_older(page, address):
        return with_right_texts(with_defaults(with_rollout(dict(address))))
    views = _pairs(_VIEWS[page])
    asked = address.get(OLDER_VIEW, [next(iter(views))])
    view = views.get(asked[0]) if len(asked) == 1 else None
    # A view that never was opens the first one, with a notice that names it.
    found = {table.VIEW: [view] if view is not None else asked}
    found |= _keys(page, view or next(iter(views.values())), address)
    if view in MAPS_OF_SENTENCES and "by" not in address:
        found["by"] = ["older"]  # without a method, more than 20 points were drawn by UMAP: today that begins at 200
    return with_right_texts(with_defaults(with_rollout(found)))


def unpacked(view: str, texts: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """The texts that an older address had packed, with today's keys; `view` is today's name of the view that it means."""
    pages = [page for page, views in _VIEWS.items() if view in _pairs(views).values()]
    return _keys(pages[0], view, texts) if pages else dict(texts)


def _keys(page: str, view: str, address: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Texts of an older address by today's keys, for a view."""
    names = _pairs(_SHARED) | _pairs(_NAMES[page])
    found = {}
    for key, texts in address.items():
        setting = table.SETTING.get(names.get(key, ""))
        if setting is None:
            if key != OLDER_VIEW:
                found[key] = texts
        elif setting.shared or setting.name in table.VIEWS[view].settings:
            found[setting.short] = texts
    return found


def with_rollout(address: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """An address of Flow with the method that it means: rollout, and block 0, where it chooses something else of Flow alone.

    Until there were norms through all blocks, rollout was the default and not written. Since then each address of Flow names
    its method. One that chooses nothing of Flow shows how the view opens today.
    """
    shorts = {name: table.SETTING[name].short for name in ("flow", *_OF_FLOW)}
    if address.get(table.VIEW) != ["attention-flow"]:
        return dict(address)
    return _with_rollout(address, shorts)


# View to the setting whose default changed since, and what an address meant that did not write it.
_DEFAULTS = {
    "retrieve-rerank": ("second_stage", "rerank"),
    "similar-pairs": ("compared_texts", "corpus"),
    "training-data": ("training_preset", "repair"),
    "training-objective": ("training_preset", "repair"),
    "training-run": ("training_preset", "repair"),
}
# Settings of such a view on which its default has no bearing: what is looked at of a run, not what the next one would be.
_OF_THE_RUN = ("training_run", "training_figure", "smoothing", "training_step", "training_layer", "watch_word")
_BESIDE_DEFAULT = {"training-run": _OF_THE_RUN}


def with_defaults(address: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """An address with what it means, where a default has changed: re-ranking by the cross-encoder, say.

    What was the default was not written; since then each address of the view names it. One that chooses nothing in the view,
    or only what the default has no bearing on, shows how it opens today.
    """
    view = "".join(address.get(table.VIEW, []))
    name, value = _DEFAULTS.get(view, ("", ""))
    short = table.SETTING[name].short if name else ""
    everywhere = {setting.short for setting in table.SETTINGS if setting.shared} | {"m", "len"}
    beside = {table.SETTING[other].short for other in _BESIDE_DEFAULT.get(view, ())}
    if not name or short in address or not {*address} - {table.VIEW} - everywhere - beside:
        return dict(address)
    return {**address, short: [value]}


# Views that searched only the right texts of a file, before there was a choice. Since then each address with a file names it.
_OF_RIGHT_TEXTS = {
    *("compare-runs", "layer-grid", "evaluated-data", "pooling-lab", "approximation", "retrieve-rerank"),
}


def with_right_texts(address: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """An address of a person's own file with the texts that it means: the included one has a query for each text."""
    short, view = table.SETTING["texts_searched"].short, "".join(address.get(table.VIEW, []))
    if view not in _OF_RIGHT_TEXTS or short in address or table.SETTING["corpus"].short not in address:
        return dict(address)
    return {**address, short: ["right"]}


def _with_rollout(values: Mapping[str, list[str]], names: Mapping[str, str]) -> dict[str, list[str]]:
    """Values with rollout named where they need it; `names` says under which names they stand."""
    if names["flow"] in values or not any(names[name] in values for name in _OF_FLOW):
        return dict(values)
    return {**values, names["flow"]: ["rollout"], names["flow_block"]: values.get(names["flow_block"], ["0"])}


def session_as_meant(values: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """The settings of a session file, by name, with what they mean: rollout, and the right texts of a person's own file."""
    texts = {} if "texts_searched" in values or not any(values.get("corpus", ())) else {"texts_searched": ["right"]}
    return _with_rollout({**values, **texts}, {name: name for name in ("flow", *_OF_FLOW)})


def views_of(page: str) -> tuple[str, ...]:
    """Today's names of the views of a page of older addresses; the first is the one that opened."""
    return tuple(_pairs(_VIEWS[page]).values()) if page in _VIEWS else ()


def session(page: str, values: Mapping[str, list[str]]) -> tuple[str, dict[str, list[str]]]:
    """The page and the settings of a session file, by name, with today's names of pages and views.

    Where views of several pages of the file stand on one page today, that of the file's page is open there, else the first.
    """
    views = {f"{other}_view": other for other in _VIEWS}
    shown, found = page, {name: texts for name, texts in values.items() if name not in views}
    for other in sorted(_VIEWS, key=lambda other: other != page):
        asked, first = values.get(f"{other}_view"), views_of(other)[0]
        if asked is None and other != page:
            continue
        name = first if asked is None else ", ".join(asked)
        view = _pairs(_VIEWS[other]).get(name, name)
        place = table.PLACE.get(view, table.place_of(first))
        found.setdefault(table.view_setting(place), [view])
        if other == page:
            shown = place
    return shown, found
