// Blocks x heads as tiles of one canvas. Each tile is a matrix of bytes; a click, or Enter on the tile that the
// arrow keys reached, reports [block, head]. Text is set with textContent only.
export default function ({ data, parentElement, setTriggerValue }) {
  // data: four bytes with the length of a JSON text, that text, 256 x RGB of the colour scale, then the cells.
  const bytes = new Uint8Array(data);
  const length = new DataView(bytes.buffer, bytes.byteOffset, 4).getUint32(0, true);
  const layout = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  const palette = bytes.subarray(4 + length, 4 + length + 768);
  const cells = bytes.subarray(4 + length + 768);
  const { blocks, heads, size, hints, selected, scale, legend, numbers } = layout;
  const canvas = parentElement.querySelector("canvas");
  const hint = parentElement.querySelector(".hint");
  // On a phone twelve heads have room, and a tile is large enough for a finger and its number.
  const isTouched = matchMedia("(pointer: coarse)").matches;
  const left = Math.round((isTouched ? 20 : 34) * scale);
  const top = Math.round(22 * scale);
  const gap = isTouched ? 2 : 4;
  const least = isTouched ? 26 : 18; // pixels of a tile
  let [block, head] = selected ?? [0, 0];

  const tileImage = (at) => {
    const image = new ImageData(size, size);
    for (let i = 0; i < size * size; i++) {
      const colour = 3 * cells[at * size * size + i];
      image.data.set([palette[colour], palette[colour + 1], palette[colour + 2], 255], 4 * i);
    }
    return image;
  };
  const sheet = document.createElement("canvas");
  sheet.width = size * heads;
  sheet.height = size * blocks;
  const sheetContext = sheet.getContext("2d");
  for (let b = 0; b < blocks; b++)
    for (let h = 0; h < heads; h++) sheetContext.putImageData(tileImage(b * heads + h), h * size, b * size);

  let tile = 0;
  const draw = () => {
    const style = getComputedStyle(canvas);
    const width = canvas.parentElement.clientWidth;
    const [across, down] = [(width - left) / heads, (layout.height - top) / blocks].map((each) => Math.floor(each) - gap);
    tile = Math.max(least, Math.min(across, down));
    const ratio = window.devicePixelRatio || 1;
    const shownWidth = left + heads * (tile + gap);
    const shownHeight = top + blocks * (tile + gap);
    canvas.width = shownWidth * ratio;
    canvas.height = shownHeight * ratio;
    canvas.style.width = `${shownWidth}px`;
    canvas.style.height = `${shownHeight}px`;
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    context.imageSmoothingEnabled = size > tile;
    context.fillStyle = style.color;
    context.font = `${Math.round(12 * scale)}px ${style.fontFamily}`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    for (let h = 0; h < heads; h++) context.fillText(h, left + h * (tile + gap) + tile / 2, top / 2);
    for (let b = 0; b < blocks; b++) {
      context.fillText(b, left / 2, top + b * (tile + gap) + tile / 2);
      for (let h = 0; h < heads; h++)
        context.drawImage(sheet, h * size, b * size, size, size, left + h * (tile + gap), top + b * (tile + gap), tile, tile);
    }
    // A number in each tile of one cell, dark on pale and white on strong colours.
    if (numbers.length && size === 1 && tile >= 26 * scale)
      for (let b = 0; b < blocks; b++)
        for (let h = 0; h < heads; h++) {
          const colour = 3 * cells[b * heads + h], light = 0.3 * palette[colour] + 0.59 * palette[colour + 1] + 0.11 * palette[colour + 2];
          context.fillStyle = light > 140 ? "#1C2430" : "#FFFFFF";
          context.fillText(numbers[b * heads + h], left + h * (tile + gap) + tile / 2, top + b * (tile + gap) + tile / 2);
        }
    context.lineWidth = 3;
    context.strokeStyle = "#C97F00"; // on tiles of one hue, another one
    context.strokeRect(left + head * (tile + gap) - 1, top + block * (tile + gap) - 1, tile + 2, tile + 2);
    const axis = parentElement.querySelector(".axis span");
    axis.dataset.words ??= axis.textContent;
    axis.textContent = axis.dataset.words + (shownWidth > width ? " · swipe to see all" : "");
    canvas.dataset.drawn = `${blocks}x${heads}x${size}`;
  };
  const say = (b, h) => (hint.textContent = hints[b * heads + h]);
  const at = (event) => {
    const h = Math.floor((event.offsetX - left) / (tile + gap));
    const b = Math.floor((event.offsetY - top) / (tile + gap));
    return b >= 0 && b < blocks && h >= 0 && h < heads ? [b, h] : null;
  };
  canvas.onmousemove = (event) => {
    const place = at(event);
    canvas.style.cursor = place ? "pointer" : "default";
    if (place) say(...place);
  };
  canvas.onclick = (event) => {
    const place = at(event);
    if (!place) return;
    [block, head] = place;
    draw();
    setTriggerValue("clicked", place);
  };
  canvas.onkeydown = (event) => {
    const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
    if (step) {
      block = Math.max(0, Math.min(blocks - 1, block + step[0]));
      head = Math.max(0, Math.min(heads - 1, head + step[1]));
      draw();
      say(block, head);
    } else if (event.key === "Enter" || event.key === " ") {
      setTriggerValue("clicked", [block, head]);
    } else return;
    event.preventDefault();
  };
  // What the colours stand for: the ends of the scale on both sides of it.
  const [name, low, high] = legend, key = parentElement.querySelector(".key"), bar = document.createElement("i");
  const stop = (at) => `rgb(${palette.slice(3 * at, 3 * at + 3).join(" ")})`;
  bar.style.background = `linear-gradient(to right, ${[0, 64, 128, 192, 255].map(stop).join(", ")})`;
  key.hidden = !name;
  const ends = document.createElement("span"); // one line, also where the name has a line of its own
  ends.style.whiteSpace = "nowrap";
  ends.append(`${low} `, bar, ` ${high}`);
  key.replaceChildren(`${name}: `, ends);
  canvas.setAttribute("aria-label", layout.label);
  draw();
  // This function runs again whenever the data change, and only its last cleanup is called: one observer at a time.
  canvas.bertInternalsObserver?.disconnect();
  const observer = (canvas.bertInternalsObserver = new ResizeObserver(draw));
  observer.observe(canvas.parentElement);
  return () => observer.disconnect();
}
