// A ranked list of sentences: text, bar and score of each in one row, with the level of chance through all rows. Text is only
// ever set with textContent. A row reports "picked" with the sentence's index; its two marks report "marked" with
// [index, 1 | 0 | -1]: relevant, not relevant, taken back. The query above the rows is shaded for the row pointed at.
let arrived = 0; // how often an address had set what the page shows when hits were drawn last

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".hits");
  const [above, list] = root.children;
  const old = parentElement.activeElement ?? parentElement.getRootNode().activeElement;
  const hadFocus = old?.dataset?.position;
  root.style.setProperty("--size", `${data.scale}rem`);
  root.style.containerType = data.axis === undefined ? "normal" : "inline-size"; // a list of other things has no rows
  root.classList.toggle("compared", data.rows.some((row) => row.change));
  root.classList.toggle("unmarked", !data.markable);
  root.classList.toggle("barless", data.rows.every((row) => row.bar === null));
  const make = (tag, name, text) => {
    const element = document.createElement(tag);
    element.className = name;
    if (text !== undefined) element.textContent = text;
    return element;
  };
  const button = (name, text, label, position, pressed, action) => {
    const element = make("button", name, text);
    element.type = "button";
    element.title = label;
    element.setAttribute("aria-label", label);
    element.setAttribute("aria-pressed", String(pressed));
    element.dataset.position = position;
    element.onclick = action;
    return element;
  };
  const place = (value) => `${value * 100}%`;
  // Of a text without a marked word in the two lines of a phone, they begin before the first one.
  const begun = (parts) => {
    const at = parts.findIndex((part) => part.shade > 0 || (part.shared && part.shade === undefined));
    const before = parts.slice(0, Math.max(0, at)).map((part) => part.text).join("");
    if (window.innerWidth > 640 || before.length < 65) return parts;
    return [{ text: `… ${[...before].slice(-20).join("").replace(/^\S*\s/, "")}` }, ...parts.slice(at)];
  };
  const textOf = (parts) =>
    parts.map((part) => {
      if (part.shade > 0) {
        const mark = make("mark", "carries", part.text);
        mark.style.setProperty("--shade", `${Math.round(10 + 36 * part.shade)}%`);
        return mark;
      }
      return part.shared && !part.shade && part.shade !== 0 ? make("mark", "shared", part.text) : part.text;
    });
  // Above the bars: what an empty, half and full one are, the name of the line and that of the band.
  const axisOf = (axis) => {
    const line = make("div", "axis");
    if (axis.unrelated !== null && axis.unrelated > 0) line.append(make("span", "unrelated", "unrelated"));
    if (axis.level !== null) {
      const level = make("span", axis.level > 0.6 ? "level before" : "level", axis.name);
      level.style.setProperty("--at", place(axis.level > 0.6 ? 1 - axis.level : Math.max(axis.level, 0.2)));
      line.append(level);
    }
    line.append(make("span", "low", axis.ends[0]), make("span", "middle", axis.middle), make("span", "high", axis.ends[1]));
    return line;
  };
  const query = make("p", "asked");
  const showQuery = (row) => {
    if (!data.asked || !row.asked.length) return;
    query.replaceChildren(make("span", "quiet", "Your query "), ...textOf(row.asked));
    query.append(make("span", "quiet", `: words in a stronger colour add more to the score`));
  };
  above.replaceChildren();
  if (data.asked) above.append(query);
  if (data.axis) {
    above.append(axisOf(data.axis));
    const parts = [`bars: ${data.axis.ends[0]} – ${data.axis.ends[1]}`];
    if (data.axis.unrelated > 0) parts.push("grey: unrelated");
    if (data.axis.level !== null) parts.push(`dashed: ${data.axis.name}`);
    if (data.markable) parts.push("✓ ✗: relevant or not");
    above.append(make("p", "legend", parts.join(" · ")));
    if (data.markable) above.append(make("span", "judged", "relevant?"));
  }
  const first = data.rows.find((row) => row.picked) ?? data.rows[0];
  if (first) showQuery(first);
  list.replaceChildren();
  for (const row of data.rows) {
    const line = make("li", row.picked ? "hit picked" : "hit");
    if (row.close === false) line.classList.add("far");
    line.onpointerenter = () => showQuery(row);
    line.onfocusin = line.onpointerenter;
    const rank = make("div", "rank");
    const name = make("span", row.id ? "number own" : "number", row.id || row.rank);
    if (row.id) name.title = `rank ${row.rank}`;
    rank.append(name);
    if (row.change) {
      const change = make("span", `change ${row.change.kind}`, row.change.text);
      change.title = row.change.hint;
      rank.append(change);
    }
    const text = button("text", undefined, data.pickHint, `p${row.index}`, row.picked, () => {
      root.dataset.scroll = row.picked ? "" : data.answer;
      setTriggerValue("picked", row.index);
    });
    text.title = row.parts.map((part) => part.text).join(""); // of which two lines are shown
    text.setAttribute("aria-label", text.title); // the whole sentence is its name
    text.append(...textOf(row.picked ? row.parts : begun(row.parts)));
    line.append(rank, text);
    if (row.bar !== null) {
      const track = make("span", "track");
      if (data.axis && data.axis.unrelated !== null) {
        const band = make("span", "band");
        band.style.width = place(data.axis.unrelated);
        track.append(band);
      }
      const bar = make("span", "bar");
      bar.style.width = place(Math.max(0, Math.min(1, row.bar)));
      if (row.firstShare != null) { // only a score that is a sum of terms has one: of all others together is the rest
        bar.classList.add("of-two");
        bar.style.setProperty("--first", place(row.firstShare));
      }
      track.append(bar);
      if (data.axis && data.axis.level !== null) {
        const level = make("span", "level");
        level.style.left = place(data.axis.level);
        level.title = data.axis.name;
        track.append(level);
      }
      line.append(track);
    }
    line.append(make("span", "score", row.score));
    const side = make("div", "side");
    const why = button("why", row.picked ? (data.pickedLabel ?? "Close") : "Why?", data.pickHint, `w${row.index}`, row.picked, text.onclick);
    why.setAttribute("aria-label", `${data.pickHint} (rank ${row.rank})`);
    why.dataset.live = "";
    side.append(why);
    if (data.markable) {
      for (const [value, sign, label] of [
        [1, "✓", "Relevant to the query"],
        [0, "✗", "Not relevant"],
      ]) {
        const on = row.relevant === value;
        const kind = `mark ${value ? "yes" : "no"}${on ? " on" : ""}`;
        const position = `m${row.index}:${value}`;
        const report = () => setTriggerValue("marked", [row.index, on ? -1 : value]);
        const mark = button(kind, sign, `${label} (rank ${row.rank})`, position, on, report);
        mark.dataset.live = "";
        side.append(mark);
      }
    }
    if (row.same) side.append(make("span", "same-text", row.same));
    const tag = make("span", "tag", row.tag);
    tag.title = row.tag;
    side.append(tag);
    line.append(side);
    if (row.terms?.length) {
      const terms = make("span", "terms");
      row.terms.forEach((term, number) => terms.append(number ? " + " : "", make("span", `term${number}`, term)));
      line.append(terms);
    }
    list.append(line);
  }
  // The answer to a click, or to a link that names a hit, may be drawn far below: bring it into sight once it is there.
  if (data.arrival > arrived) {
    arrived = data.arrival;
    root.dataset.scroll = data.answer;
  }
  if (root.dataset.scroll && data.answered) {
    const wanted = root.dataset.scroll;
    root.dataset.scroll = "";
    const until = Date.now() + 5000;
    const look = () => {
      const answer = document.querySelector(wanted);
      // Of an answer that is higher than the screen, the beginning.
      const block = answer?.offsetHeight > 0.8 * window.innerHeight ? "start" : "center";
      if (answer) answer.scrollIntoView({ behavior: "smooth", block });
      else if (Date.now() < until) setTimeout(look, 100);
    };
    look();
  }
  if (hadFocus) root.querySelector(`[data-position="${hadFocus}"]`)?.focus({ preventScroll: true });
}
