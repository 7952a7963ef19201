"use strict";
function sortBy(button) {
  const head = button.closest("th"), table = head.closest("table"), body = table.tBodies[0];
  const column = head.cellIndex, down = head.getAttribute("aria-sort") !== "descending";
  for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const value = row => row.cells[column].dataset.sort;
  const number = text => text === "-inf" ? -Infinity : Number(text);
  const words = head.className !== "number";
  const compare = (a, b) => words ? value(b).localeCompare(value(a)) : number(value(b)) - number(value(a)) || 0;
  const rows = Array.from(body.rows).sort((a, b) => down ? compare(a, b) : compare(b, a));
  body.append(...rows);
}
for (const button of document.querySelectorAll("thead button"))
  button.addEventListener("click", () => sortBy(button));
document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
});
addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("details")) details.open = true;
});
