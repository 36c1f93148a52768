// Buttons to the next and the previous picture, which the arrow keys press, and the keys for pages in a lecture, where a
// presenter's remote control sends them: these lead always. A picture with stops of its own (path.js) takes both until its last
// stop, or its first. Arrow keys stay with what uses them itself, as fields, lists, choices, and what we draw, until Escape gives
// them back; a hint says so. One more button hides all but the question, the finding and the picture, and brings the rest back: a lecture begins with these alone.
// While pictures are drawn for an export there is no more than a line and a button that ends it.
// Reports "step": 1, -1, or "end".
const OWNERS =
  "input, textarea, select, [contenteditable='true'], [role='radio'], [role='slider'], [role='tab'], [role='listbox'], " +
  "[role='combobox'], [role='grid'], [role='menu'], [role='dialog'], .js-plotly-plot, iframe";
const page = document.documentElement;
const MOST_REST = 24; // half seconds: a picture is sent one or two seconds after it is drawn
let isBare; // as chosen by a person; undefined before
let begun = 0; // lectures: each begins with its pictures alone, whatever was chosen in the one before

export default function ({ data, parentElement, setTriggerValue }) {
  const bar = parentElement.querySelector(".walk");
  const isLecture = data.of === "picture";
  if (isLecture && data.begun !== begun) {
    begun = data.begun;
    isBare = undefined;
  }
  const button = (text, label, action, disabled = false) => {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = text;
    made.title = label;
    made.setAttribute("aria-label", label);
    made.disabled = disabled;
    made.onclick = action;
    return made;
  };
  const fold = button("", "", () => {
    isBare = !("bare" in page.dataset);
    lay();
  });
  const lay = () => {
    const bare = data.of !== "drawing" && (isBare ?? isLecture), was = "bare" in page.dataset;
    if (bare) page.dataset.bare = "";
    else delete page.dataset.bare;
    if (bare !== was) window.dispatchEvent(new Event("resize")); // what fills the window has other room
    fold.textContent = bare ? "Controls" : "Picture only";
    fold.title = bare ? "Show the controls" : "Hide all but the question, the finding and the picture";
    fold.setAttribute("aria-label", fold.title);
    keepOnly(bare && isLecture ? data.figure : "", data.where);
  };
  lay();
  const next = data.next ? `: ${data.next}` : "";
  const hint = Object.assign(document.createElement("span"), { className: "hint" });
  hint.setAttribute("role", "status");
  const place = Object.assign(document.createElement("span"), { className: "place", textContent: data.place });
  const root = bar.getRootNode(), focused = [...bar.querySelectorAll("button")].indexOf(root.activeElement);
  bar.setAttribute("aria-label", isLecture ? "My lecture" : "Views of this page");
  clearTimeout(bar.drawing);
  if (data.of === "drawing") {
    bar.replaceChildren(place, button("Stop", "Stop drawing and go back to the lecture", () => setTriggerValue("step", "end")));
    bar.bertInternalsKeys?.abort();
    find(data.figure, data.place);
    // The picture that is sent leads to the next one. A page that is at rest without it has none: a model or a choice is missing.
    let rest = 0;
    const look = () => {
      rest = document.querySelector(".stApp")?.dataset.testScriptState === "notRunning" && !document.querySelector(".stMain .stProgress, .stMain .stSkeleton") ? rest + 1 : 0;
      if (rest > MOST_REST) setTriggerValue("step", 1);
      else bar.drawing = setTimeout(look, 500);
    };
    look();
    return () => clearTimeout(bar.drawing);
  }
  bar.replaceChildren(
    hint,
    button("‹", `Previous ${data.of} (←)`, () => setTriggerValue("step", -1), data.ends[0]),
    ...(data.place ? [place] : []),
    button("›", `Next ${data.of} (→)${next}`, () => setTriggerValue("step", 1), data.ends[1]),
    fold,
    ...(isLecture ? [button("End", "End the lecture", () => setTriggerValue("step", "end"))] : []),
  );
  if (focused >= 0) bar.querySelectorAll("button")[focused]?.focus();
  find(data.figure, data.place);
  const stops = () => (window.bertInternalsStops?.root.isConnected ? window.bertInternalsStops : undefined);
  const ownerOf = (event) => event.composedPath().find((one) => one.matches?.(OWNERS) && !(one.type === "range" && stops()?.root.contains(one)));
  const go = (event, step) => {
    event.preventDefault();
    if (!event.repeat && !data.ends[step > 0 ? 1 : 0]) setTriggerValue("step", step);
  };
  const isPlain = (event) => !(event.altKey || event.ctrlKey || event.metaKey || event.shiftKey);
  const turned = (event) => {
    const step = { PageDown: 1, PageUp: -1 }[event.key];
    if (!step || !isPlain(event) || !(isLecture || stops())) return;
    event.stopImmediatePropagation(); // before a slider or a list under the keyboard takes it
    if (event.repeat || stops()?.step(step)) event.preventDefault(); // a key that is held leads one step
    else go(event, step);
  };
  const pressed = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key], owner = ownerOf(event);
    if (event.key === "Escape" && owner && !event.defaultPrevented && !isOpen(owner)) event.composedPath()[0].blur?.();
    else if (step && isPlain(event) && !event.repeat && !event.defaultPrevented && !owner) {
      if (stops()?.step(step)) event.preventDefault();
      else go(event, step);
    }
  };
  let owning; // what uses the arrow keys now
  const tell = (owner) => {
    owning = owner;
    const said = owner ? "Esc: arrow keys lead again" : stops() ? "← → stops" : "";
    if (hint.textContent !== said) hint.textContent = said;
  };
  tell(document.activeElement?.closest(OWNERS));
  // This function runs again whenever the data change, and only its last cleanup is called: one listener of each at a time.
  bar.bertInternalsKeys?.abort();
  const listening = (bar.bertInternalsKeys = new AbortController());
  const { signal } = listening;
  window.addEventListener("keydown", pressed, { signal });
  window.addEventListener("keydown", turned, { signal, capture: true });
  window.addEventListener("focusin", (event) => tell(ownerOf(event)), { signal });
  window.addEventListener("focusout", () => tell(null), { signal });
  const looking = setInterval(() => tell(owning?.isConnected ? owning : null), 500); // a picture with stops comes, or goes
  signal.addEventListener("abort", () => clearInterval(looking));
  return () => {
    listening.abort();
    delete page.dataset.bare;
    keepOnly("");
  };
}

