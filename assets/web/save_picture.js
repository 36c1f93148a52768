// A button that saves what the page shows in one place as a picture, or as one the size of a slide below its finding.
export default function ({ data, parentElement }) {
  const button = parentElement.querySelector("button");
  button.textContent = data.label;
  button.title = data.hint;
  button.onclick = async () => {
    const found = await pictureOf(data.place).catch(() => null);
    if (!found) {
      button.textContent = "There is no picture to save";
      return;
    }
    const link = document.createElement("a");
    link.href = (data.says === undefined ? asPicture(found) : asSlide(found, data.says)).toDataURL("image/png");
    link.download = data.filename;
    link.click(); // a link that stands nowhere: its click does not reach the panel, which would close
  };
}
