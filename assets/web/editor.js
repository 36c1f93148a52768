// The sentences as a person types them. They are sent after a short pause, and at once when the field is left.
const PAUSE = 500; // milliseconds

export default function ({ data, parentElement, setStateValue }) {
  const root = parentElement.querySelector("label");
  const field = root.querySelector("textarea");
  root.querySelector("span").textContent = data.label;
  root.querySelector("small").textContent = data.hint;
  field.dir = "auto"; // Arabic and Hebrew begin at the right
  field.placeholder = data.placeholder;
  field.style.height = `${data.height}px`;
  const kept = (root.kept ??= { sent: null, timer: 0, version: null });
  // The server's text is written only when something else than typing changed it; else it would replace what a person types.
  if (kept.version !== data.version) {
    field.value = kept.sent = data.text;
    kept.version = data.version;
  }
  // A click on a page's link waits until the server has drawn this text: see tools.js.
  if (window.bertInternalsUnsaved?.text === data.text) delete window.bertInternalsUnsaved;
  const send = () => {
    clearTimeout(kept.timer);
    if (field.value === kept.sent) return;
    kept.sent = field.value;
    window.bertInternalsUnsaved = { text: field.value, since: performance.now() };
    setStateValue("edit", { version: kept.version, text: field.value });
  };
  field.oninput = () => {
    clearTimeout(kept.timer);
    kept.timer = setTimeout(send, PAUSE);
  };
  field.onblur = send;
  field.onkeydown = (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) send();
    event.stopPropagation(); // "r" and "c" are shortcuts of the app
  };
  return send; // what was typed in the last half second is not lost when the field leaves the page
}
