// Two lists of the same texts in two orders, with a line from the place of each to its new one. Text is only ever set with
// textContent. While the second order is being computed, `after` is null and the first list stands alone.
let whole = 0; // of how many candidates a person asked to see all: it holds for the next query too

export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".reranked");
  root.style.setProperty("--size", `${data.scale}rem`);
  const make = (tag, name, text) => {
    const element = document.createElement(tag);
    element.className = name;
    if (text !== undefined) element.textContent = text;
    return element;
  };
  const correct = new Set(data.correct);
  // Pixels, as in the style: the height of a row, which a projector's larger type makes higher, and the room for the lines.
  const ROW = 2.75 * data.scale * parseFloat(getComputedStyle(document.documentElement).fontSize), WIDTH = 74;
  const draw = () => {
    const isWhole = whole === data.before.length;
    const count = isWhole ? data.before.length : Math.min(data.shown, data.before.length);
    const before = data.before.slice(0, count), after = data.after && data.after.slice(0, count);
    const columnOf = (name, title, rows, scored) => {
      const column = make("section", name);
      const head = make("h4", "", title[0]);
      head.append(make("span", "quiet", title[1]));
      const list = make("ol", "");
      for (const row of rows) {
        const item = make("li", [correct.has(row.row) && "correct", row.row === data.chosen && "chosen"].filter(Boolean).join(" "));
        item.append(make("span", "rank", row.rank));
        const text = make("span", "text", row.text);
        text.title = row.text;
        item.append(text);
        if (scored && row.before !== row.rank) item.append(make("span", "was", `was ${row.before}`));
        item.append(make("span", "score", row.score));
        item.onpointerenter = () => point(row.row);
        item.onpointerleave = () => point(null);
        item.dataset.row = row.row;
        list.append(item);
      }
      column.append(head, list);
      return column;
    };
    root.replaceChildren();
    root.classList.toggle("alone", !after);
    root.append(columnOf("first", data.titles[0], before, false));
    if (after) {
      const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      svg.setAttribute("viewBox", `0 0 ${WIDTH} ${ROW * count}`);
      svg.setAttribute("aria-hidden", "true");
      svg.style.height = `${ROW * count}px`;
      const add = (tag, attributes, name) => {
        const part = document.createElementNS("http://www.w3.org/2000/svg", tag);
        for (const [key, value] of Object.entries(attributes)) part.setAttribute(key, value);
        part.setAttribute("class", name);
        svg.append(part);
        return part;
      };
      const middle = (rank) => ROW * (rank - 0.5);
      for (const row of [...after].sort((one, other) => correct.has(one.row) - correct.has(other.row))) {
        const end = middle(row.rank), kind = correct.has(row.row) ? "correct" : "";
        if (row.before <= count) {
          const start = middle(row.before);
          add("path", { d: `M2 ${start} C ${WIDTH / 2} ${start} ${WIDTH / 2} ${end} ${WIDTH - 2} ${end}` }, `line ${kind}`).dataset.row = row.row;
        } else {
          add("path", { d: `M${WIDTH - 34} ${end + 6} Q ${WIDTH - 16} ${end + 5} ${WIDTH - 2} ${end}` }, `line stub ${kind}`).dataset.row = row.row;
          add("text", { x: WIDTH - 38, y: end + 10, "text-anchor": "end" }, "old").textContent = row.before;
        }
      }
      root.append(svg, columnOf("second", data.titles[1], after, true));
    } else {
      const wait = make("section", "second waiting");
      wait.append(make("h4", "", data.titles[1][0]), make("p", "quiet", data.waiting));
      root.append(make("span", "gap"), wait);
    }
    if (data.before.length > data.shown) {
      const all = make("button", "all", isWhole ? `The first ${data.shown}` : `All ${data.before.length} candidates`);
      all.type = "button";
      all.onclick = () => {
        whole = isWhole ? 0 : data.before.length;
        draw();
        root.querySelector(".all").focus({ preventScroll: true });
      };
      const line = make("p", "more");
      line.append(all);
      root.append(line);
    }
  };
  // The text pointed at, in both lists, and its line.
  const point = (row) => {
    for (const part of root.querySelectorAll("[data-row]")) part.classList.toggle("pointed", row !== null && part.dataset.row === String(row));
  };
  draw();
}
