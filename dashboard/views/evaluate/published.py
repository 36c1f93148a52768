"""Figures that others published, kept apart from what is measured here."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from components import numbers
from components.retrieval.evaluation import published_figures
from components.retrieval.evaluation.published_figures import PublishedResult
from dashboard.ui.figures import plain_table
from dashboard.ui.wording import POOLING_NAMES


def pairs() -> None:
    """Published Recall@k on the sentence-compression corpus."""
    _panel(
        "Published figures: Recall@k on sentence compression",
        published_figures.published_for("retrieval", trained=None),
        "They were measured on 36,000 pairs. Recall falls as the number of sentences grows, so figures on fewer pairs cannot "
        "be compared with them. `make reproduce` measures these models if the hub can be reached.",
    )


def similarity() -> None:
    """Published Spearman correlations on the STS benchmark."""
    _panel(
        "Published figures: Spearman on the STS benchmark",
        published_figures.published_for("similarity", trained=None),
        "They were measured on the benchmark's own splits, so figures on other pairs cannot be compared with them. `make "
        "reproduce` measures these models if the hub can be reached; for a local file: `make reproduce STSB=file.csv`.",
    )


def _panel(title: str, figures: tuple[PublishedResult, ...], note: str) -> None:
    panel = st.expander(title, icon=":material/menu_book:", key=f"published_{figures[0].task}", on_change="rerun")
    if not panel.open:
        return
    with panel:
        rows = [
            {
                "model": figure.model.rpartition("/")[2]
                + (f", tuned on {figure.trained_on}" if figure.trained_on else ""),
                "pooling": POOLING_NAMES[figure.pooling],
                **{name.capitalize(): numbers.number(value, 2) for name, value in figure.values},
                "data": figure.dataset,
                "source": "; ".join((figure.source, *figure.remarks)),
            }
            for figure in figures
        ]
        st.markdown("**Not measured here:** others report these figures, in per cent.")
        plain_table(pd.DataFrame(rows))
        st.caption(note)
