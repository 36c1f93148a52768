// All heads as tiles, by their kind or by their block, and the open one beside them as lines or as a matrix. A click, or Enter
// on the tile that the arrow keys reached, reports "clicked" with [block, head]; "shape" and "open" report the other choices.
// A cell has the hue of its key's relation to its query, as strong as its weight: a tile shows the mixture of its head.
const NARROW = 780; // pixels: below it the open head stands under the tiles
const LARGEST = 53, SMALLEST = 14, GAP = 5; // pixels
const FINGER = 32, LARGEST_NARROW = 39; // the same where the open head stands below, as on a phone

function readHeads(data) {
  // Four bytes with the length of a JSON text, that text, the relations, the cells of all heads, the weights of the open one.
  const bytes = new Uint8Array(data);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const length = view.getUint32(0, true);
  const layout = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  const area = layout.size * layout.size, first = 4 + length;
  const relations = bytes.subarray(first, first + area);
  const cells = bytes.subarray(first + area, first + area + layout.blocks * layout.heads * area);
  const begin = first + area + cells.length, count = layout.opened.tokens.length ** 2;
  const weights = Float32Array.from({ length: count }, (_, at) => view.getFloat32(begin + 4 * at, true));
  const own = Array.from(bytes.subarray(begin + 4 * count, begin + 5 * count), (relation) => layout.hues[relation]);
  return { layout, relations, cells, weights, own };
}

const inPercent = (share) => (share > 0 && share < 0.005 ? "less than 1 %" : `${(100 * share).toFixed(0)} %`);

// Where the page is dark, weak cells are stronger: on black, small differences of light are hard to see.
function paintTile(canvas, { size, hues, dark }, relations, cells) {
  canvas.width = canvas.height = size;
  const context = canvas.getContext("2d"), image = context.createImageData(size, size);
  for (let at = 0; at < size * size; at++) {
    const hue = hues[relations[at]], weight = cells[at] / 255;
    for (let part = 0; part < 3; part++) image.data[4 * at + part] = parseInt(hue.slice(1 + 2 * part, 3 + 2 * part), 16);
    image.data[4 * at + 3] = 255 * Math.min(1, dark ? (weight < 0.03 ? 3 * weight : 0.25 + 1.1 * weight) : weight < 0.03 ? weight : 0.1 + 1.1 * weight);
  }
  context.putImageData(image, 0, 0);
}

// Where the tiles stand at one size: by block a row for each; by kind a group for each, the small ones in a column beside the rest.
function placed(layout, width, size, u, narrow) {
  const gap = size < 30 ? 3 : GAP, step = size + gap, tiles = new Map(), titles = [];
  const put = (at, x, y) => tiles.set(at, [x, y]);
  if (layout.order === "block") {
    const left = narrow ? 0 : 62 * u, above = narrow ? 20 * u : 0;
    let y = 18 * u; // below the numbers of the heads
    for (let head = 0; head < layout.heads; head++) titles.push({ x: left + head * step, y: 0, name: String(head), soft: true, width: size });
    for (let block = 0; block < layout.blocks; block++) {
      titles.push({ x: 0, y: narrow ? y : y + size / 2 - 10 * u, name: `block ${block}`, soft: true });
      for (let head = 0; head < layout.heads; head++) put(block * layout.heads + head, left + head * step, y + above);
      y += step + above;
    }
    return { tiles, titles, width: left + layout.heads * step - gap, height: y };
  }
  const head = 23 * u, columns = Math.max(1, Math.floor((width + gap) / step));
  const group = (name, x, y, most) => {
    const { title, heads, hue } = layout.groups[name];
    titles.push({ x, y, name: title, count: heads.length || "none", hue });
    heads.forEach((at, place) => put(at, x + (place % most) * step, y + head + Math.floor(place / most) * step));
    return y + head + Math.ceil(heads.length / most) * step + 5 * u;
  };
  const small = ["before", "after", "itself"];
  let y = 0;
  if (narrow) {
    y = group("words", 0, 0, columns);
    const third = Math.max(1, Math.floor(columns / 3));
    y = Math.max(...small.map((name, place) => group(name, 0.375 * place * width, y, third)));
    y = group("spread", 0, y, columns);
  } else {
    const longest = Math.max(...small.map((name) => widthOf(`${layout.groups[name].title} none`, 14, 600, document.body)));
    const side = Math.max(2, Math.ceil((longest + 22 * u) / step)), wide = Math.max(1, columns - side);
    const x = wide * step + 18 * u;
    y = group("spread", 0, group("words", 0, 0, wide), wide);
    y = Math.max(y, small.reduce((below, name) => group(name, x, below, side), 0));
  }
  return { tiles, titles, width, height: group("special", 0, y, columns) };
}

