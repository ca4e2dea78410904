// Keys of timelines: + and - zoom, arrows move, 0 shows all. A link to the table opens it.
"use strict";

(() => {
  function onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea, [contenteditable], .scroll")) return;
    const key = event.key === "=" ? "+" : event.key;
    const link = document.querySelector(`[data-zooms] a[data-zoom="${CSS.escape(key)}"]`);
    if (!link) return;
    event.preventDefault();
    link.click();
  }
  function openTable() {
    if (location.hash === "#as-table") document.getElementById("as-table")?.setAttribute("open", "");
  }
  document.addEventListener("DOMContentLoaded", () => {
    document.addEventListener("keydown", onKey);
    window.addEventListener("hashchange", openTable);
    openTable();
  });
})();
