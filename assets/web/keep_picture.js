// Sends what the page shows in one place as a picture, once for each `of`: for a page that a person takes along. It draws nothing.
const WAIT = 1200; // milliseconds after the last drawing: by then the picture stands
const WIDEST = 1600; // pixels
const QUALITY = 0.9;

export default function ({ data, parentElement, setTriggerValue }) {
  const kept = parentElement.querySelector("i");
  clearTimeout(kept.timer);
  if (kept.of === data.of) return;
  kept.timer = setTimeout(async () => {
    const found = await pictureOf(data.place).catch(() => null);
    if (!found) return; // not drawn yet: asked again with the next drawing
    kept.of = data.of;
    const scale = Math.min(SCALE, WIDEST / found.width);
    const context = sheet(found.width * scale, found.height * scale, found.paper);
    context.drawImage(found.image, 0, 0, found.width * scale, found.height * scale);
    setTriggerValue("picture", { of: data.of, url: context.canvas.toDataURL("image/webp", QUALITY) });
  }, WAIT);
  return () => clearTimeout(kept.timer);
}
