// Saves the figure with this key as a picture the size of a slide. Streamlit keeps plotly to itself, but the figure's own
// camera reads its options at the click: it gets those of the slide, and its own ones back. On a phone it is hidden, not gone.
export default function ({ data, parentElement }) {
  const button = parentElement.querySelector("button");
  button.textContent = data.label;
  button.title = data.hint;
  button.onclick = () => {
    const plot = document.querySelector(`.st-key-${CSS.escape(data.figure)} .js-plotly-plot`);
    const camera = plot?.querySelector('.modebar-btn[data-title^="Download plot"]');
    if (!camera) {
      button.textContent = "There is no figure to save";
      return;
    }
    const own = plot._context.toImageButtonOptions;
    plot._context.toImageButtonOptions = data.options;
    // Both clicks, ours and that of plotly's link to the file, are outside of the panel in which this button stands: they
    // would close it.
    window.addEventListener("click", unseen, true);
    setTimeout(() => window.removeEventListener("click", unseen, true), 30000);
    camera.dispatchEvent(new MouseEvent("click", { bubbles: false }));
    plot._context.toImageButtonOptions = own;
  };
}

function unseen(event) {
  if (!event.target.matches?.("a[download]")) return;
  event.stopImmediatePropagation();
  window.removeEventListener("click", unseen, true);
}
