"""About: what this is and its version, the licence of the included model, and how to cite. Glossary: its terms."""

from __future__ import annotations

import streamlit as st

from components import VERSION
from components.model.catalog import CATALOG, EMBEDDED_KEY
from dashboard import caching, navigation
from dashboard.declared import table
from dashboard.ui import controls, messages

BIBTEX = f"""@software{{bert_internals,
  title   = {{BERT Internals: an interactive view of what happens inside BERT encoders}},
  author  = {{{{The BERT Internals authors}}}},
  version = {{{VERSION}}},
  year    = {{2026}},
  license = {{MIT}}
}}"""
# Where the thing that a term names is seen.
SEEN_IN = {
    "activation patching": "experiments",
    "attention": "all-heads",
    "attention mask": "input-tensors",
    "attention rollout": "attention-flow",
    "attention weight": "attention-matrix",
    "baseline": "one-word",
    "block": "block",
    "BM25": "hits",
    "CKA": "layer-pairs",
    "contribution": "score-split",
    "corpus": "corpus",
    "correct answer": "evaluated-data",
    "cosine": "sentence-pairs",
    "cross-encoder": "one-input",
    "deletion curve": "important-words",
    "feed-forward": "feed-forward",
    "fine-tuning": "before-after",
    "head": "head-view",
    "hidden state": "output-vectors",
    "hit": "hits",
    "id": "pieces",
    "late interaction": "retrieve-rerank",
    "layer": "one-word",
    "leave one out": "important-words",
    "masked-LM head": "mask-token",
    "masked language model": "mask-token",
    "nDCG": "graded-relevance",
    "norm": "output-vectors",
    "pooling": "pooling-lab",
    "position": "layer-zero",
    "precision at k": "many-queries",
    "projection": "two-layers",
    "query, key and value": "neuron-view",
    "re-ranking": "retrieve-rerank",
    "recall at k": "layer-grid",
    "reference": "score-split",
    "residual connection": "inside-block",
    "run": "compare-runs",
    "segment": "read-together",
    "sentence vector": "sentence-curves",
    "softmax": "attention-scores",
    "special token": "pieces",
    "SPLADE": "hits",
    "threshold": "pair-scores",
    "token": "pieces",
    "tokenizer": "two-tokenizers",
    "trustworthiness": "word-senses",
    "UMAP": "two-layers",
    "vocabulary": "vocabulary",
}
PAPERS = """
- BERT: Devlin, Chang, Lee and Toutanova (2019), [BERT: Pre-training of Deep Bidirectional Transformers for Language
  Understanding](https://aclanthology.org/N19-1423/)
- Sentence vectors: Reimers and Gurevych (2019), [Sentence-BERT: Sentence Embeddings using Siamese
  BERT-Networks](https://aclanthology.org/D19-1410/)
- The baseline of unrelated tokens: Ethayarajh (2019), [How Contextual are Contextualized Word
  Representations?](https://aclanthology.org/D19-1006/)
- The attention views: Vig (2019), [A Multiscale Visualization of Attention in the Transformer
  Model](https://aclanthology.org/P19-3007/)
- What heads look at: Clark, Khandelwal, Levy and Manning (2019), [What Does BERT Look At? An Analysis of BERT's
  Attention](https://aclanthology.org/W19-4828/)
- What attention does not tell: Jain and Wallace (2019), [Attention is not
  Explanation](https://aclanthology.org/N19-1357/)
- Attention rollout: Abnar and Zuidema (2020), [Quantifying Attention Flow in
  Transformers](https://aclanthology.org/2020.acl-main.385/)
- CKA: Kornblith, Norouzi, Lee and Hinton (2019), [Similarity of Neural Network Representations
  Revisited](https://arxiv.org/abs/1905.00414)
- MaxSim: Khattab and Zaharia (2020), [ColBERT: Efficient and Effective Passage Search via Contextualized Late
  Interaction over BERT](https://arxiv.org/abs/2004.12832)
- BM25: Robertson and Zaragoza (2009), [The Probabilistic Relevance Framework: BM25 and
  Beyond](https://doi.org/10.1561/1500000019)
"""


def render() -> None:
    with st.container(key="view_header"):
        st.title("About BERT Internals", anchor=False)
        st.caption(f"Version {VERSION}")
    st.markdown(
        "An interactive dashboard of what happens inside BERT-family encoders: how text becomes tokens, how each token's "
        "vector changes layer by layer, what the attention heads do, and what this means for search. Every number was "
        "computed with a real model, most of them on this server while you look. Your sentences are not sent anywhere else."
    )
    included = next(spec for spec in CATALOG if spec.key == EMBEDDED_KEY)
    st.markdown(
        f"**The included model** is {messages.escape(included.title)}, licence {included.licence}. The included cross-encoder "
        "is the same encoder with an adapter that was trained on the STS Benchmark (Cer et al. 2017; CC BY-SA 4.0). Other "
        "models have their own licences: see “All available models” in the Laboratory."
    )
    st.markdown("**The dashboard itself** has the MIT licence: it can be used, changed and passed on.")
    st.subheader("How to cite", anchor=False)
    st.code(BIBTEX, language=None, wrap_lines=True)
    st.markdown(f"Cite the model that you used too, and the work that a figure is based on:\n{PAPERS}")


def glossary() -> None:
    with st.container(key="view_header"):
        st.title("Glossary", anchor=False)
        st.caption(f"{len(caching.glossary())} terms, in the sense in which the pages use them.")
    _terms()


@st.fragment
def _terms() -> None:
    query = st.text_input(
        "Search the glossary", key="glossary_query", placeholder="layer, pooling, baseline …", max_chars=60, live=True
    )
    needle, letter = query.strip().lower(), None
    if not needle:
        letters = sorted({term[0].upper() for term in caching.glossary()})
        letter = controls.checked(
            st.pills, "Letter", key="glossary_letter", options=letters, label_visibility="collapsed"
        )
    hits = {term: text for term, text in caching.glossary().items() if needle in term.lower() or needle in text.lower()}
    if letter:
        hits = {term: text for term, text in hits.items() if term[0].upper() == letter}
    if not hits:
        st.caption("No term has this text.")
    # A term that matches comes before a text that does.
    for term in sorted(hits, key=lambda term: (needle not in term.lower(), term.casefold())):
        with st.container(gap="xxsmall"):
            st.markdown(f"**{messages.escape(term)}**  \n{messages.escape(hits[term])}")
            view = table.VIEWS.get(SEEN_IN.get(term, ""))
            if view is not None and st.button(
                f"See it in “{_called(view.key)}”",
                key=f"seen_{term}",
                icon=":material/arrow_forward:",
                type="tertiary",
            ):
                navigation.go_to(view.key)


def _called(view: str) -> str:
    """A view as a person finds it: the name under which it is offered, and its own if that stands for several."""
    name, label = table.name_of(view), table.VIEWS[view].label
    return name if name == label else f"{name}: {label}"
