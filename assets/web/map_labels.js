// Places the labels of maps. In a small map each label stands beside its point, at the first free place around it, with a line
// if that is not close; equal words on nearly the same place share one label; what has no room is left out. In a large map the
// labels stay where they are, and as many are shown as have room. Both again after each zoom: then more have room.
// Two maps of the same tokens are joined by lines between the points of the chosen word.
// The figures are found on the page, since Streamlit draws them later than this component.
const GAP = { x: 4, y: 1 }; // pixels between labels, so that each can be read by itself
const SAME = 90; // pixels between labels of one text, which say nothing new
const MOST_KEPT = 12; // labels of chosen points and shared words that may overlap; if there are more, they come first only
const FEW = 80; // points of a small map, as in scatter.py: with more, labels would find no place between the points
const ONE_PLACE = 15; // pixels: equal words that are nearer share a label
const CLOSE = 13; // pixels: a label that is farther from its point gets a line
const REACHES = [8, 13, 19, 27, 36, 46, 60]; // pixels from a point to its label, the nearest first
// A label stands beside all lines where there is a place not far away, else where one runs behind it.
const TRIES = [...REACHES.slice(0, 5).map((reach) => [reach, true]), ...REACHES.map((reach) => [reach, false])];
const AROUND = [0, Math.PI, -Math.PI / 2, Math.PI / 2, -0.7, 0.7, Math.PI + 0.7, Math.PI - 0.7, -1.15, 1.15, Math.PI + 1.15, Math.PI - 1.15];
const ASIDE = [-Math.PI / 2, Math.PI, Math.PI / 2, ...AROUND];
const RIBBON = "stroke: light-dark(rgba(43, 123, 186, 0.28), rgba(108, 176, 242, 0.5))";
const MARKED = "rgb(43, 123, 186)"; // theme.BLUE, the colour of the chosen word
const SVG = "http://www.w3.org/2000/svg";
const MAPS = ":is([class*='st-key-map_'], .st-key-senses_map) .js-plotly-plot";
const overlap = (a, b) => a.left < b.right + GAP.x && b.left < a.right + GAP.x && a.top < b.bottom + GAP.y && b.top < a.bottom + GAP.y;
const isRepeated = (a, b) => a.text === b.text && Math.hypot(a.left - b.left, a.top - b.top) < SAME;
const isIn = (box, x, y, more = 0) => x > box.left - more && x < box.right + more && y > box.top - more && y < box.bottom + more;
const away = (box, x, y) => Math.hypot(Math.max(box.left - x, 0, x - box.right), Math.max(box.top - y, 0, y - box.bottom));
// Whether two lines cross, by the sides on which the ends of each lie of the other.
const side = (a, b, c) => Math.sign((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]));
const cross = (a, b, c, d) => side(a, b, c) !== side(a, b, d) && side(c, d, a) !== side(c, d, b);

function draw(name, attributes, parent) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  parent.append(element);
  return element;
}

// A transparent drawing above an element, made anew.
function sheet(host, name) {
  host.querySelector(`:scope > svg.${name}`)?.remove();
  const { width, height } = host.getBoundingClientRect();
  const style = "position: absolute; left: 0; top: 0; pointer-events: none; overflow: visible;";
  return draw("svg", { class: name, width, height, "aria-hidden": "true", style }, host);
}

// Points with their labels, in the page's pixels; null for a map whose labels are a trace of their own.
function labelled(figure) {
  const found = [];
  for (const trace of figure.querySelectorAll(".scatterlayer .trace")) {
    const points = trace.querySelectorAll(".point"), texts = trace.querySelectorAll(".textpoint text");
    if (!points.length && !texts.length) continue; // lines
    if (!points.length || points.length !== texts.length) return null;
    points.forEach((point, at) => {
      const { left, right, top, bottom } = point.getBoundingClientRect();
      found.push({ text: texts[at], x: (left + right) / 2, y: (top + bottom) / 2, half: (right - left) / 2 });
    });
  }
  return found.length && found.length <= FEW ? found : null;
}

// Places every few pixels on the lines within a map and from it to another one, in the page's pixels.
function onLines(figure) {
  const between = figure.closest("[data-testid=stHorizontalBlock]")?.querySelectorAll(":scope > svg.bi-joined path") ?? [];
  return [...figure.querySelectorAll(".shapelayer path, .scatterlayer .js-line"), ...between].flatMap((line) => {
    const matrix = line.getScreenCTM(), count = matrix ? Math.ceil(line.getTotalLength() / 5) : 0;
    return Array.from({ length: count }, (_, at) => {
      const { x, y } = line.getPointAtLength(at * 5).matrixTransform(matrix);
      return [x, y];
    });
  });
}

