// What one word looks at: a fan for one head, and a column of cells for every head; where the columns of all heads would be
// too narrow, those of one block, with a button for each block. Everything is drawn from the weights of this word. Reports
// "head" with [block, head] and "word" with the position of a token that was pressed.
const REST = 600; // milliseconds until a head on which a person rests is reported
const TOP = 46; // pixels above the rows: the blocks' names and the marks of the most decisive heads
const LEAST = { all: 3, one: 8 }; // pixels of a column, of all blocks beside each other or of one

const shareOf = (weight) => (weight >= 0.005 ? `${Math.round(100 * weight)} %` : weight >= 0.0005 ? "< 1 %" : "0");

class Looks {
  constructor(root, data, send) {
    const { facts, arrays } = unpack(data);
    Object.assign(this, { root, facts, send, weights: arrays[0][1].values, stage: root.querySelector(".stage") });
    this.hint = root.querySelector(".hint");
  }

  weight(block, head, row) {
    const { heads, rows } = this.facts;
    return this.weights[(block * heads + head) * rows.length + row];
  }

  // What a head does with its attention, in words: the two tokens that get most.
  says(block, head) {
    const order = this.facts.rows.map((row, number) => [this.weight(block, head, number), row.quiet || row.name === "itself" ? row.name : `“${row.name}”`]).sort((a, b) => b[0] - a[0]);
    return `block ${block}, head ${head}: ${order.slice(0, 3).map(([weight, name]) => `${name} ${shareOf(weight)}`).join(", ")}`;
  }

  choose(block, head) {
    const { blocks, heads } = this.facts;
    this.head = [Math.min(blocks - 1, Math.max(0, block)), Math.min(heads - 1, Math.max(0, head))];
    this.draw();
    clearTimeout(this.root.timer);
    this.root.timer = setTimeout(() => this.send("head", this.head), REST);
  }

  sizes() {
    const u = rem(), { rows, blocks, heads } = this.facts, width = this.stage.clientWidth, isNarrow = width < 620;
    // On a low screen the rows are lower, so that all of them stand on it.
    const high = Math.max(250 * u, Math.min(440 * u, innerHeight - (isNarrow ? 400 : 475) * u));
    const step = Math.max((isNarrow ? 20 : 16) * u, Math.min(27.5 * u, high / rows.length));
    const names = Math.max(...rows.map((row) => widthOf(row.name, 14, 600, this.root)));
    const share = 46 * u, namesWidth = Math.min(names, (isNarrow ? 0.2 : 0.14) * width) + 8 * u;
    const end = (isNarrow ? 0.16 : 0.17) * width + 30 * u; // where the curves end and the names begin
    const left = end + namesWidth + share + (isNarrow ? 10 : 26) * u, gap = isNarrow ? 3 : 10 * u;
    // A box is narrower than its names for a moment while a page changes, and always in a split screen: no size is negative.
    const room = Math.max(0, width - left - 3), ofAll = (room - gap * (blocks - 1)) / (blocks * heads);
    const isOne = blocks > 1 && ofAll < LEAST.all * u;
    const each = isOne ? Math.max(LEAST.one * u, Math.min(22 * u, room / heads)) : Math.max(LEAST.all * u, ofAll);
    const x = (block, head) => left + (isOne ? 0 : block * (each * heads + gap)) + head * each;
    const shown = isOne ? [this.head[0]] : [...Array(blocks).keys()]; // blocks whose heads have columns
    const needed = x(shown.at(-1), heads) + 2;
    const rowsEnd = TOP * u + rows.length * step + 4 * u; // below it, the heads' numbers and the colours
    return { u, width: Math.max(width, needed), isNarrow, isOne, shown, step, end, namesWidth, share, left, each, x, top: TOP * u, rowsEnd, height: rowsEnd + 14 * u };
  }

  draw() {
    if (!this.stage.clientWidth) return;
    const s = (this.size = this.sizes()), { facts, head } = this, [block, number] = head;
    const svg = picture(s.width, s.height, `${facts.word} in ${this.says(block, number)}`);
    svg.append(this.cells(s), this.scale(s), this.marks(s), this.fan(s, block, number));
    const values = facts.rows.map((row, at) => [row.name, shareOf(this.weight(block, number, at))]);
    this.stage.replaceChildren(svg, valuesTable(`Block ${block}, head ${number}`, ["token", "share of its attention"], values));
    this.hint.textContent = this.says(block, number);
    this.blocks();
    this.pills();
  }