function fitted(layout, width, u, narrow) {
  const inRow = Math.max(SMALLEST + 4, Math.floor(width / layout.heads) - 3); // smaller than a finger rather than cut off
  const [most, least] = narrow ? [LARGEST_NARROW, layout.order === "block" ? Math.min(FINGER, inRow) : FINGER] : [Math.round(LARGEST * u), SMALLEST];
  for (let size = most; size > least; size--) {
    const found = placed(layout, width, size, u, narrow);
    if ((narrow || found.height <= layout.height) && found.width <= width) return { ...found, size };
  }
  return { ...placed(layout, width, least, u, narrow), size: least };
}

// The open head: left who looks, right at what. With a token in `from`, its lines alone, with their weights.
function drawLines(box, opened, weights, own, from, point, whom) {
  const u = rem(), count = opened.tokens.length, width = box.clientWidth, height = box.clientHeight;
  const svg = picture(width, height, opened.said), top = 20 * u, step = (height - top - 2) / count;
  const size = Math.min(14, (step * 0.9) / u), y = (place) => top + (place + 0.5) * step;
  const names = Math.min(width * 0.33, 4 + Math.max(...opened.tokens.map((token) => widthOf(token.piece, size, 700, box))));
  const left = names + 8 * u, right = width - names - 8 * u, middle = (left + right) / 2;
  svg.append(label(0, 11 * u, "who looks", { "font-size": 12 * u, class: "soft" }));
  svg.append(label(width, 11 * u, "at what", { "font-size": 12 * u, "text-anchor": "end", class: "soft" }));
  const links = [];
  for (let query = 0; query < count; query++)
    if (from === null || from === query) for (let key = 0; key < count; key++) links.push([weights[query * count + key], query, key]);
  links.sort((one, other) => other[0] - one[0]);
  const shown = links.filter(([weight], place) => weight > 0.06 || (place < 2 * count && weight > 0.005)).reverse();
  for (const [weight, query, key] of shown) {
    const path = `M${left} ${y(query)}C${middle} ${y(query)} ${middle} ${y(key)} ${right} ${y(key)}`;
    const line = { d: path, fill: "none", stroke: own[query * count + key], "stroke-width": Math.max(0.6, 8 * u * weight).toFixed(1) };
    svg.append(svgElement("path", { ...line, opacity: (0.25 + 0.7 * weight).toFixed(2) }));
  }
  const [seer, seen] = from === null ? (opened.link ?? [-1, -1]) : [from, -1];
  opened.tokens.forEach((token, place) => {
    const attributes = { "font-size": size * u, class: token.special ? "soft" : "" };
    const one = label(names, y(place) + 0.35 * size * u, token.piece, { ...attributes, "text-anchor": "end", "font-weight": place === seer ? 700 : 400 });
    if (place === seer) one.setAttribute("class", "chosen");
    svg.append(one, label(width - names, y(place) + 0.35 * size * u, token.piece, { ...attributes, "font-weight": place === seen ? 700 : 400 }));
    const touch = svgElement("rect", { x: 0, y: y(place) - step / 2, width: left, height: step, fill: "transparent" });
    touch.addEventListener("mouseenter", () => point(place));
    touch.addEventListener("click", () => point(place));
    byKey(touch, `from ${place}`, `What “${token.piece}” looks at`, () => point(place));
    touch.addEventListener("focus", () => touch.matches(":focus-visible") && point(place));
    svg.append(touch);
    if (whom) {
      const name = svgElement("rect", { x: right, y: y(place) - step / 2, width: width - right, height: step, fill: "transparent", class: "whom" });
      name.append(svgElement("title", {}, `Who looks at “${token.piece}”?`));
      name.addEventListener("click", () => whom(place));
      byKey(name, `whom ${place}`, `Who looks at “${token.piece}”? Opens the view of one word`, () => whom(place));
      svg.append(name);
    }
    const weight = from === null ? 0 : weights[from * count + place];
    if (weight > 0.005 && step > 9) svg.append(label(right - 4 * u, y(place) + 4 * u, inPercent(weight), { "font-size": 12 * u, "text-anchor": "end", class: "halo" }));
  });
  if (from === null && opened.link)
    svg.append(label(middle, (y(seer) + y(seen)) / 2 - 6 * u, opened.share, { "font-size": 15 * u, "font-weight": 700, "text-anchor": "middle", class: "halo" }));
  svg.addEventListener("mouseleave", () => point(null));
  svg.setAttribute("role", "group"); // of buttons, in place of an image
  (svg.querySelector(`[data-at="${box.last}"]`) ?? svg.querySelector("[data-at]"))?.setAttribute("tabindex", 0);
  box.replaceChildren(svg);
}

