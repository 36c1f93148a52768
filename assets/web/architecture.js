// A model as rectangles to one scale. Python gives the shapes for a wide and a narrow area; here they are drawn with one of
// the two, and a click or Enter on a rectangle tells what it is, without a run of the page. Reports "open" with a part's key.
const SVG = "http://www.w3.org/2000/svg";
const NARROW_BELOW = 760; // pixels

export default function ({ data: packed, parentElement, setTriggerValue }) {
  // Four bytes with the length of a JSON text, that text, and the strips' numbers.
  const bytes = new Uint8Array(packed);
  const length = new DataView(bytes.buffer, bytes.byteOffset, 4).getUint32(0, true);
  const data = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  data.strips = bytes.subarray(4 + length);
  const root = parentElement.querySelector(".arch");
  const picture = root.querySelector("svg"), card = root.querySelector(".card");
  let part = root.dataset.part in data.parts ? root.dataset.part : data.first;
  let drawn = "";

  const make = (name, values, parent) => {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(values)) if (value !== "") element.setAttribute(key, value);
    parent.append(element);
    return element;
  };

  // The numbers of a token's vector, four in a row, as a picture: brown below zero, green above, as in the whole path.
  const strip = (number) => {
    const size = data.dim, start = number * size, rows = Math.ceil(size / 4);
    const canvas = document.createElement("canvas");
    canvas.width = 4;
    canvas.height = rows;
    const pen = canvas.getContext("2d"), pixels = pen.createImageData(4, rows);
    for (let index = 0; index < size; index++) {
      const value = (data.strips[start + index] - 128) / 127;
      const hue = value < 0 ? [169, 89, 12] : [4, 118, 108];
      pixels.data.set([...hue, Math.round(255 * Math.min(1, Math.abs(value)))], 4 * index);
    }
    pen.putImageData(pixels, 0, 0);
    return canvas.toDataURL();
  };

  const tell = () => {
    const of = data.parts[part];
    root.dataset.part = part;
    card.replaceChildren();
    card.className = `card ${of.kind}`;
    const add = (tag, name, text) => {
      const element = document.createElement(tag);
      element.className = name;
      element.textContent = text;
      card.append(element);
      return element;
    };
    add("p", "share", of.share);
    add("p", "count", of.count);
    add("h3", "", of.title);
    add("p", "shape", of.shape);
    for (const text of of.texts) add("p", "", text);
    if (of.link) {
      const link = add("button", "link", of.link);
      link.type = "button";
      link.onclick = () => setTriggerValue("open", part);
    }
    for (const box of picture.querySelectorAll("[data-part]")) {
      box.classList.toggle("on", box.dataset.part === part);
      if (box.hasAttribute("role")) box.setAttribute("aria-pressed", String(box.dataset.part === part));
    }
    hold();
  };

  // Beside or over the drawing the card may end below it: what follows stands below both.
  const hold = () => (root.style.minHeight = card.style.top ? `${card.offsetTop + card.offsetHeight + 8}px` : "");

  // The card stands where the drawing leaves room, beside it where the screen is wide and low, and below it on a phone.
  const place = (of, width) => {
    card.removeAttribute("style");
    if (!of.card) return;
    const drawing = picture.getBoundingClientRect().width / (root.currentCSSZoom ?? 1), scale = drawing / of.width, beside = width - drawing - 24;
    const [left, top, wide] = beside > 320 ? [drawing + 24, 28 * scale, beside] : of.card.map((value) => value * scale);
    Object.assign(card.style, { left: `${left}px`, top: `${top}px`, width: `${wide}px` });
  };

  const draw = () => {
    const width = root.clientWidth;
    if (!width) return;
    const name = width < NARROW_BELOW ? "narrow" : "wide", of = data[name];
    root.classList.toggle("narrow", name === "narrow");
    // On a wide screen no higher than what is left of it below the page's first lines.
    root.style.setProperty("--ratio", of.width / of.height);
    picture.setAttribute("viewBox", `0 0 ${of.width} ${of.height}`);
    place(of, width);
    if (drawn === name) return hold();
    drawn = name;
    const focused = root.getRootNode().activeElement?.dataset?.part;
    picture.replaceChildren();
    const first = {}; // the first rectangle of each part can be reached by Tab; all can be clicked
    for (const item of of.items) {
      if (item.t === "rect") {
        const box = make("rect", { x: item.x, y: item.y, width: item.w, height: item.h, class: item.c, "data-part": item.p }, picture);
        box.onclick = () => { part = item.p; tell(); };
        if (!first[item.p]) {
          first[item.p] = box;
          box.setAttribute("tabindex", "0");
          box.setAttribute("role", "button");
          box.setAttribute("aria-label", `${data.parts[item.p].title}: ${data.parts[item.p].share}`);
          box.onkeydown = (event) => {
            if (event.key !== "Enter" && event.key !== " ") return;
            event.preventDefault();
            part = item.p;
            tell();
          };
        }
      } else if (item.t === "line") {
        make("line", { x1: item.x, y1: item.y, x2: item.x2, y2: item.y2, class: item.c }, picture);
      } else if (item.t === "strip") {
        const image = { x: item.x, y: item.y, width: item.w, height: item.h, href: strip(item.n), preserveAspectRatio: "none", class: "strip" };
        make("image", image, picture);
        make("rect", { x: item.x, y: item.y, width: item.w, height: item.h, class: "frame" }, picture);
      } else {
        const turn = item.turn ? `rotate(-90 ${item.x} ${item.y})` : "";
        make("text", { x: item.x, y: item.y, class: item.c, "text-anchor": item.a, transform: turn }, picture).textContent = item.s;
      }
    }
    if (focused && first[focused]) first[focused].focus();
    tell();
  };

  root.observer?.disconnect();
  root.observer = new ResizeObserver(draw);
  root.observer.observe(root);
  draw();
  return () => root.observer.disconnect();
}
