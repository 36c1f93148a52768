// Sends what the page shows in one place as a picture, once for each `of`: for a page that a person takes along, and small for the
// list of a lecture. It draws nothing.
const WAIT = 1200; // milliseconds after the last drawing: by then the picture stands
const MOST_LOOKS = 20;
const WIDEST = 1600, SMALL = 360; // pixels
const QUALITY = 0.9;

// The element within a place that draws a picture of itself, as it saves it; undefined where there is none.
function drawnWithin(place) {
  for (const element of [place, ...place.querySelectorAll("*")]) {
    const found = element.bertInternalsPicture ? element : element.shadowRoot && drawnWithin(element.shadowRoot);
    if (found) return found;
  }
}

const paper = () => getComputedStyle(document.querySelector(".stApp"));

function ofCanvas(image) {
  return image && { image, width: image.width, height: image.height, paper: paper() };
}

// The figures of plotly's in a place, beside each other as they stand; null where none is drawn yet. Each is made of layers.
async function ofPlots(place) {
  const plots = [...place.querySelectorAll(".js-plotly-plot")].filter((plot) => plot.offsetWidth && plot.querySelector(".main-svg"));
  if (!plots.length) return null;
  const boxes = plots.map((plot) => plot.getBoundingClientRect());
  const left = Math.min(...boxes.map((box) => box.left)), top = Math.min(...boxes.map((box) => box.top));
  const width = Math.max(...boxes.map((box) => box.right)) - left, height = Math.max(...boxes.map((box) => box.bottom)) - top;
  const context = sheet(width, height, paper());
  for (const plot of plots)
    for (const layer of plot.querySelectorAll(".gl-canvas, .main-svg")) {
      const { left: x, top: y, width: wide, height: high } = layer.getBoundingClientRect();
      if (!wide || !high) continue;
      let image = layer;
      if (layer.matches("svg")) {
        image = new Image();
        const copy = layer.cloneNode(true);
        copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
        image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(new XMLSerializer().serializeToString(copy))}`;
        await image.decode();
      }
      context.drawImage(image, x - left, y - top, wide, high);
    }
  return ofCanvas(context.canvas);
}

function asUrl({ image, width, height, paper }, widest) {
  const scale = Math.min(SCALE, widest / width), context = sheet(width * scale, height * scale, paper);
  context.imageSmoothingQuality = "high";
  context.drawImage(image, 0, 0, width * scale, height * scale);
  return context.canvas.toDataURL("image/webp", QUALITY);
}

export default function ({ data, parentElement, setTriggerValue }) {
  const kept = parentElement.querySelector("i");
  clearTimeout(kept.timer);
  if (kept.of === data.of) return;
  let looks = 0;
  const look = async () => {
    const place = data.place ? document.querySelector(data.place) : data.plots.map((each) => document.querySelector(each)).find(Boolean);
    const own = data.place && place && drawnWithin(place);
    const picture = () => (own ? ofCanvas(own.bertInternalsPicture()) : data.place ? pictureOf(data.place) : place && ofPlots(place));
    const found = await Promise.resolve(picture()).catch(() => null);
    if (!kept.isConnected || kept.of === data.of) return;
    if (!found) {
      if (++looks < MOST_LOOKS) kept.timer = setTimeout(look, WAIT); // not drawn yet
      return;
    }
    kept.of = kept.dataset.of = data.of;
    setTriggerValue("picture", { of: data.of, url: data.place ? asUrl(found, WIDEST) : "", small: asUrl(found, SMALL) });
  };
  kept.timer = setTimeout(look, WAIT);
  return () => clearTimeout(kept.timer);
}
