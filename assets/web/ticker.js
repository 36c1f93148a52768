// Reports its value a while after it was drawn. The next value comes with the page's next drawing, so that a slow server
// or browser is never asked for more than it can show.
export default function ({ data, parentElement, setTriggerValue }) {
  clearTimeout(parentElement.bertInternalsTimer);
  parentElement.bertInternalsTimer = setTimeout(() => setTriggerValue("tick", data.value), data.milliseconds);
  return () => clearTimeout(parentElement.bertInternalsTimer);
}
