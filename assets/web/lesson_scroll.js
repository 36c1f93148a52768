// A new step of a lesson is read from its beginning: the panel may still be scrolled down from the step before. An answer
// is read from its verdict, which stands below the question and what others chose.
const ANSWER_WAIT = 3000, POLL = 50; // milliseconds: the answer may open another page, which is drawn first
const ABOVE = 0.3; // of the height that is seen stays above the verdict
let shown = { step: null, answered: false };

export default function ({ data }) {
  const isNewStep = data.step !== shown.step;
  const isNewAnswer = data.answered && !shown.answered;
  shown = { step: data.step, answered: data.answered };
  const panel = document.querySelector(".st-key-lesson_panel");
  if (isNewStep && panel) for (const part of [panel, ...panel.children]) part.scrollTop = 0;
  if (isNewAnswer && !isNewStep) showVerdict(data.step, performance.now() + ANSWER_WAIT);
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
}

function canScroll(part) {
  return ["auto", "scroll"].includes(getComputedStyle(part).overflowY);
}
