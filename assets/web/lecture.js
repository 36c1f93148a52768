// The pictures of a lecture in their order. A picture is moved by its dots: dragged, or with ↑ and ↓. Text is only ever set with
// textContent. Reports "ordered" (the stars of all pictures, in the new order), "opened" and "removed" (a star).
export default function ({ data, parentElement, setTriggerValue }) {
  const list = parentElement.querySelector(".lecture");
  const focused = parentElement.activeElement ?? parentElement.getRootNode().activeElement;
  const handled = focused?.classList?.contains("dots") ? focused.closest("li").dataset.star : undefined;
  const make = (tag, className, text = "") => Object.assign(document.createElement(tag), { className, textContent: text });
  const order = () => [...list.children].map((item) => item.dataset.star);
  const report = () => {
    if (order().some((star, place) => star !== data.pictures[place].star)) setTriggerValue("ordered", order());
  };
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
    dots.onkeydown = (event) => {
      const beside = { ArrowUp: item.previousElementSibling, ArrowDown: item.nextElementSibling }[event.key];
      if (!beside) return;
      event.preventDefault();
      if (event.key === "ArrowUp") item.after(beside);
      else item.before(beside);
      report();
    };
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
    open.append(head);
    if (picture.says) open.append(make("span", "says", picture.says));
    item.append(dots, make("span", "number", number + 1), open,
      button("star", "★", `Take picture ${number + 1} out: ${picture.title}`, () => setTriggerValue("removed", picture.star)));
    return item;
  }));
  if (handled) [...list.children].find((item) => item.dataset.star === handled)?.querySelector(".dots").focus();
}
