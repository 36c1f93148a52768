// The pictures of a lecture in their order. A picture is moved by its dots: dragged, or with ↑, ↓, Home and End; where a finger
// points, by two buttons that stand in their place. Its title is
// changed behind the pencil. Text is only ever set with textContent. Reports "ordered" (the stars of all pictures, in the new
// order), "opened" and "removed" (a star), and "titled" (a star and its title).
export default function ({ data, parentElement, setTriggerValue }) {
  const list = parentElement.querySelector(".lecture");
  const focused = parentElement.activeElement ?? parentElement.getRootNode().activeElement;
  // What moved a picture keeps the keyboard's place: the same button of the same picture.
  const handle = ["dots", "up", "down"].find((name) => focused?.classList?.contains(name));
  const handled = handle && focused.closest("li").dataset.star;
  const make = (tag, className, text = "") => Object.assign(document.createElement(tag), { className, textContent: text });
  const order = () => [...list.children].map((item) => item.dataset.star);
  const report = () => {
    if (order().join() === (list.asked ?? list.known).join()) return;
    list.asked = order();
    setTriggerValue("ordered", list.asked);
  };
  // An answer to an earlier move does not undo a later one, and none takes a picture from under the pointer.
  list.known = data.pictures.map(({ star }) => star);
  const isSameSet = [...order()].sort().join() === [...list.known].sort().join();
  if (!isSameSet || list.asked?.join() === list.known.join()) list.asked = undefined;
  if (isSameSet && (list.asked || list.querySelector(".dragged, .naming"))) return;
  const button = (className, text, label, action) => {
    const made = make("button", className, text);
    made.type = "button";
    made.title = label;
    made.setAttribute("aria-label", label);
    made.onclick = action;
    return made;
  };
  list.replaceChildren(...data.pictures.map((picture, number) => {
    const item = make("li", number === data.now ? "now" : "");
    item.dataset.star = picture.star;
    const dots = button("dots", "⠿", `Move picture ${number + 1}: ${picture.title}`, () => {});
    const move = (key) => {
      if (key === "ArrowUp") item.previousElementSibling?.before(item);
      else if (key === "ArrowDown") item.nextElementSibling?.after(item);
      else if (key === "Home") list.prepend(item);
      else list.append(item);
      report();
    };
    dots.onkeydown = (event) => {
      if (!["ArrowUp", "ArrowDown", "Home", "End"].includes(event.key)) return;
      event.preventDefault();
      move(event.key);
      dots.focus(); // what is put elsewhere in the page loses the keyboard's place
    };
    const moves = make("span", "moves");
    const last = data.pictures.length - 1;
    for (const [name, text, word, key, isEnd] of [
      ["up", "↑", "up", "ArrowUp", number === 0], ["down", "↓", "down", "ArrowDown", number === last],
    ]) {
      const arrow = button(name, text, `Move picture ${number + 1} ${word}: ${picture.title}`, () => {
        if (!isEnd) move(key);
        arrow.focus();
      });
      arrow.setAttribute("aria-disabled", String(isEnd)); // not disabled: it would lose the keyboard's place at the end
      moves.append(arrow);
    }
    dots.onpointerdown = (event) => {
      if (event.button) return;
      dots.setPointerCapture(event.pointerId);
      item.classList.add("dragged");
    };
    dots.onpointermove = ({ clientY }) => {
      if (!item.classList.contains("dragged")) return;
      const above = item.previousElementSibling, below = item.nextElementSibling;
      const middle = (element) => element.getBoundingClientRect().top + element.offsetHeight / 2;
      // The others move: what is taken out of the page and put back loses the pointer.
      if (above && clientY < middle(above)) item.after(above);
      else if (below && clientY > middle(below)) item.before(below);
    };
    dots.onpointerup = dots.onpointercancel = () => {
      if (!item.classList.contains("dragged")) return;
      item.classList.remove("dragged");
      report();
    };
    const open = button("open", "", `Show picture ${number + 1}: ${picture.title}`, () => setTriggerValue("opened", picture.star));
    const title = make("b", "", picture.title);
    const head = make("span", "head");
    head.append(title, make("small", "", [picture.place, picture.model].filter(Boolean).join(" · ")));
    const words = make("span", "words");
    words.append(head);
    if (picture.says) words.append(make("span", "says", picture.says));
    const image = (url) => Object.assign(new Image(), { alt: "", src: `data:image/webp;base64,${url}` });
    const small = picture.small ? image(picture.small) : make("i", "", "");
    if (!picture.small) {
      if (picture.example) small.append(image(picture.example)); // pale: of other sentences
      else small.append(Object.assign(make("span", "icon", picture.icon), { ariaHidden: "true", translate: false }));
      small.append(make("span", "lacking", picture.noPicture));
    }
    open.append(small, words);
    const pencil = button("pencil", "✎", `Title of picture ${number + 1}: ${picture.title}`, () => {
      const field = make("input", "naming");
      Object.assign(field, { type: "text", value: picture.title, maxLength: data.most });
      field.setAttribute("aria-label", `Title of picture ${number + 1}; empty: its question`);
      const end = (isKept) => {
        if (!field.isConnected || field.isOver) return;
        field.isOver = true;
        if (isKept) title.textContent = field.value.trim() || picture.title;
        field.replaceWith(open);
        pencil.focus();
        if (isKept && field.value.trim() !== picture.title) setTriggerValue("titled", [picture.star, field.value]);
      };
      field.onkeydown = (event) => {
        event.stopPropagation();
        if (event.key !== "Enter" && event.key !== "Escape") return;
        event.preventDefault(); // else the key presses the pencil, which gets the keyboard's place
        end(event.key === "Enter");
      };
      field.onblur = () => end(true);
      open.replaceWith(field);
      field.select();
    });
    item.append(dots, moves, make("span", "number", number + 1), open, pencil,
      button("star", "✕", `Take picture ${number + 1} out: ${picture.title}`, () => setTriggerValue("removed", picture.star)));
    return item;
  }));
  if (handled) [...list.children].find((item) => item.dataset.star === handled)?.querySelector(`.${handle}`).focus();
}
