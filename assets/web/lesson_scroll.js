// A new step of a lesson is read from its beginning: the panel may still be scrolled down from the step before. An answer
// is read from its verdict, which stands below the question and what others chose. On a phone the panel covers the lower
// part of the page, so the page is scrolled too: what a step is about has to stand above the panel.
const ANSWER_WAIT = 3000, POLL = 50; // milliseconds: the answer may open another page, which is drawn first
const ABOVE = 0.3; // of the height that is seen stays above the verdict
const PAD = 8; // pixels above a text that is shown as a whole
const NARROW = "(max-width: 640px), (max-width: 900px) and (min-height: 481px)"; // as in style.css: there the panel lies over the page
const RESULT_WAIT = 300_000, LOOK = 150, CALM = 10; // milliseconds; looks at a page that stays as it is
const FIRST_LINE = 56; // pixels: the first line of a page on a phone, which stays at the top
const LEAST = 40; // pixels: lower elements are no results
const NO_RESULT = ".st-key-page_header, .st-key-path_line, .st-key-lesson_panel, .stExpander";
let shown = { step: null, answered: false };
let follows = 0; // the number of the wait for a result that goes on; a new one ends the one before

export default function ({ data }) {
  const isNewStep = data.step !== shown.step;
  const isNewAnswer = data.answered && !shown.answered;
  shown = { step: data.step, answered: data.answered };
  const panel = document.querySelector(".st-key-lesson_panel");
  if (isNewStep && panel) for (const part of [panel, ...panel.children]) part.scrollTop = 0;
  if (isNewAnswer && !isNewStep) showVerdict(data.step, performance.now() + ANSWER_WAIT);
  if (isNewStep || isNewAnswer) showResult(data.results);
}

function showVerdict(step, until) {
  if (shown.step !== step || !shown.answered) return;
  const panel = document.querySelector(".st-key-lesson_panel");
  const verdict = panel?.querySelector(".st-key-lesson_verdict");
  if (!verdict) {
    if (performance.now() < until) setTimeout(() => showVerdict(step, until), POLL);
    return;
  }
  // On a wide screen the panel scrolls, on a narrow one its first part.
  const scrolled = [panel, ...panel.children].find(
    (part) => part.contains(verdict) && part.scrollHeight > part.clientHeight + 1 && canScroll(part),
  );
  if (!scrolled) return;
  const top = verdict.getBoundingClientRect().top - scrolled.getBoundingClientRect().top;
  scrolled.scrollTop += top - ABOVE * scrolled.clientHeight;
  for (const wait of [0, 500, 1500]) setTimeout(showWhole, wait, scrolled); // what others chose is drawn later, above it
}

// A text that the upper edge cuts is shown as a whole.
function showWhole(scrolled) {
  const edge = scrolled.getBoundingClientRect().top, most = ABOVE * scrolled.clientHeight;
  const boxes = [...scrolled.querySelectorAll("h2, h3, p, li, button")].map((part) => part.getBoundingClientRect());
  const cut = boxes.find((box) => box.top < edge && box.bottom > edge + 1 && box.height < most);
  if (cut) scrolled.scrollTop -= edge - cut.top + PAD;
}

function canScroll(part) {
  return ["auto", "scroll"].includes(getComputedStyle(part).overflowY);
}

// Bring the page's first result above the panel, as soon as it is drawn, and keep it there while the page still grows.
// A person who scrolls, presses a key or touches the page has it as they want it from then on.
function showResult(selector) {
  const number = ++follows;
  if (!matchMedia(NARROW).matches) return;
  const until = performance.now() + RESULT_WAIT;
  const taken = new AbortController();
  for (const type of ["wheel", "touchstart", "pointerdown", "keydown"]) {
    const leave = (event) => event.target.closest?.(".st-key-lesson_panel") || taken.abort();
    window.addEventListener(type, leave, { capture: true, passive: true, signal: taken.signal });
  }
  let calm = 0;
  const look = () => {
    const panel = document.querySelector(".st-key-lesson_panel");
    const isOver = number !== follows || !panel || calm >= CALM || performance.now() > until;
    if (isOver) taken.abort();
    if (taken.signal.aborted) return;
    const main = document.querySelector(".stMain");
    const result = main && !isBusy(main) ? firstResult(main, selector) : null;
    if (result) calm = bringAbove(main, panel, result) ? 0 : calm + 1;
    setTimeout(look, LOOK);
  };
  look();
}

function isBusy(main) {
  const state = document.querySelector(".stApp")?.dataset.testScriptState;
  return state !== "notRunning" || main.querySelector("[data-stale=true], .stSkeleton, .stProgress") !== null;
}

function firstResult(main, selector) {
  return [...main.querySelectorAll(selector)].find(
    (element) => !element.closest(NO_RESULT) && element.getBoundingClientRect().height >= LEAST,
  );
}

// Scroll until the result, with the line before it if that fits too, begins below the page's first line. Returns whether
// it had to.
function bringAbove(main, panel, result) {
  const room = { top: FIRST_LINE, bottom: panel.getBoundingClientRect().top };
  const box = result.getBoundingClientRect();
  const before = result.closest(".stElementContainer")?.previousElementSibling?.querySelector(".stMarkdown, .stHeading");
  const lineTop = before?.getBoundingClientRect().top ?? box.top;
  const top = box.bottom - lineTop <= room.bottom - room.top || result.matches(".stBidiComponent") ? lineTop : box.top;
  const isSeen = top >= room.top && box.bottom <= room.bottom;
  const further = isSeen ? 0 : top - room.top;
  const start = main.scrollTop;
  main.scrollTop += further;
  return Math.abs(main.scrollTop - start) > 2;
}
