// Draws anew, and gives the focus back to the part that had it: a picture may be drawn between two keys.
function drawKeepingFocus(root, name, draw) {
  const focused = root.getRootNode().activeElement?.dataset?.[name];
  draw();
  if (focused !== undefined) root.querySelector(`[data-${name}="${focused}"]`)?.focus({ preventScroll: true });
}
