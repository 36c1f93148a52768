// The field of Start and the examples below it. Reports "typed" with the text, "example" with its key, and "cleared".
export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".start");
  const form = root.querySelector("form");
  const input = form.querySelector("input");
  const clear = form.querySelector(".clear");
  const isNarrow = matchMedia("(max-width: 760px)").matches;
  const kept = (root.kept ??= { text: null, isNew: true });
  // The server's text is written only when it has changed: else it would replace what a person types meanwhile.
  if (kept.text !== data.text && !kept.isClearing) {
    input.value = kept.text = data.text;
    delete window.bertInternalsUnsaved;
  }
  input.setAttribute("aria-label", data.label);
  input.placeholder = isNarrow ? data.short : data.placeholder;
  input.dir = "auto";
  input.maxLength = data.most;
  form.classList.remove("busy");
  const show = () => {
    clear.hidden = !(input.value || data.shown);
    input.setCustomValidity("");
  };
  const send = (name, value) => {
    kept.isSent = name !== "cleared";
    kept.isClearing = false;
    form.classList.add("busy");
    setTriggerValue(name, value);
  };
  // A sentence that the server still reads is cleared once it is shown: two messages at once would have no order.
  const clearShown = () => {
    if (data.shown) send("cleared", true);
    else kept.isClearing = kept.isSent;
  };
  if (data.shown && kept.isClearing) send("cleared", true);
  input.oninput = show;
  // What is typed goes along with a click that leaves the page: tools.js sends it, the pictures take it with what they report.
  window.bertInternalsTyped = () => {
    const text = input.value.trim();
    return root.isConnected && text !== data.text.trim() ? text : "";
  };
  window.bertInternalsSendTyped = () => {
    const text = window.bertInternalsTyped();
    if (!text) return false;
    window.bertInternalsUnsaved = { text, since: performance.now() };
    send("typed", text);
    return true;
  };
  // A field has one line: lines of a pasted text become sentences of their own.
  input.onpaste = (event) => {
    const text = event.clipboardData.getData("text/plain");
    if (!/[\r\n]/.test(text.trim())) return;
    event.preventDefault();
    input.setRangeText(text.trim().split(/\s*[\r\n]+\s*/).join(data.joint), input.selectionStart, input.selectionEnd, "end");
    show();
  };
  input.onkeydown = (event) => {
    if (event.key === "Escape" && !event.isComposing) {
      input.value = "";
      show();
    }
    event.stopPropagation(); // "r" and "c" are shortcuts of the app
  };
  form.onsubmit = (event) => {
    event.preventDefault();
    if (input.value.trim()) send("typed", input.value);
    else if (data.shown) send("cleared", true);
    else {
      input.setCustomValidity("Type a sentence first.");
      input.reportValidity();
    }
  };
  clear.onclick = () => {
    input.value = kept.text = "";
    show();
    input.focus();
    clearShown();
  };
  show();
  const row = root.querySelector(".try");
  row.setAttribute("aria-label", data.examples);
  row.replaceChildren(
    element("span", "", data.before),
    ...data.chips.map((chip) => {
      const button = element("button", chip.leads ? "pill leads" : "pill", chip.label);
      button.type = "button";
      button.title = chip.hint;
      if (!chip.leads) button.setAttribute("aria-pressed", String(chip.pressed));
      button.onclick = () => send("example", chip.leads && input.value.trim() ? [chip.key, input.value] : [chip.key, ""]);
      return button;
    }),
  );
  // The cursor stands in it where no keyboard would cover the page, unless a person is somewhere else already.
  if (kept.isNew && matchMedia("(hover: hover)").matches && document.activeElement === document.body && !data.shown && !data.waits)
    input.focus({ preventScroll: true });
  kept.isNew = false;
}