// Whether Escape closes something first: an open list, menu or dialog.
function isOpen(owner) {
  return owner.matches("[aria-expanded='true'], [role='listbox'], [role='menu'], [role='dialog']") || owner.closest("[role='dialog']") !== null;
}

// Of a lecture's picture: hides all of its view but the question, the finding, the figure, what explains it, and sliders, which lead
// through it. Only once these are drawn: of a view that waits for something, or asks for it, all stays. A figure without a finding of its own has
// that of the line before it. What is hidden keeps its width: what draws itself would find none otherwise.
const HIDDEN = "position: absolute !important; left: 0; right: 0; height: 0 !important; overflow: hidden; visibility: hidden !important;";
const only = document.head.appendChild(document.createElement("style"));
let waiting = 0;
function keepOnly(figure, where) {
  clearInterval(waiting);
  only.textContent = size.textContent = fitted = "";
  if (!figure) return;
  const own = CSS.escape(figure), find = (selector) => document.querySelector(selector);
  const look = () => {
    const picture = find(`.st-key-beside_${own}`) ? `.st-key-beside_${own}` : where || `.st-key-${own}`, drawn = find(picture);
    if (!drawn?.offsetHeight) return (only.textContent = "");
    const isBefore = (line) => line.compareDocumentPosition(drawn) & Node.DOCUMENT_POSITION_FOLLOWING;
    const line = find(`.st-key-line_${own}`) ?? [...document.querySelectorAll("[class*='st-key-line_']")].filter(isBefore).at(-1);
    const of = line && [...line.classList].find((name) => name.startsWith("st-key-line_"));
    const explains = "[class*='st-key-explains_']";
    const kept = [picture, explains, ".stSlider", ".st-key-view_title", ".st-key-walk_bar", ...(of ? [of, of.replace(/_first$/, "")].map((name) => `.${CSS.escape(name)}`) : [])].join(", ");
    const boxes = ["stElementContainer", "stLayoutWrapper", "stColumn"].map((name) => `[data-testid="${name}"]`).join(", ");
    const rule = `[data-bare] .stMainBlockContainer :is(${boxes}):not(:is(${kept}), :is(${kept}) *, :has(${kept})) { ${HIDDEN} }`;
    if (only.textContent !== rule) only.textContent = rule;
    if ("bare" in page.dataset) fit(picture, drawn, [drawn, ...document.querySelectorAll(explains)]);
  };
  look();
  waiting = setInterval(look, 500);
}

