// What failed queries share, a row for each trait with both shares and the interval of their difference, and below it the
// failed queries. Text is only ever set with textContent. A trait reports "trait" with its name, or "all" where it was chosen;
// a query reports "picked" with the row of its right text.
export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".failed");
  root.style.setProperty("--size", `${data.scale}rem`);
  const make = (tag, name, ...content) => {
    const element = document.createElement(tag);
    element.className = name;
    element.append(...content);
    return element;
  };
  const button = (name, position, action, ...content) => {
    const element = make("button", name, ...content);
    element.type = "button";
    element.dataset.position = position;
    element.onclick = action;
    return element;
  };
  const at = (share) => `${Math.max(0, Math.min(1, share / data.most)) * 100}%`;
  const span = (name, from, to) => {
    const element = make("span", name);
    element.style.left = at(Math.min(from, to));
    element.style.right = `calc(100% - ${at(Math.max(from, to))})`;
    return element;
  };
  const dot = (name, share) => {
    const element = make("span", `dot ${name}`);
    element.style.left = at(share);
    return element;
  };
  const traitRow = (trait) => {
    const place = make("span", "place");
    if (data.compared) place.append(span("range", trait.found + trait.low, trait.found + trait.high), span("line", trait.found, trait.failed));
    place.append(dot("found", trait.found), dot("", trait.failed));
    const row = button(
      trait.named ? "trait named" : "trait", `t${trait.key}`, () => setTriggerValue("trait", trait.picked ? "all" : trait.key),
      make("span", "name", trait.label), place, make("span", "share", trait.shares[0]), make("span", "share found", trait.shares[1]),
    );
    row.title = trait.hint;
    row.setAttribute("aria-pressed", String(trait.picked));
    row.setAttribute("aria-label", `${trait.label}: ${trait.hint}`);
    return row;
  };
  const render = () => {
    const kept = root.querySelector(".queries")?.scrollTop ?? 0;
    const focused = (parentElement.activeElement ?? parentElement.getRootNode().activeElement)?.dataset?.position;
    const parts = [];
    if (data.traits === null) parts.push(make("div", "waiting", data.waiting));
    else {
      const axis = make("span", "axis");
      for (const [place, text] of data.ticks) {
        const tick = make("span", "", text);
        tick.style.left = at(place);
        axis.append(tick);
      }
      const marked = (name, text) => make("span", "share", ...(data.compared ? [] : [make("i", name)]), text);
      if (data.compared) {
        const legend = make("div", "legend");
        legend.append(make("span", "", make("i", "full"), "failed"), make("span", "", make("i", "open"), "found"));
        legend.append(make("span", "", make("i", "range"), "95 % of the difference"));
        parts.push(legend);
      }
      parts.push(make("div", "head", make("b", "", "What they share"), axis, marked("full", "failed"), marked("open", "found")));
      const shown = data.traits.filter((trait, place) => root.dataset.all || place < data.first || trait.picked);
      parts.push(...shown.map(traitRow));
      const hidden = data.traits.length - shown.length;
      if (hidden || root.dataset.all) {
        parts.push(button("more", "more", () => {
          root.dataset.all = root.dataset.all ? "" : "yes";
          render();
        }, root.dataset.all ? "Fewer traits" : `${hidden} more ${hidden > 1 ? "traits" : "trait"}`));
      }
    }
    const head = make("div", "listhead", make("b", "", data.head), make("span", "of", data.of));
    if (data.all) head.append(button("all", "all", () => setTriggerValue("trait", "all"), data.all));
    const queries = make("div", "queries");
    for (const row of data.rows) {
      const line = button(
        "query", `q${row.index}`,
        () => {
          root.dataset.scroll = window.innerWidth <= 640 ? "yes" : "";
          setTriggerValue("picked", row.index);
        },
        make("span", "rank", row.rank), make("span", "asked", row.query), make("span", "rival", row.rival),
      );
      line.title = `${row.query}\n${row.rival}`;
      line.setAttribute("aria-current", String(row.picked));
      line.setAttribute("aria-label", `${row.query}, rank ${row.rank}. First instead: ${row.rival}. ${data.pickHint}`);
      queries.append(line);
    }
    const below = make("div", "below");
    root.replaceChildren(...parts, head, queries, below);
    const tell = () => {
      const end = queries.getBoundingClientRect().bottom;
      const more = [...queries.children].filter((row) => row.getBoundingClientRect().bottom > end + 0.5 * row.offsetHeight).length;
      below.textContent = more ? `${more} further down: scroll ↓` : "";
    };
    queries.onscroll = tell;
    new ResizeObserver(tell).observe(queries); // also once it is shown
    queries.scrollTop = kept;
    const chosen = queries.querySelector("[aria-current=true]");
    if (chosen && (chosen.offsetTop - queries.offsetTop < kept || chosen.offsetTop - queries.offsetTop + chosen.offsetHeight > kept + queries.clientHeight)) {
      queries.scrollTop = chosen.offsetTop - queries.offsetTop - 60;
    }
    if (focused) root.querySelector(`[data-position="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  };
  render();
  if (root.dataset.scroll) {
    root.dataset.scroll = "";
    document.querySelector(data.answer)?.scrollIntoView({ behavior: "smooth", block: "start" }); // below the list on a phone
  }
}
