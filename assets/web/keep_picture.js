// Sends what the page shows in one place as a picture, once for each `of`: for a page that a person takes along. It draws nothing.
const WAIT = 1200; // milliseconds after the last drawing: by then the picture stands
const WIDEST = 1600; // pixels
const QUALITY = 0.9;

// The element within a place that draws a picture of itself, as it saves it; undefined where there is none.
function drawnWithin(place) {
  for (const element of [place, ...place.querySelectorAll("*")]) {
    const found = element.bertInternalsPicture ? element : element.shadowRoot && drawnWithin(element.shadowRoot);
    if (found) return found;
  }
}

function ofCanvas(image) {
  return image && { image, width: image.width, height: image.height, paper: getComputedStyle(document.querySelector(".stApp")) };
}

export default function ({ data, parentElement, setTriggerValue }) {
  const kept = parentElement.querySelector("i");
  clearTimeout(kept.timer);
  if (kept.of === data.of) return;
  kept.timer = setTimeout(async () => {
    const place = document.querySelector(data.place), own = place && drawnWithin(place);
    const found = own ? ofCanvas(own.bertInternalsPicture()) : await pictureOf(data.place).catch(() => null);
    if (!found) return; // not drawn yet: asked again with the next drawing
    kept.of = data.of;
    const scale = Math.min(SCALE, WIDEST / found.width);
    const context = sheet(found.width * scale, found.height * scale, found.paper);
    context.drawImage(found.image, 0, 0, found.width * scale, found.height * scale);
    setTriggerValue("picture", { of: data.of, url: context.canvas.toDataURL("image/webp", QUALITY) });
  }, WAIT);
  return () => clearTimeout(kept.timer);
}