// A place in the lines as a button for the keyboard: one is reached by Tab, the others by the arrow keys (`movedInLines`).
function byKey(place, at, said, act) {
  place.dataset.at = at;
  for (const [name, value] of [["role", "button"], ["tabindex", -1], ["aria-label", said]]) place.setAttribute(name, value);
  place.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    act();
  });
}

function movedInLines(event, box) {
  const [side, row] = (event.target.dataset?.at ?? "").split(" "), step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const next = { ArrowLeft: "from", ArrowRight: "whom" }[event.key] ?? (step && side);
  const found = row !== undefined && next && box.querySelector(`[data-at="${next} ${+row + (step ?? 0)}"]`);
  if (!found) return;
  event.preventDefault();
  box.last = found.dataset.at;
  box.querySelectorAll("[data-at]").forEach((one) => one.setAttribute("tabindex", one === found ? 0 : -1));
  found.focus();
}

function drawMatrix(box, opened, weights, own) {
  const u = rem(), count = opened.tokens.length, width = box.clientWidth, height = box.clientHeight;
  const svg = picture(width, height, opened.said);
  const longest = Math.min(width * 0.3, Math.max(...opened.tokens.map((token) => widthOf(token.piece, 13, 400, box))));
  const left = longest + 8 * u, top = longest * 0.77 + 12 * u;
  const cell = Math.max(4, Math.min((width - left - longest * 0.5) / count, (height - top - 2) / count)), size = Math.min(13, (cell * 0.95) / u) * u;
  opened.tokens.forEach((token, row) => {
    const name = { "font-size": size, class: token.special ? "soft" : "" };
    const x = left + (row + 0.5) * cell + 3 * u, y = top + (row + 0.5) * cell;
    svg.append(label(left - 5 * u, y + 0.35 * size, token.piece, { ...name, "text-anchor": "end" }));
    svg.append(label(0, 0, token.piece, { ...name, transform: `translate(${x} ${top - 5 * u}) rotate(-50)` }));
    opened.tokens.forEach((other, column) => {
      const weight = weights[row * count + column], at = { x: left + column * cell + 0.5, y: top + row * cell + 0.5 };
      const rect = svgElement("rect", { ...at, width: cell - 1, height: cell - 1, rx: 2, fill: own[row * count + column], "fill-opacity": Math.max(0.05, weight).toFixed(3) });
      rect.append(svgElement("title", {}, `${token.piece} → ${other.piece}: ${inPercent(weight)}`));
      svg.append(rect);
    });
  });
  if (opened.link) {
    const [row, column] = opened.link;
    svg.append(svgElement("rect", { x: left + column * cell - 1, y: top + row * cell - 1, width: cell + 2, height: cell + 2, rx: 3, fill: "none", class: "ring" }));
  }
  box.replaceChildren(svg);
}

