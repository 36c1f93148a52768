"""The smallest interactive page there is: one slider, one chart. What an interaction costs Streamlit at least."""

import plotly.graph_objects as go
import streamlit as st

st.title("Trivial")
value = st.slider("Value", 0, 100, 50)
st.plotly_chart(go.Figure(go.Scatter(y=[1, 2, value]), layout={"title": {"text": f"value {value}"}}), key="chart")
