// What pages do beyond links and forms: theme, clock, local times, refreshing what is watched, selections, keys.
// Every page reads without it.
"use strict";

(() => {
  const root = document.documentElement;
  const THEMES = ["auto", "light", "dark"];
  const PAUSED = "jedisite.paused";

  // Theme: kept in a cookie, so that the server writes it into the page and nothing flickers.
  function showTheme(theme) {
    root.dataset.theme = theme;
    for (const button of document.querySelectorAll("[data-theme-button]")) {
      button.setAttribute("aria-label", `Theme: ${theme}. Change.`);
      button.title = `Theme: ${theme}`;
    }
  }
  function nextTheme() {
    const theme = THEMES[(THEMES.indexOf(root.dataset.theme) + 1) % THEMES.length];
    document.cookie = `theme=${theme}; path=/; max-age=31536000; samesite=lax`;
    showTheme(theme);
  }

  // Clock and times: UTC, or this place's time for those who ask for it.
  const LOCAL = "jedisite.local";
  const isLocal = () => localStorage.getItem(LOCAL) === "1";
  const twoDigits = (number) => String(number).padStart(2, "0");
  function written(moment, local) {
    const get = (part) => (local ? moment[`get${part}`]() : moment[`getUTC${part}`]());
    const date = `${get("FullYear")}-${twoDigits(get("Month") + 1)}-${twoDigits(get("Date"))}`;
    return `${date} ${twoDigits(get("Hours"))}:${twoDigits(get("Minutes"))}:${twoDigits(get("Seconds"))}`;
  }
  function showTimes() {
    for (const time of document.querySelectorAll("main time[datetime]")) {
      const moment = new Date(time.dateTime);
      if (Number.isNaN(moment.getTime())) continue;
      const text = written(moment, isLocal());
      if (time.title) time.title = `${text} ${isLocal() ? "local time" : "UTC"}`;
      else if (/^\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}$/.test(time.textContent)) time.textContent = text;
    }
  }
  function tick() {
    for (const clock of document.querySelectorAll("[data-clock]")) {
      clock.textContent = `${written(new Date(), isLocal()).slice(11)} ${isLocal() ? "local" : "UTC"}`;
    }
  }
  function toggleLocal() {
    localStorage.setItem(LOCAL, isLocal() ? "0" : "1");
    tick();
    showTimes();
  }

  // Refresh: a watched part asks for its own page again and replaces itself. Not while the page is hidden, paused, or
  // somebody types or selects in it.
  let due = Infinity;
  const watched = () => document.querySelector("[data-refresh-seconds]");
  const isPaused = () => sessionStorage.getItem(PAUSED) === "1";
  function isBusy(part) {
    const active = document.activeElement;
    if (active && part.contains(active) && active.matches("input:not([type=checkbox]), select, textarea")) return true;
    if (part.querySelector("input[name=ids]:checked, input[name=query]:checked, dialog[open]")) return true;
    const selection = document.getSelection();
    return Boolean(selection && !selection.isCollapsed && part.contains(selection.anchorNode));
  }
  function schedule() {
    const part = watched();
    due = part ? Date.now() + Number(part.dataset.refreshSeconds) * 1000 : Infinity;
    for (const button of document.querySelectorAll("[data-pause-button]")) {
      button.hidden = !part;
      button.textContent = isPaused() ? "Resume" : "Pause";
      button.setAttribute("aria-pressed", String(isPaused()));
    }
  }
  function refreshNow() {
    if (watched()) document.body.dispatchEvent(new Event("refresh-now"));
  }
  function beat() {
    tick();
    const part = watched();
    if (!part) return;
    const next = isPaused() ? "paused" : `next in ${Math.max(0, Math.round((due - Date.now()) / 1000))} s`;
    for (const note of document.querySelectorAll("[data-next]")) note.textContent = next;
    if (Date.now() < due || isPaused() || document.hidden) return;
    schedule();
    if (!isBusy(part)) refreshNow();
  }
  function togglePause() {
    sessionStorage.setItem(PAUSED, isPaused() ? "0" : "1");
    schedule();
  }

  // What is open or closed stays so over a refresh, and so does the row, link or button that one is at.
  let opened = new Map();
  let focused = "";
  let held = null;
  const marks = (element) => [element.tagName, element.id, element.getAttribute("href"), element.textContent.trim()].join(" ");
  document.addEventListener("htmx:beforeSwap", () => {
    opened = new Map([...document.querySelectorAll("details[id]")].map((details) => [details.id, details.open]));
    focused = document.activeElement?.closest("[data-row]") ? document.activeElement.getAttribute("href") || "" : "";
    const active = document.activeElement;
    held = !focused && active?.matches("a, button, summary") && watched()?.contains(active) ? marks(active) : null;
  });
  document.addEventListener("htmx:afterSettle", () => {
    for (const [id, open] of opened) document.getElementById(id)?.toggleAttribute("open", open);
    if (held && document.activeElement === document.body) {
      [...(watched()?.querySelectorAll("a, button, summary") ?? [])].find((one) => marks(one) === held)?.focus({ preventScroll: true });
    }
    if (focused) rowLinks().find((link) => link.getAttribute("href") === focused)?.focus({ preventScroll: true });
    for (const note of document.querySelectorAll(".stale")) note.remove();
    schedule();
    showTimes();
    rememberList();
    countSelection();
  });
  // A refresh that fails is said: the numbers on the page are old.
  function sayStale() {
    const watch = document.querySelector(".watch");
    if (!watch || watch.querySelector(".stale")) return;
    const note = document.createElement("strong");
    note.className = "stale";
    note.textContent = " The site does not answer: this is old.";
    watch.append(note);
  }
  document.addEventListener("htmx:sendError", sayStale);
  document.addEventListener("htmx:responseError", sayStale);

  function say(text) {
    const place = document.getElementById("said");
    if (place) place.textContent = text;
  }

  // Rows of a list: moving, selecting, and remembering their order for the pages of the items.
  const LIST = "jedisite.list";
  const rowLinks = () => [...document.querySelectorAll("[data-row] th a, [data-row] td:first-of-type a")]
    .filter((link, place, all) => all.findIndex((other) => other.closest("[data-row]") === link.closest("[data-row]")) === place);
  function moveRow(step) {
    const links = rowLinks();
    if (!links.length) return;
    const now = links.findIndex((link) => link.closest("[data-row]").contains(document.activeElement));
    links[Math.min(Math.max(now + step, 0), links.length - 1)].focus();
  }
  function toggleRow() {
    const box = document.activeElement?.closest("[data-row]")?.querySelector("input[name=ids]");
    if (box) box.click();
  }
  function rememberList() {
    const links = rowLinks().map((link) => new URL(link.href).pathname);
    if (links.length) sessionStorage.setItem(LIST, JSON.stringify({ at: location.pathname + location.search, links }));
  }
  function neighbour(step) {
    let list;
    try { list = JSON.parse(sessionStorage.getItem(LIST) || "null"); } catch { return; }
    const place = list ? list.links.findIndex((path) => location.pathname.startsWith(path)) : -1;
    const next = place < 0 ? undefined : list.links[place + step];
    if (next) location.assign(next);
    else say("There is no other one in the list.");
  }
  function countSelection() {
    const bar = document.querySelector("[data-selection-bar]");
    if (!bar) return;
    const boxes = [...document.querySelectorAll("[data-row] input[name=ids]")];
    const all = bar.querySelector("[data-select-all-matching]");
    const number = boxes.filter((box) => box.checked).length;
    for (const box of boxes) box.disabled = all.checked;
    bar.querySelector("[data-selection-count]").textContent = all.checked ? "All that match" : number ? `${number} selected` : "Nothing selected";
    bar.classList.toggle("is-active", all.checked || number > 0);
    const page = document.querySelector("[data-select-page]");
    page.checked = number > 0 && number === boxes.length;
    page.indeterminate = number > 0 && number < boxes.length;
    for (const box of boxes) box.closest("[data-row]").classList.toggle("is-selected", box.checked || all.checked);
  }
  function openTool(letter) {
    const details = document.querySelector(`[data-tool="${letter}"]`)?.closest("details");
    if (!details) return;
    details.open = !details.open;
    if (details.open) details.querySelector("input:not([type=hidden]), select")?.focus();
  }
  async function copyLink() {
    try {
      await navigator.clipboard.writeText(location.href);
      say("The address is copied.");
    } catch {
      say("The browser does not let pages copy; take the address from its bar.");
    }
  }

  // Keys.
  let awaitingPlace = false;
  function go(letter) {
    const link = document.querySelector(`.nav a[data-key="${CSS.escape(letter)}"]`);
    if (link) link.click();
  }
  function onKey(event) {
    if (event.key === "Escape") {
      const open = [...document.querySelectorAll("details.tool[open], details.frame-tool[open]")];
      for (const details of open) details.open = false;
      open[0]?.querySelector("summary").focus();
      return;
    }
    const typing = event.target.closest("input:not([type=checkbox]), select, textarea, [contenteditable]");
    if (event.ctrlKey || event.metaKey || event.altKey || typing || document.querySelector("dialog[open]")) return;
    if (awaitingPlace) {
      awaitingPlace = false;
      go(event.key);
      return;
    }
    const actions = {
      "/": () => document.getElementById("search")?.focus(),
      "j": () => moveRow(1),
      "k": () => moveRow(-1),
      "x": toggleRow,
      "f": () => openTool("f"),
      "c": () => openTool("c"),
      "s": () => openTool("s"),
      "e": () => document.querySelector("[data-export]")?.focus(),
      "y": copyLink,
      "[": () => neighbour(-1),
      "]": () => neighbour(1),
      "g": () => { awaitingPlace = true; setTimeout(() => { awaitingPlace = false; }, 1500); },
      "r": refreshNow,
      "p": togglePause,
      "T": nextTheme,
      "?": () => document.getElementById("help")?.showModal(),
    };
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  document.addEventListener("DOMContentLoaded", () => {
    showTheme(THEMES.includes(root.dataset.theme) ? root.dataset.theme : "auto");
    for (const button of document.querySelectorAll("[data-theme-button]")) button.hidden = false;
    document.addEventListener("keydown", onKey);
    document.addEventListener("click", (event) => {
      if (event.target.closest("[data-theme-button]")) nextTheme();
      if (event.target.closest("[data-pause-button]")) togglePause();
      if (event.target.closest("[data-local-button]")) toggleLocal();
      if (event.target.closest("[data-copy-link]")) copyLink();
      const up = event.target.closest("[data-move-up]");
      if (up) {
        const item = up.closest("li");
        item.previousElementSibling?.before(item);
        up.focus();
      }
      for (const details of document.querySelectorAll("details.tool[open], details.frame-tool[open]")) {
        if (!details.contains(event.target)) details.open = false;
      }
      if (event.target.closest("[data-close-help]")) document.getElementById("help")?.close();
    });
    document.addEventListener("change", (event) => {
      event.target.closest("select[data-submits]")?.form.requestSubmit();
      if (event.target.matches("[data-select-page]")) {
        for (const box of document.querySelectorAll("[data-row] input[name=ids]")) box.checked = event.target.checked;
      }
      if (event.target.closest("#selection")) countSelection();
    });
    for (const button of document.querySelectorAll("[data-copy-link], [data-move-up]")) button.hidden = false;
    // Where facets stand above the list (site.css), they are folded until one is chosen.
    const facets = document.getElementById("d-facets");
    if (facets && matchMedia("(max-width: 1600px)").matches) facets.open = Boolean(facets.querySelector("[aria-current]"));
    // On a narrow screen the sections are one row that scrolls: show the one that one is in.
    const here = document.querySelector(".nav a[aria-current]");
    if (here) here.closest("ul").scrollLeft = here.offsetLeft - 40;
    schedule();
    tick();
    showTimes();
    rememberList();
    countSelection();
    setInterval(beat, 1000);
  });
})();
