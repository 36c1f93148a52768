// Saves a picture of what the page shows in one place, which the browser draws again from copies of the elements with their styles
// written out: of components, HTML, canvases and frames alike. For figures of plotly see slide.js, which has vectors.
const SCALE = 2; // pixels of the picture for one of the page
const SLIDE_WIDTH = 1920, SLIDE_HEIGHT = 1080, MARGIN = 64, TYPE = 40; // pixels of a slide
const KEPT_ATTRIBUTES = new Set(["src", "colspan", "rowspan", "dir", "lang"]);
const LEFT_OUT = new Set(["STYLE", "SCRIPT", "LINK", "TEMPLATE", "NOSCRIPT", "IFRAME"]);
// What an element takes from the one around it: written out always, since that one may differ from a bare one.
const INHERITED = /^(color|fill|stroke|font|line-height|letter|text|white-space|visibility|word|list-style|direction|paint-order)/;

// By the name of an element: the styles that it has where nothing was said about it.
class BareStyles {
  constructor() {
    this.frame = document.createElement("iframe");
    this.frame.style.cssText = "position: fixed; left: -999px; width: 9px; height: 9px; border: 0; visibility: hidden";
    document.body.append(this.frame);
    this.known = new Map();
  }

  of(element) {
    const name = `${element.namespaceURI} ${element.localName}`;
    if (!this.known.has(name)) {
      const body = this.frame.contentDocument.body, bare = this.frame.contentDocument.createElementNS(element.namespaceURI, element.localName);
      const place = element.ownerSVGElement ? body.appendChild(this.frame.contentDocument.createElementNS(element.namespaceURI, "svg")) : body;
      place.append(bare);
      const style = this.frame.contentWindow.getComputedStyle(bare);
      this.known.set(name, new Map([...style].map((property) => [property, style.getPropertyValue(property)])));
    }
    return this.known.get(name);
  }

  end() {
    this.frame.remove();
  }
}

const OF_A_TABLE = /^(table|thead|tbody|tr|td|th|caption)$/; // whose heights follow from what is in them

function write(style, copy, bare) {
  const isOfTable = OF_A_TABLE.test(copy.localName);
  for (const property of style) {
    const value = style.getPropertyValue(property);
    if (isOfTable && /^(height|block-size)$/.test(property)) continue;
    if (INHERITED.test(property) || bare.get(property) !== value) copy.style.setProperty(property, value);
  }
}

// What stands in one row on the page does so in the picture, whose type is some hundredths wider or narrower.
function keepRow(element, style, copy) {
  const range = document.createRange();
  range.selectNodeContents(element);
  const tops = (rects) => new Set([...rects].map(({ top, height }) => Math.round((top + height / 2) / 8)));
  if (style.flexWrap === "wrap") {
    if (tops([...element.children].map((child) => child.getBoundingClientRect())).size < 2) copy.style.flexWrap = "nowrap";
  } else if (element.textContent.trim() && /^(block|inline|inline-block|flow-root)$/.test(style.display) && tops(range.getClientRects()).size === 1)
    copy.style.whiteSpace = "nowrap";
}

