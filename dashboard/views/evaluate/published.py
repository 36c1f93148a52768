"""Figures that others published, beside ours and never as ours."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from components.retrieval.evaluation import published_figures
from components.retrieval.evaluation.published_figures import PublishedResult
from dashboard.ui import messages


def pairs() -> None:
    """Published Recall@k on the sentence-compression corpus."""
    _panel(
        "Published figures: Recall@k on sentence compression",
        published_figures.published_for("retrieval", trained=None),
        "They were measured on 36,000 pairs. Recall falls with the number of sentences there are to choose from, so a figure "
        "on fewer pairs is no comparison. `make reproduce` measures these models where the hub can be reached.",
    )


def similarity() -> None:
    """Published Spearman correlations on the STS benchmark."""
    _panel(
        "Published figures: Spearman on the STS benchmark",
        published_figures.published_for("similarity", trained=None),
        "Of the benchmark's own splits, so no comparison with other pairs. `make reproduce` measures these where the hub can "
        "be reached; for a local file: `make reproduce STSB=file.csv`.",
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
                "pooling": published_figures.POOLING_TITLES[figure.pooling],
                **{published_figures.measure_title(name): f"{value:.2f}" for name, value in figure.values},
                "data": figure.dataset,
                "source": "; ".join((figure.source, *figure.remarks)),
            }
            for figure in figures
        ]
        st.markdown("**Not measured here:** what others report, in per cent.")
        st.table(pd.DataFrame(rows).map(messages.escape), hide_index=True)
        st.caption(note)
