// What pages do beyond links and forms: theme, clock, refreshing what is watched, keys. Every page reads without it.
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

  // Clock in UTC.
  const twoDigits = (number) => String(number).padStart(2, "0");
  function tick() {
    const now = new Date();
    for (const clock of document.querySelectorAll("[data-clock]")) {
      clock.textContent = `${twoDigits(now.getUTCHours())}:${twoDigits(now.getUTCMinutes())}:${twoDigits(now.getUTCSeconds())} UTC`;
    }
  }

  // Refresh: a watched part asks for its own page again and replaces itself. Not while the page is hidden, paused, or
  // somebody types or selects in it.
  let due = Infinity;
  const watched = () => document.querySelector("[data-refresh-seconds]");
  const isPaused = () => sessionStorage.getItem(PAUSED) === "1";
  function isBusy(part) {
    const active = document.activeElement;
    if (active && part.contains(active) && active.matches("input, select, textarea")) return true;
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
    if (!part || Date.now() < due || isPaused() || document.hidden) return;
    schedule();
    if (!isBusy(part)) refreshNow();
  }
  function togglePause() {
    sessionStorage.setItem(PAUSED, isPaused() ? "0" : "1");
    schedule();
  }

  // Opened details stay open over a refresh.
  let opened = new Set();
  document.addEventListener("htmx:beforeSwap", () => {
    opened = new Set([...document.querySelectorAll("details[id][open]")].map((details) => details.id));
  });
  document.addEventListener("htmx:afterSettle", () => {
    for (const id of opened) document.getElementById(id)?.setAttribute("open", "");
    schedule();
  });

  // Keys.
  let awaitingPlace = false;
  function go(letter) {
    const link = document.querySelector(`.nav a[data-key="${CSS.escape(letter)}"]`);
    if (link) link.click();
  }
  function onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea, [contenteditable]")) return;
    if (awaitingPlace) {
      awaitingPlace = false;
      go(event.key);
      return;
    }
    const actions = {
      "/": () => document.getElementById("search")?.focus(),
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
      if (event.target.closest("[data-close-help]")) document.getElementById("help")?.close();
    });
    document.addEventListener("change", (event) => event.target.closest("select[data-submits]")?.form.requestSubmit());
    schedule();
    tick();
    setInterval(beat, 1000);
  });
})();