const isBold = (text) => [...text.querySelectorAll("tspan")].some((part) => part.style.fontWeight === "bold");
const FUNCTION = /^(\[.*\]|\W+|a|an|the|of|in|on|at|by|to|and|or|is|was|it|i|we)$/i; // words that may wait for a place

function place(figure, points) {
  const plot = figure.querySelector(".nsewdrag, .cartesianlayer .plot")?.getBoundingClientRect();
  for (const { text } of points) {
    text.querySelector(".times")?.remove();
    text.style.transform = "";
    text.style.display = "";
    text.dataset.more = "false";
  }
  const isMarked = (text) => !figure.closest(".st-key-senses_map") && text.closest(".trace")?.querySelector(".point")?.style.fill === MARKED;
  for (const { text } of points) text.classList.toggle("bi-marked", isMarked(text));
  // All at once: each change costs a layout.
  points.forEach((point) => {
    const { left, top, width, height } = point.text.getBoundingClientRect();
    const style = getComputedStyle(point.text);
    Object.assign(point, {
      left, top, width, height, word: point.text.textContent, size: parseFloat(style.fontSize), isFaint: Number(style.fillOpacity) < 1,
      isStrong: isBold(point.text),
    });
  });
  const isSelection = points.some((point) => point.isFaint);
  const rank = (point) => (isSelection && !point.isFaint ? 20 : 0) + (point.isStrong ? 10 : 0) + (FUNCTION.test(point.word.trim()) ? 0 : 3);
  const order = [...points].sort((a, b) => rank(b) - rank(a));
  const host = figure.querySelector(".svg-container"), home = host.getBoundingClientRect();
  const lines = sheet(host, "bi-leaders"), taken = [], paths = [], leaders = [], done = new Set(), drawn = onLines(figure);
  // Joining lines leave the first map to the right, or down on a phone: the labels of the chosen word stand elsewhere there.
  const isFirst = joined.length > 0 && figure.closest(".st-key-map_0") !== null;
  for (const point of order) {
    if (done.has(point)) continue;
    const isOut = plot?.width && !isIn(plot, point.x, point.y);
    const group = order.filter((other) => !done.has(other) && other.word === point.word && other.isStrong === point.isStrong
      && Math.hypot(other.x - point.x, other.y - point.y) < ONE_PLACE);
    group.forEach((other) => {
      done.add(other);
      if (other !== point) other.text.style.display = "none";
    });
    point.text.dataset.times = String(group.length);
    if (isOut) {
      point.text.style.display = "none";
      continue;
    }
    if (group.length > 1) {
      const times = document.createElementNS(SVG, "tspan");
      times.setAttribute("class", "times");
      const turns = /[\u0590-\u08ff\ufb1d-\ufefc]/.test(point.text.textContent) ? "\u200e" : ""; // else a name from the right takes the number before it
      times.textContent = ` ${turns}×${group.length}`;
      point.text.append(times);
      const { left, top, width, height } = point.text.getBoundingClientRect();
      Object.assign(point, { left, top, width, height });
    }
    const { width, height } = point, half = Math.max(...group.map((other) => other.half));
    const heap = {
      left: Math.min(...group.map((other) => other.x)), right: Math.max(...group.map((other) => other.x)),
      top: Math.min(...group.map((other) => other.y)), bottom: Math.max(...group.map((other) => other.y)),
    };
    const middle = [(heap.left + heap.right) / 2, (heap.top + heap.bottom) / 2];
    let found = null;
    for (const [reach, isBeside] of TRIES) {
      for (const angle of isFirst && point.isStrong ? ASIDE : AROUND) {
        const [cos, sin] = [Math.cos(angle), Math.sin(angle)], across = Math.abs(cos) > 0.35 ? Math.sign(cos) : 0, down = Math.abs(sin) > 0.5 ? Math.sign(sin) : 0;
        const from = reach + half - 4;
        const left = across > 0 ? heap.right + cos * from : across < 0 ? heap.left + cos * from - width : middle[0] - width / 2;
        const top = down > 0 ? heap.bottom + sin * from : down < 0 ? heap.top + sin * from - height : middle[1] - height / 2;
        const box = { left, top, right: left + width, bottom: top + height };
        if (plot?.width && (box.left < plot.left + 2 || box.right > plot.right - 2 || box.top < plot.top + 2 || box.bottom > plot.bottom - 2)) continue;
        if (taken.some((other) => overlap(box, other)) || (isBeside && drawn.some(([x, y]) => isIn(box, x, y)))) continue;
        if (points.some((other) => isIn(box, other.x, other.y, other.half - 1))) continue;
        // Without a line a label has to be nearest to its own point.
        const own = Math.min(...group.map((other) => away(box, other.x, other.y)));
        if (reach <= CLOSE && points.some((other) => !group.includes(other) && away(box, other.x, other.y) < own + 2)) continue;
        const start = [across > 0 ? heap.right : across < 0 ? heap.left : middle[0], down > 0 ? heap.bottom : down < 0 ? heap.top : middle[1]];
        const stop = [across > 0 ? box.left : across < 0 ? box.right : left + width / 2, down > 0 ? box.top + 1 : down < 0 ? box.bottom - 1 : top + height / 2];
        // Its line crosses no label and no other point, and the label lies on no other line.
        const path = reach > CLOSE ? [0.2, 0.35, 0.5, 0.65, 0.8, 0.9].map((part) => [0, 1].map((axis) => start[axis] + part * (stop[axis] - start[axis]))) : [];
        if (path.some(([x, y]) => taken.some((other) => isIn(other, x, y)) || points.some((other) => !group.includes(other) && Math.hypot(other.x - x, other.y - y) < 3.5))) continue;
        if (paths.some(([x, y]) => isIn(box, x, y, 1))) continue;
        if (reach > CLOSE && leaders.some((other) => cross(start, stop, ...other))) continue;
        found = { box, start, stop, reach, path };
        break;
      }
      if (found) break;
    }
    if (!found) {
      point.text.style.display = "none";
      continue;
    }
    taken.push(found.box);
    paths.push(...found.path);
    point.text.style.transform = `translate(${found.box.left - point.left}px, ${found.box.top - point.top}px)`;
    if (found.reach > CLOSE) {
      const [x1, y1, x2, y2] = [found.start[0] - home.left, found.start[1] - home.top, found.stop[0] - home.left, found.stop[1] - home.top];
      leaders.push([found.start, found.stop]);
      draw("line", { x1, y1, x2, y2, stroke: "currentColor", "stroke-width": 1, opacity: 0.45 }, lines);
    }
  }
}