// A picture of our own takes what room the window has below its finding: larger where there is more, smaller where its end would be
// cut. A figure of plotly's has its height from the server (figures.py), and the whole path fits itself.
const SMALLEST = 0.6, LARGEST = 1.6, TRIALS = 6;
const size = document.head.appendChild(document.createElement("style"));
let fitted = ""; // the picture, and all that its size depends on, as it was fitted last
let isFitting = false;
async function fit(picture, drawn, shown) {
  const main = drawn.closest(".stMain"), box = (element) => element.getBoundingClientRect();
  const end = () => Math.max(...shown.map((each) => box(each).bottom)) + main.scrollTop;
  const now = () => [picture, innerWidth, innerHeight, box(drawn).top + main.scrollTop, drawn.offsetWidth, drawn.offsetHeight, end()].map((part) => (typeof part === "number" ? Math.round(part / 4) : part)).join(" ");
  const isOurs = !drawn.querySelector(".js-plotly-plot, iframe") && !(window.bertInternalsStops?.root.isConnected && drawn.contains(window.bertInternalsStops.root.getRootNode().host ?? window.bertInternalsStops.root));
  if (isFitting || !isOurs || fitted === now()) return;
  isFitting = true;
  const scrolls = (one) => one.clientWidth && one.scrollWidth > one.clientWidth + 1 && /auto|scroll/.test(getComputedStyle(one).overflowX);
  const isWider = () => [drawn, ...drawn.querySelectorAll("*")].some((one) => scrolls(one) || [...(one.shadowRoot?.querySelectorAll("*") ?? [])].some(scrolls));
  const fits = () => end() <= box(main).bottom - 6 && drawn.scrollWidth <= drawn.clientWidth + 1 && !isWider();
  const isFirst = !fitted.startsWith(`${picture} `);
  const draw = async (zoom, isTrial) => {
    size.textContent = `[data-bare] ${picture} { zoom: ${zoom}; ${isTrial && isFirst ? "opacity: 0;" : ""} }`;
    for (let frame = 0; frame < 2; frame++) await new Promise(requestAnimationFrame); // what draws itself has then drawn
  };
  try {
    let low = SMALLEST, high = LARGEST;
    for (let trial = 0; trial < TRIALS && "bare" in page.dataset; trial++) {
      const zoom = (low + high) / 2;
      await draw(zoom, true);
      if (fits()) low = zoom;
      else high = zoom;
    }
    await draw(low > SMALLEST ? low : 1, false); // what is longer than a screen keeps its size, and is scrolled
    await new Promise((done) => setTimeout(done, 250)); // what it draws a moment later is no reason to begin again
    fitted = now();
  } finally {
    isFitting = false;
  }
}

// Scrolls to the picture of the lecture where it stands further below in its view, once it is drawn.
let found = "";
function find(figure, place, looks = 0) {
  const wanted = `${place} ${figure}`;
  if (!figure || found === wanted || looks > 40) return;
  const drawn = [figure, `phone_${figure}`].map((key) => document.querySelector(`.st-key-${CSS.escape(key)}`));
  const shown = drawn.find((one) => one?.offsetHeight); // on a phone another may stand in its place
  if (!shown || document.querySelector("[data-stale='true']")) {
    setTimeout(find, 250, figure, place, looks + 1);
    return;
  }
  found = wanted;
  if (shown.getBoundingClientRect().top > 0.6 * innerHeight) shown.scrollIntoView({ block: "center" });
}