// A copy of an element and of what is drawn within it, its shadow and its frame; null for what is not drawn.
function copied(element, styles) {
  if (element.nodeType === Node.TEXT_NODE) return document.createTextNode(element.textContent);
  const name = element.tagName?.toUpperCase();
  const inner = name === "IFRAME" ? element.contentDocument?.body : undefined;
  if (element.nodeType !== Node.ELEMENT_NODE || (LEFT_OUT.has(name) && !inner)) return null;
  const view = element.ownerDocument.defaultView, style = view.getComputedStyle(element);
  if (style.display === "none") return null;
  const other = inner || name === "BUTTON" ? "div" : name === "CANVAS" ? "img" : "";
  const copy = other ? document.createElement(other) : document.createElementNS(element.namespaceURI, element.localName);
  for (const { name: attribute, value } of element.attributes)
    if (copy.namespaceURI !== "http://www.w3.org/1999/xhtml" || KEPT_ATTRIBUTES.has(attribute)) copy.setAttribute(attribute, value);
  write(style, copy, styles.of(copy));
  if (!inner && copy.namespaceURI === "http://www.w3.org/1999/xhtml" && !element.shadowRoot) keepRow(element, style, copy);
  if (element.dataset?.live !== undefined) copy.style.opacity = "0"; // a control, which does nothing in a picture: it keeps its room
  if (name === "CANVAS") {
    copy.setAttribute("src", element.toDataURL());
    return copy;
  }
  const beside = (which) => {
    const { content } = view.getComputedStyle(element, which);
    if (!content.startsWith('"') || OF_A_TABLE.test(element.localName)) return [];
    const mark = document.createElement("span");
    write(view.getComputedStyle(element, which), mark, styles.of(mark));
    mark.textContent = content.slice(1, -1);
    return [mark];
  };
  const within = inner ? [inner] : [...(element.shadowRoot ?? element).childNodes];
  let place = copy;
  if (name === "BUTTON" && !style.display.includes("flex") && !style.display.includes("grid")) {
    // The text of a button stands at half its height, which no style of it says.
    const along = style.textAlign === "center" ? "center" : "flex-start";
    copy.style.cssText += `display: flex; align-items: center; justify-content: ${along}`;
    place = copy.appendChild(document.createElement("span"));
  }
  place.append(...beside("::before"), ...within.map((child) => copied(child, styles)).filter(Boolean), ...beside("::after"));
  return copy;
}

// What the page shows where a selector finds it: { image, width, height, paper }, in pixels of the page.
async function pictureOf(selector) {
  const place = document.querySelector(selector);
  if (!place) return null;
  const zoom = place.currentCSSZoom ?? 1, box = place.getBoundingClientRect(), styles = new BareStyles(); // in a lecture
  const width = box.width / zoom, height = box.height / zoom;
  const copy = copied(place, styles);
  styles.end();
  for (const [property, value] of [["position", "static"], ["margin", "0"], ["transform", "none"], ["zoom", "1"], ["opacity", "1"], ["width", `${width}px`]])
    copy.style.setProperty(property, value);
  const size = `width="${Math.ceil(width)}" height="${Math.ceil(height)}"`, written = new XMLSerializer().serializeToString(copy);
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(`<svg xmlns="http://www.w3.org/2000/svg" ${size}><foreignObject ${size}>${written}</foreignObject></svg>`)}`;
  await image.decode();
  return { image, width: Math.ceil(width), height: Math.ceil(height), paper: getComputedStyle(document.querySelector(".stApp")) };
}

function sheet(width, height, paper) {
  const canvas = document.createElement("canvas");
  Object.assign(canvas, { width, height });
  const context = canvas.getContext("2d");
  context.fillStyle = paper.backgroundColor;
  context.fillRect(0, 0, width, height);
  return context;
}

function asPicture({ image, width, height, paper }) {
  const context = sheet(width * SCALE, height * SCALE, paper);
  context.drawImage(image, 0, 0, width * SCALE, height * SCALE);
  return context.canvas;
}

// The finding above the picture, as large as a slide has room for.
function asSlide({ image, width, height, paper }, says) {
  const context = sheet(SLIDE_WIDTH, SLIDE_HEIGHT, paper), room = SLIDE_WIDTH - 2 * MARGIN;
  context.font = `600 ${TYPE}px ${paper.fontFamily}`;
  const lines = [""];
  for (const word of says.split(/\s+/)) {
    const line = `${lines.at(-1)} ${word}`.trim();
    if (context.measureText(line).width <= room) lines[lines.length - 1] = line;
    else lines.push(word);
  }
  context.fillStyle = paper.color;
  context.textBaseline = "top";
  lines.forEach((line, place) => context.fillText(line, MARGIN, MARGIN + 1.3 * TYPE * place));
  const top = MARGIN + (says ? 1.3 * TYPE * lines.length + TYPE / 2 : 0);
  const scale = Math.min(room / width, (SLIDE_HEIGHT - MARGIN - top) / height);
  context.drawImage(image, (SLIDE_WIDTH - scale * width) / 2, top, scale * width, scale * height);
  return context.canvas;
}
