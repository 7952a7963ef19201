"use strict";
function sortBy(button) {
  const head = button.closest("th"), table = head.closest("table"), body = table.tBodies[0];
  const column = head.cellIndex, words = head.className !== "number";
  // Numbers start with the largest, words with A.
  const sorted = head.getAttribute("aria-sort"), down = words ? sorted === "ascending" : sorted !== "descending";
  for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const value = row => row.cells[column].dataset.sort;
  const number = text => text === "-inf" ? -Infinity : Number(text);
  const compare = (a, b) => words ? value(b).localeCompare(value(a)) : number(value(b)) - number(value(a)) || 0;
  const rows = Array.from(body.rows).sort((a, b) => down ? compare(a, b) : compare(b, a));
  body.append(...rows);
}
for (const button of document.querySelectorAll("thead button"))
  button.addEventListener("click", () => sortBy(button));
function showHints() {
  for (const box of document.querySelectorAll(".box")) {
    const more = box.scrollWidth > box.clientWidth + box.scrollLeft + 2;
    box.classList.toggle("more", more);
    box.previousElementSibling.querySelector(".hint").hidden = box.scrollWidth <= box.clientWidth + 2;
  }
}
for (const box of document.querySelectorAll(".box")) box.addEventListener("scroll", showHints);
for (const details of document.querySelectorAll("details")) details.addEventListener("toggle", showHints);
addEventListener("resize", showHints);
showHints();
for (const range of document.querySelectorAll(".slider input")) {
  const slider = range.closest(".slider"), labels = range.dataset.labels.split("|");
  const show = () => {
    slider.querySelectorAll(".step").forEach((step, place) => { step.hidden = place !== range.valueAsNumber; });
    slider.querySelector("output").textContent = labels[range.valueAsNumber];
    range.setAttribute("aria-valuetext", labels[range.valueAsNumber]);
    showHints();
  };
  range.addEventListener("input", show);
  // A browser that restores the page restores the handle and not what it shows.
  show();
}
document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
});
addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("details")) details.open = true;
});
