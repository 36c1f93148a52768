// Tells the server once whether this browser can draw with WebGL: without it large maps are drawn as SVG.
export default function ({ setStateValue, data }) {
  if (data.known !== null) return;
  let found = false;
  try {
    const canvas = document.createElement("canvas");
    const context = canvas.getContext("webgl2") || canvas.getContext("webgl");
    found = context !== null;
    context?.getExtension("WEBGL_lose_context")?.loseContext(); // browsers allow few of them at once
  } catch {
    found = false;
  }
  setStateValue("webgl", found);
}
