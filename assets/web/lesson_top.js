// A new step of a lesson is read from its beginning: the panel may still be scrolled down from the step before.
let shown = null;

export default function ({ data }) {
  if (data.step === shown) return;
  shown = data.step;
  const panel = document.querySelector(".st-key-lesson_panel");
  if (panel) for (const part of [panel, ...panel.children]) part.scrollTop = 0;
}