  fan(s, block, number) {
    const { facts } = this, { u } = s, group = svgElement("g");
    const y = (at) => s.top + (at + 0.5) * s.step;
    const own = facts.rows.findIndex((row) => row.position === facts.position), middle = y(own);
    const strongest = facts.rows.reduce((best, row, at) => (at !== own && !row.quiet && this.weight(block, number, at) > this.weight(block, number, best) ? at : best), facts.rows.findIndex((row, at) => at !== own && !row.quiet));
    const [from, chipWidth] = wordChip(facts.word, middle, 0.15 * s.width, this.root);
    group.append(label(0, 14 * u, `${facts.reversed ? "who looks: " : s.isNarrow ? "" : "one head: "}block ${block}, head ${number}`, { class: "soft" }));
    facts.rows.forEach((row, at) => {
      const weight = this.weight(block, number, at), isStrong = at === strongest && weight >= 0.05;
      group.append(lookCurve(chipWidth, middle, s.end - 6 * u, y(at), weight, isStrong));
    });
    group.append(from);
    if (facts.reversed) group.append(svgElement("path", { d: `M${chipWidth + 1} ${middle}l${9 * u} ${-6 * u}v${12 * u}z`, fill: "var(--st-primary-color)" }));
    facts.rows.forEach((row, at) => {
      const weight = this.weight(block, number, at), isStrong = at === strongest && weight >= 0.05;
      const line = svgElement("g", { class: row.position >= 0 && at !== own ? "name" : "", "data-position": row.position });
      let name = row.name;
      while (name.length > 3 && widthOf(name, 14, 600, this.root) > s.namesWidth) name = `${name.slice(0, -2)}…`;
      line.append(svgElement("rect", { x: s.end - 6 * u, y: y(at) - s.step / 2, width: s.namesWidth + s.share + 6 * u, height: s.step, opacity: 0 }));
      line.append(svgElement("title", {}, row.position >= 0 && at !== own ? `${row.name}: press to see ${facts.reversed ? "who looks at it" : "what it looks at"}` : row.name));
      line.append(label(s.end, y(at) + 5 * u, name, { "font-size": 14 * u, "font-weight": isStrong ? 600 : 400, class: row.quiet ? "soft" : "" }));
      line.append(label(s.end + s.namesWidth + s.share, y(at) + 5 * u, shareOf(weight), { "text-anchor": "end", "font-weight": isStrong ? 600 : 400, class: isStrong ? "num" : "num soft" }));
      line.onclick = () => row.position >= 0 && at !== own && this.send("word", row.position);
      group.append(line);
    });
    return group;
  }

  cells(s) {
    const { facts } = this, group = svgElement("g", { class: "column" });
    for (const block of s.shown) {
      const x = s.x(block, 0), width = s.each * facts.heads, isShort = width < 60 * s.u;
      group.append(label(x + width / 2, 14 * s.u, s.isOne ? `heads of block ${block}` : isShort ? String(block) : `block ${block}`, { "text-anchor": "middle", class: "soft" }));
      // The first and the last number, and between them as many as have room.
      const every = [1, 2, 3, 4, 6].find((number) => number * s.each > 17 * s.u) ?? facts.heads - 1;
      for (let head = 0; head < facts.heads; head += Math.max(1, every))
        group.append(label(x + (head + 0.5) * s.each, s.height - 3 * s.u, String(head), { "text-anchor": "middle", "font-size": 11 * s.u, class: "soft" }));
      facts.rows.forEach((_, row) => group.append(svgElement("rect", { x, y: s.top + row * s.step + 1, width, height: s.step - 2, fill: "var(--st-primary-color)", opacity: 0.05 })));
      for (let head = 0; head < facts.heads; head++)
        facts.rows.forEach((_, row) => {
          const weight = this.weight(block, head, row);
          if (weight < 0.01) return;
          const line = s.each > 5 ? 1 : 0;
          group.append(svgElement("rect", { x: s.x(block, head), y: s.top + row * s.step + 1, width: s.each - line, height: s.step - 2, fill: "var(--st-primary-color)", opacity: Math.min(1, weight ** 0.8).toFixed(3), class: "cell" }));
        });
    }
    group.onclick = (event) => {
      const place = this.at(event);
      if (place) this.choose(...place);
    };
    group.onmousemove = (event) => {
      const place = this.at(event);
      if (place) this.hint.textContent = this.says(...place);
    };
    group.onmouseleave = () => (this.hint.textContent = this.says(...this.head));
    return group;
  }