export default function ({ data, parentElement, setTriggerValue }) {
  const { layout, relations, cells, weights, own } = readHeads(data);
  const root = parentElement.querySelector(".heads"), { opened, size } = layout, area = size * size;
  const [box, keys, hint, one, pills] = [".tiles", ".keys", ".hint", ".one", ".pills"].map((name) => root.querySelector(name));
  const selected = layout.selected[0] * layout.heads + layout.selected[1];
  const choose = (at) => {
    for (const tile of box.querySelectorAll(".tile")) tile.setAttribute("aria-pressed", String(+tile.dataset.at === at));
    setTriggerValue("clicked", [Math.floor(at / layout.heads), at % layout.heads]);
  };
  box.setAttribute("aria-label", layout.label);
  const tiles = layout.hints.map((said, at) => {
    const tile = element("button", "tile"), canvas = element("canvas");
    tile.type = "button";
    tile.dataset.at = at;
    tile.tabIndex = at === selected ? 0 : -1;
    tile.setAttribute("aria-label", said);
    tile.setAttribute("aria-pressed", String(at === selected));
    paintTile(canvas, layout, relations, cells.subarray(at * area, (at + 1) * area));
    tile.append(canvas);
    tile.onclick = () => choose(at);
    tile.onmouseenter = tile.onfocus = () => (hint.textContent = said);
    return tile;
  });
  hint.textContent = layout.hints[selected];

  keys.replaceChildren(...(layout.order === "block" ? layout.keys.map(([name, hue]) => named(name, "", hue)) : []));
  function named(name, count, hue) {
    const line = element("span", "name");
    if (hue !== undefined) {
      const square = element("i"); // of several hues where the attention is spread over all kinds
      square.style.background = hue === null ? `conic-gradient(${layout.hues.join(", ")})` : layout.hues[hue];
      line.append(square);
    }
    line.append(element("b", "", name), element("span", "soft", ` ${count}`));
    return line;
  }

  let places = new Map();
  const move = (from, right, down) => {
    const [x, y] = places.get(from);
    const cost = ([at, [toX, toY]]) => {
      const along = right * (toX - x) + down * (toY - y), across = right ? Math.abs(toY - y) : Math.abs(toX - x);
      return at === from || along <= 1 ? Infinity : along + 3 * across;
    };
    const best = [...places].sort((a, b) => cost(a) - cost(b))[0];
    if (best && cost(best) < Infinity) tiles[best[0]].focus();
  };
  box.onkeydown = (event) => {
    const step = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[event.key];
    const at = event.target.dataset?.at;
    if (!step || at === undefined) return;
    move(+at, ...step);
    event.preventDefault();
  };

  one.querySelector("h3").textContent = opened.title;
  one.querySelector(".does").textContent = opened.does;
  one.querySelector(".note").textContent = opened.note;
  const open = one.querySelector(".link");
  open.textContent = opened.link_text;
  for (const control of [open, one.querySelector("[data-shape]").parentElement]) control.dataset.live = "";
  open.onclick = () => setTriggerValue("open", true);
  const plot = one.querySelector(".plot");
  let shape = opened.shape, from = null;
  const whom = opened.leads ? (place) => setTriggerValue("whom", place) : null;
  const point = (place) => {
    if (place === from) return;
    from = place;
    drawKeepingFocus(root, "at", () => drawLines(plot, opened, weights, own, from, point, whom));
  };
  plot.onkeydown = (event) => movedInLines(event, plot);
  plot.onfocusout = (event) => event.relatedTarget && !plot.contains(event.relatedTarget) && point(null);
  const drawOne = () => {
    from = null;
    for (const button of one.querySelectorAll("[data-shape]")) button.setAttribute("aria-pressed", String(button.dataset.shape === shape));
    if (shape === "lines") drawLines(plot, opened, weights, own, null, point, whom);
    else drawMatrix(plot, opened, weights, own);
  };
  for (const button of one.querySelectorAll("[data-shape]"))
    button.onclick = () => {
      shape = button.dataset.shape;
      drawOne();
      setTriggerValue("shape", shape);
    };

  pills.hidden = !layout.telling.length;
  pills.replaceChildren(element("span", "soft", "Most unusual links"));
  layout.telling.forEach(({ at, text }, place) => {
    const pill = element("button", "pill");
    pill.type = "button";
    pill.setAttribute("aria-pressed", String(at === selected));
    pill.append(element("b", "", `${place + 1}`), ` ${text}`);
    pill.onclick = () => choose(at);
    pills.append(pill);
  });

  const drawAll = () => {
    const u = rem(), narrow = root.clientWidth < NARROW * u;
    root.classList.toggle("narrow", narrow);
    const found = fitted(layout, box.clientWidth, u, narrow);
    places = found.tiles;
    box.style.height = `${found.height}px`;
    box.style.minWidth = found.width > box.clientWidth ? `${found.width}px` : "";
    const titles = found.titles.map(({ x, y, name, count = "", hue, soft, width }) => {
      const title = named(name, count, hue);
      title.classList.toggle("soft", Boolean(soft));
      title.style.cssText = `left: ${x}px; top: ${y}px${width ? `; width: ${width}px; text-align: center` : ""}`;
      return title;
    });
    for (const [at, [x, y]] of places) {
      tiles[at].style.cssText = `left: ${x}px; top: ${y}px; width: ${found.size}px; height: ${found.size}px`;
      tiles[at].firstChild.style.imageRendering = size > 1.3 * found.size ? "auto" : "pixelated";
    }
    const marks = layout.telling.map(({ at }, place) => {
      tiles[at].classList.add("telling");
      const mark = element("span", "mark", `${place + 1}`), [x, y] = places.get(at);
      mark.classList.toggle("on", at === selected);
      mark.style.cssText = `left: ${x - 6}px; top: ${y - 3}px`;
      mark.setAttribute("aria-hidden", "true");
      return mark;
    });
    box.replaceChildren(...titles, ...tiles, ...marks);
    const above = plot.offsetTop - one.offsetTop, rows = opened.tokens.length * (shape === "lines" ? 24 : 22) * u + 24 * u;
    plot.style.height = `${narrow ? Math.max(200 * u, rows) : Math.max(240 * u, Math.min(found.height, layout.height) - above - 30 * u)}px`;
    drawOne();
    root.dataset.drawn = `${layout.blocks}x${layout.heads}x${size}`;
  };
  const draw = () => drawKeepingFocus(root, "at", drawAll);
  draw();
  drawAtEachWidth(root, draw);
  return () => root.bertInternalsObserver.disconnect();
}
