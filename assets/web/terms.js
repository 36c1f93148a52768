// A term of the glossary in a question, a first line or a finding opens its entry where it stands. The text itself is
// Streamlit's, which draws it anew when it likes: over each term lies a button. Of the text one thing is changed: a number and
// its % stay in one line.
const TERM_PLACES = '.st-key-view_title h1, .st-key-view_header [data-testid="stCaptionContainer"] p, .stMain [data-testid="stMarkdownContainer"] p';
const DRAWINGS = ".st-key-whole_path div"; // what is drawn there has sentences of its own, in a tree of its own
const NOT_MARKED = new Set(["hit", "index", "job", "query", "reference", "run"]); // also words of every day, or with two meanings
const LETTER = "[\\p{L}\\p{N}_-]";

// Finds the terms: [text of the term as the glossary has it, a pattern for it and its plural], the longest first.
function termPattern(glossary) {
  const names = Object.keys(glossary).filter((term) => !NOT_MARKED.has(term) && !term.includes(","));
  const forms = new Map();
  for (const term of names)
    for (const form of [term, `${term}s`, `${term}es`, term.replace(/y$/, "ies")]) forms.set(form.toLowerCase(), term);
  const escaped = [...forms.keys()].sort((a, b) => b.length - a.length).map((form) => form.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&"));
  return { forms, pattern: new RegExp(`“[^”]*”|(?<!${LETTER})(?:${escaped.join("|")})(?!${LETTER})`, "giu") };
}

const isMarked = (element) => element.matches("h1, .say p, [data-testid=stCaptionContainer] p") || element.querySelector('[aria-label="insights icon"]');

// The first occurrence of each term in an element, as ranges: what stands in quotation marks is somebody's word.
function termsIn(element, { forms, pattern }) {
  const nodes = [], walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  let text = "";
  while (walker.nextNode()) {
    const node = walker.currentNode, isText = !node.parentElement.closest('a, code, [role="img"]');
    if (isText) nodes.push([node, text.length]);
    text += isText ? node.data : "\u0000";
  }
  const found = new Map();
  for (const match of text.matchAll(pattern)) {
    const term = forms.get(match[0].toLowerCase());
    const [node, start] = nodes.findLast(([, begin]) => begin <= match.index) ?? [];
    if (!term || found.has(term) || match.index + match[0].length > start + node.length) continue;
    const range = document.createRange();
    range.setStart(node, match.index - start);
    range.setEnd(node, match.index - start + match[0].length);
    found.set(term, range);
  }
  return found;
}

function openEntry(term, text, button) {
  const entry = document.createElement("div"), name = document.createElement("strong"), words = document.createElement("p"), link = document.createElement("a");
  entry.className = "bi-entry";
  entry.popover = "auto";
  entry.setAttribute("role", "dialog");
  entry.setAttribute("aria-label", `Glossary: ${term}`);
  name.textContent = term;
  words.textContent = text;
  link.textContent = "Glossary ›";
  link.href = "glossary";
  link.onclick = (event) => {
    const page = document.querySelector('[data-testid="stSidebarNavLink"][href$="/glossary"], [data-testid="stTopNavLink"][href$="/glossary"]');
    if (!page || event.ctrlKey || event.metaKey || event.shiftKey) return; // the link opens it in a page of its own
    event.preventDefault();
    entry.hidePopover();
    page.click(); // the session goes on
  };
  entry.append(name, words, link);
  document.body.append(entry);
  entry.ontoggle = (event) => {
    if (event.newState !== "closed") return;
    entry.remove();
    if (document.activeElement === document.body) button.focus();
  };
  entry.showPopover();
  const at = button.getBoundingClientRect(), box = entry.getBoundingClientRect();
  const below = at.bottom + 6 + box.height <= window.innerHeight;
  entry.style.left = `${Math.max(8, Math.min(at.left, window.innerWidth - box.width - 8))}px`;
  entry.style.top = `${below ? at.bottom + 6 : Math.max(8, at.top - 6 - box.height)}px`;
  link.focus();
}

// Before a % the space becomes one at which no line ends; the number may be emphasised, and a text of its own then.
function keepPercents() {
  for (const place of document.querySelectorAll('[data-testid="stMarkdownContainer"], .stHtml')) {
    if (!/\d %/.test(place.textContent)) continue;
    const walker = document.createTreeWalker(place, NodeFilter.SHOW_TEXT);
    let before = "";
    while (walker.nextNode()) {
      const node = walker.currentNode;
      if (!node.parentElement.closest("code, style")) {
        const kept = node.data.replace(/(\d) %/g, "$1\u00a0%").replace(/^ %/, /\d$/.test(before) ? "\u00a0%" : " %");
        if (kept !== node.data) node.data = kept;
      }
      before = node.data;
    }
  }
}

const CHANGES = { childList: true, subtree: true, characterData: true };
const containerOf = (element) => (element.getRootNode().host ?? element).closest('[data-testid="stElementContainer"]');

function markTerms(glossary) {
  const known = termPattern(glossary), drawn = new WeakMap(); // element to what was marked: its text, its size, its layer
  const mark = (element) => {
    const host = containerOf(element);
    if (element.closest(".path.beside")) return drawn.get(element)?.layer.remove(); // its words scroll by themselves
    const box = element.getBoundingClientRect();
    const top = host ? Math.round(box.top - host.getBoundingClientRect().top) : 0;
    const state = `${element.textContent} ${Math.round(box.width)} ${Math.round(box.height)} ${top}`, before = drawn.get(element);
    if (!host || (before?.state === state && before.layer.isConnected)) return;
    before?.layer.remove();
    const layer = document.createElement("div");
    layer.className = "bi-terms";
    layer.of = element;
    drawn.set(element, { state, layer });
    host.append(layer);
    const origin = layer.getBoundingClientRect();
    for (const [term, range] of termsIn(element, known))
      for (const [part, place] of [...range.getClientRects()].entries()) {
        const button = document.createElement("button");
        button.type = "button";
        button.setAttribute("aria-label", `Glossary: ${term}`);
        button.tabIndex = part ? -1 : 0; // of a term that goes on in the next line
        button.style = `left: ${place.left - origin.left}px; top: ${place.top - origin.top}px; width: ${place.width}px; height: ${place.height}px`;
        button.onclick = () => openEntry(term, glossary[term], button);
        layer.append(button);
      }
  };
  const markAll = () => {
    for (const layer of document.querySelectorAll(".bi-terms"))
      if (!layer.of?.isConnected || layer.parentElement !== containerOf(layer.of)) layer.remove();
    const trees = [...document.querySelectorAll(DRAWINGS)].flatMap((element) => element.shadowRoot ?? []);
    for (const tree of trees) observer.observe(tree, CHANGES);
    for (const element of [...document.querySelectorAll(TERM_PLACES), ...trees.flatMap((tree) => [...tree.querySelectorAll(".say p")])]) {
      if (isMarked(element)) mark(element);
      else drawn.get(element)?.layer.remove(); // another text stands there now
    }
  };
  let isPlanned = false;
  const plan = () => {
    if (isPlanned) return;
    isPlanned = true;
    requestAnimationFrame(() => {
      isPlanned = false;
      keepPercents();
      markAll();
    });
  };
  const observer = new MutationObserver(plan);
  observer.observe(document.body, CHANGES);
  window.addEventListener("resize", plan);
  document.fonts.ready.then(plan);
  plan();
}