  at(event) {
    const svg = this.stage.querySelector("svg"), { size: s, facts } = this;
    const x = (event.clientX - svg.getBoundingClientRect().left) / (svg.currentCSSZoom ?? 1); // a lecture makes it larger or smaller
    for (const block of s.shown) {
      const head = Math.floor((x - s.x(block, 0)) / s.each);
      if (head >= 0 && head < facts.heads) return [block, head];
    }
    return null;
  }

  // What the colours of the cells stand for, below the names.
  scale(s) {
    const group = svgElement("g"), { u } = s, width = 60 * u, steps = 12, start = s.left - 48 * u - width, y = s.height - 12 * u;
    if (start < 0) return group;
    for (let step = 0; step < steps; step++)
      group.append(svgElement("rect", { x: start + (step * width) / steps, y, width: width / steps, height: 9 * u, fill: "var(--st-primary-color)", opacity: Math.max(0.05, ((step + 0.5) / steps) ** 0.8).toFixed(3) }));
    group.append(label(start - 5 * u, y + 9 * u, "0", { "text-anchor": "end", "font-size": 11 * u, class: "soft" }));
    group.append(label(start + width + 5 * u, y + 9 * u, "100 %", { "font-size": 11 * u, class: "soft" }));
    return group;
  }

  // A frame around the head of the fan, and numbers above the most decisive ones.
  marks(s) {
    const group = svgElement("g"), [block, number] = this.head, u = s.u;
    this.facts.decisive.forEach((each, place) => {
      if (!s.shown.includes(each.block)) return;
      const x = s.x(each.block, each.head) + s.each / 2, isChosen = each.block === block && each.head === number;
      const colour = isChosen ? "var(--orange)" : "var(--soft)";
      group.append(label(x, s.top - 11 * u, String(place + 1), { "text-anchor": "middle", "font-weight": 600, "font-size": 12 * u }));
      group.append(svgElement("path", { d: `M${x - 4 * u} ${s.top - 8 * u}h${8 * u}l${-4 * u} ${5 * u}z`, fill: colour }));
    });
    const frame = { x: s.x(block, number) - 2, y: s.top - 2, width: Math.max(3, s.each) + 3, height: s.rowsEnd - s.top, rx: 3 };
    group.append(svgElement("rect", { ...frame, fill: "none", stroke: "var(--orange)", "stroke-width": 2 }));
    return group;
  }

  // Where one block's heads have columns: a button for each block.
  blocks() {
    const box = this.root.querySelector(".blocks");
    const focused = [...box.querySelectorAll("button")].indexOf(box.getRootNode().activeElement);
    box.hidden = !this.size.isOne;
    box.replaceChildren(element("span", "", "Block"));
    for (let block = 0; block < this.facts.blocks; block++) {
      const isShown = block === this.head[0], button = element("button", "", String(block));
      button.type = "button";
      button.setAttribute("aria-label", `Block ${block}`);
      button.setAttribute("aria-pressed", String(isShown));
      button.onclick = () => {
        this.choose(block, this.head[1]);
        box.querySelectorAll("button")[block].focus();
      };
      box.append(button);
    }
    if (focused >= 0) box.querySelectorAll("button")[focused]?.focus();
  }

  pills() {
    const [block, number] = this.head, box = this.root.querySelector(".pills");
    box.hidden = !this.facts.decisive.length;
    box.setAttribute("aria-label", this.facts.heading);
    box.replaceChildren(element("span", "", this.facts.heading));
    this.facts.decisive.forEach((each, place) => {
      const pill = element("button");
      pill.type = "button";
      pill.append(element("b", "", String(place + 1)), ` ${each.says}`);
      pill.setAttribute("aria-pressed", String(each.block === block && each.head === number));
      pill.onclick = () => this.choose(each.block, each.head);
      box.append(pill);
    });
  }
}

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".looks");
  const looks = new Looks(root, data, setTriggerValue);
  looks.head = looks.facts.chosen;
  looks.stage.onkeydown = (event) => {
    const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
    if (!step) return;
    event.preventDefault();
    looks.choose(looks.head[0] + step[0], looks.head[1] + step[1]);
  };
  root.bertInternalsLooks = looks; // for the test that compares what is drawn
  looks.draw();
  drawAtEachWidth(root, () => looks.draw());
}