function thin(figure) {
  const plot = figure.querySelector(".nsewdrag, .cartesianlayer .plot")?.getBoundingClientRect();
  const shown = [];
  const texts = figure.querySelectorAll(".scatterlayer .textpoint text");
  for (const text of texts) {
    text.style.display = "";
    if (text.dataset.more === undefined) text.dataset.more = String(getComputedStyle(text).fillOpacity === "0");
  }
  const boxes = [...texts].map((text) => {
    const { left, right, top, bottom } = text.getBoundingClientRect(); // all at once: each change costs a layout
    return { left, right, top, bottom, text: text.textContent };
  });
  // The bold labels (words that all sentences share) and those of selected points come first, and never make room.
  const isFaint = (text) => text.dataset.more !== "true" && Number(getComputedStyle(text).fillOpacity) < 1;
  const faint = [...texts].map(isFaint);
  const isSelection = faint.includes(true) && faint.filter((item) => !item).length <= MOST_KEPT;
  const isKept = [...texts].map((text, number) => text.dataset.more !== "true" && (isBold(text) || (isSelection && !faint[number])));
  const order = [...texts.keys()].sort((a, b) => isKept[b] - isKept[a]);
  const mayOverlap = isKept.filter(Boolean).length <= MOST_KEPT;
  order.forEach((number) => {
    const text = texts[number];
    const box = boxes[number];
    const isInside = !plot || !plot.width || (box.right > plot.left && box.left < plot.right && box.bottom > plot.top && box.top < plot.bottom);
    const isCut = plot?.width && (box.left < plot.left || box.right > plot.right || box.top < plot.top || box.bottom > plot.bottom);
    const hasRoom = isInside && ((mayOverlap && isKept[number]) || (!isCut && !shown.some((other) => overlap(box, other) || isRepeated(box, other))));
    if (hasRoom) shown.push(box);
    text.style.display = hasRoom ? "" : "none";
    if (text.dataset.more === "true") text.style.fillOpacity = "1";
  });
}

const placesIn = new WeakMap(); // the rows of a trace to the place of each in it; made once, and forgotten with the trace

function indexIn(rows, row) {
  let places = placesIn.get(rows);
  if (!places) {
    places = new Map();
    for (let at = 0; at < rows.length; at++) if (!places.has(rows[at])) places.set(rows[at], at);
    placesIn.set(rows, places);
  }
  return places.get(row);
}

