// Shows as many of a map's labels as have room, the first ones first, and again after each zoom: then more have room.
// The figures are found on the page, since Streamlit draws them later than this component.
const GAP = { x: 4, y: 1 }; // pixels between labels, so that each can be read by itself
const SAME = 90; // pixels between labels of one text, which say nothing new
const MOST_KEPT = 12; // labels of chosen points and shared words that may overlap; if there are more, they come first only
const FEW = 80; // points of a small map, as in scatter.py: with more, labels would find no place between the points
const MAPS = ":is([class*='st-key-map_'], .st-key-senses_map) .js-plotly-plot";
const overlap = (a, b) => a.left < b.right + GAP.x && b.left < a.right + GAP.x && a.top < b.bottom + GAP.y && b.top < a.bottom + GAP.y;
const isRepeated = (a, b) => a.text === b.text && Math.hypot(a.left - b.left, a.top - b.top) < SAME;

// Whether the middle of a label lies on a point, so that it cannot be read.
const isCovered = (label, points) =>
  points.some(({ x, y }) => x > label.left + 2 && x < label.right - 2 && y > label.top + 4 && y < label.bottom - 4);

// The middles of a small map's points.
function middles(figure) {
  const points = [...figure.querySelectorAll(".scatterlayer .point")];
  if (points.length > FEW) return [];
  return points.map((point) => {
    const { left, right, top, bottom } = point.getBoundingClientRect();
    return { x: (left + right) / 2, y: (top + bottom) / 2 };
  });
}

function thin(figure) {
  const points = middles(figure);
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
  const isKept = [...texts].map((text, number) =>
    text.dataset.more !== "true" &&
    ([...text.querySelectorAll("tspan")].some((part) => part.style.fontWeight === "bold") || (isSelection && !faint[number])),
  );
  const order = [...texts.keys()].sort((a, b) => isKept[b] - isKept[a]);
  const mayOverlap = isKept.filter(Boolean).length <= MOST_KEPT;
  order.forEach((number) => {
    const text = texts[number];
    const box = boxes[number];
    const isInside = !plot || !plot.width || (box.right > plot.left && box.left < plot.right && box.bottom > plot.top && box.top < plot.bottom);
    const isCut = plot?.width && (box.left < plot.left || box.right > plot.right || box.top < plot.top || box.bottom > plot.bottom);
    const hasRoom = isInside && ((mayOverlap && isKept[number]) || (!isCut && !isCovered(box, points) && !shown.some((other) => overlap(box, other) || isRepeated(box, other))));
    if (hasRoom) shown.push(box);
    text.style.display = hasRoom ? "" : "none";
    if (text.dataset.more === "true") text.style.fillOpacity = "1";
  });
}

const known = new WeakSet(); // figures that are watched; those that left the page are forgotten
let timer = 0; // one for the page: Streamlit calls the function below again at every change

export default function () {
  const watch = () => {
    for (const figure of document.querySelectorAll(MAPS)) {
      if (known.has(figure) || !figure.on) continue;
      known.add(figure);
      let waits = false;
      const later = () => {
        if (waits) return;
        waits = true;
        setTimeout(() => {
          waits = false;
          if (figure.isConnected) thin(figure);
        }, 60);
      };
      for (const event of ["plotly_afterplot", "plotly_animated", "plotly_relayout"]) figure.on(event, later);
      later();
    }
  };
  watch();
  clearInterval(timer);
  const own = (timer = setInterval(watch, 500));
  return () => clearInterval(own);
}