// The place of a row's point in a map, in the page's pixels; null if it is not drawn or lies outside of the frame.
function placeOf(figure, row) {
  const layout = figure._fullLayout, axes = [layout?.xaxis, layout?.yaxis];
  if (!axes[0]?.l2p) return null;
  for (const trace of figure._fullData) {
    if (trace.mode === "text" || !trace.customdata) continue;
    const at = indexIn(trace.customdata, row);
    if (at === undefined) continue;
    const [x, y] = [axes[0].l2p(trace.x[at]), axes[1].l2p(trace.y[at])];
    if (x < 0 || y < 0 || x > axes[0]._length || y > axes[1]._length) return null;
    const { left, top } = figure.querySelector(".svg-container").getBoundingClientRect();
    return [left + axes[0]._offset + x, top + axes[1]._offset + y];
  }
  return null;
}

// Lines from the points of the chosen word in one map to the frame of another one, as high as they are there, or on a phone,
// where the maps stand below each other, as far right; a thin line goes on to the point, so that it hides no token.
function join(rows) {
  const [first, second] = [0, 1].map((number) => document.querySelector(`.st-key-map_${number} .js-plotly-plot`));
  const host = first?.closest("[data-testid=stHorizontalBlock]");
  document.querySelectorAll("svg.bi-joined").forEach((old) => old.parentElement === host || old.remove());
  if (!host || !second || !host.contains(second)) return;
  host.style.position = "relative";
  const lines = sheet(host, "bi-joined"), home = host.getBoundingClientRect();
  const isBelow = second.getBoundingClientRect().top > first.getBoundingClientRect().bottom - 5;
  const { xaxis, yaxis } = second._fullLayout ?? {}, frame = second.querySelector(".svg-container")?.getBoundingClientRect();
  for (const row of rows) {
    const ends = [first, second].map((figure) => placeOf(figure, row));
    if (!ends[0] || !ends[1]) continue;
    const [px, py] = [ends[1][0] - home.left, ends[1][1] - home.top];
    ends[1][isBelow ? 1 : 0] = isBelow ? frame.top + yaxis._offset : frame.left + xaxis._offset;
    const [[ax, ay], [bx, by]] = ends.map(([x, y]) => [x - home.left, y - home.top]);
    const d = isBelow ? `M${ax} ${ay}C${ax} ${(ay + by) / 2} ${bx} ${(ay + by) / 2} ${bx} ${by}` : `M${ax} ${ay}C${(ax + bx) / 2} ${ay} ${(ax + bx) / 2} ${by} ${bx} ${by}`;
    draw("path", { d, fill: "none", style: RIBBON, "stroke-width": rows.length > 8 ? 2 : 6 }, lines);
    draw("line", { x1: bx, y1: by, x2: px, y2: py, style: RIBBON, "stroke-width": 2 }, lines);
  }
}

const known = new WeakMap(); // figures that are watched, with what places their labels; those that left the page are forgotten
const placedAt = new WeakMap(); // figures to their size when their labels were placed last
let timer = 0; // one for the page: Streamlit calls the function below again at every change
let joined = []; // the rows of the points that are joined

// How large a map and its labels are: labels that were placed in a page that was still being laid out lie on each other in the
// one that a person sees.
function sizeOf(figure) {
  const { width, height } = figure.getBoundingClientRect();
  const texts = [...figure.querySelectorAll(".scatterlayer .textpoint text")];
  const shown = texts.find((text) => text.style.display !== "none")?.getBoundingClientRect();
  return [width, height, texts.length, shown?.width ?? 0].map(Math.round).join(" ");
}

function settle(figure) {
  join(joined); // first: labels stand beside its lines
  const points = labelled(figure);
  if (points) place(figure, points);
  else thin(figure);
  placedAt.set(figure, sizeOf(figure));
}

export default function ({ data } = {}) {
  joined = data?.joined ?? [];
  join(joined);
  const watch = () => {
    for (const figure of document.querySelectorAll(MAPS)) {
      if (known.has(figure)) {
        if (placedAt.has(figure) && placedAt.get(figure) !== sizeOf(figure)) known.get(figure)();
        continue;
      }
      if (!figure.on) continue;
      let waits = false;
      const later = () => {
        if (waits) return;
        waits = true;
        setTimeout(() => {
          waits = false;
          if (figure.isConnected) settle(figure);
        }, 60);
      };
      known.set(figure, later);
      for (const event of ["plotly_afterplot", "plotly_animated", "plotly_relayout"]) figure.on(event, later);
      later();
    }
  };
  watch();
  clearInterval(timer);
  const own = (timer = setInterval(watch, 500));
  return () => clearInterval(own);
}
