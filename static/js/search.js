// Suggestions under the search box: arrows choose one, Enter opens it, Escape closes them. Without it the box sends its form.
"use strict";

(() => {
  const WAIT_MS = 150;

  document.addEventListener("DOMContentLoaded", () => {
    const form = document.querySelector("form[data-suggestions]");
    if (!form) return;
    const input = form.querySelector("input[type=search]");
    const list = document.createElement("ul");
    list.id = "suggestions";
    list.className = "suggestions";
    list.hidden = true;
    list.setAttribute("role", "listbox");
    list.setAttribute("aria-label", "Suggestions");
    form.append(list);
    for (const [name, value] of Object.entries({ role: "combobox", "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": list.id })) {
      input.setAttribute(name, value);
    }
    const options = () => [...list.querySelectorAll("[role=option]")];
    let chosen = -1;
    let timer = 0;
    let request = null;

    function choose(place) {
      const all = options();
      chosen = all.length ? (place + all.length + 1) % (all.length + 1) : -1;
      if (chosen === all.length) chosen = -1;
      all.forEach((option, at) => option.setAttribute("aria-selected", String(at === chosen)));
      if (chosen < 0) {
        input.removeAttribute("aria-activedescendant");
        return;
      }
      input.setAttribute("aria-activedescendant", all[chosen].id);
      all[chosen].scrollIntoView({ block: "nearest" });
    }
    function close() {
      clearTimeout(timer);
      request?.abort();
      list.hidden = true;
      input.setAttribute("aria-expanded", "false");
      choose(-1);
    }
    function show(html) {
      list.innerHTML = html;
      const any = options().length > 0;
      list.hidden = !any;
      input.setAttribute("aria-expanded", String(any));
      choose(-1);
    }
    async function ask() {
      request?.abort();
      request = new AbortController();
      const text = input.value.trim();
      try {
        const answer = await fetch(`${form.dataset.suggestions}?${new URLSearchParams({ q: text })}`, { signal: request.signal });
        if (answer.ok && !answer.redirected && document.activeElement === input) show(await answer.text());
      } catch (error) {
        if (error.name !== "AbortError") close();
      }
    }
    input.addEventListener("input", () => {
      clearTimeout(timer);
      if (input.value.trim().length < 2) close();
      else timer = setTimeout(ask, WAIT_MS);
    });
    input.addEventListener("keydown", (event) => {
      if (event.key === "ArrowDown" || event.key === "ArrowUp") {
        if (list.hidden) return;
        event.preventDefault();
        choose(chosen < 0 && event.key === "ArrowUp" ? options().length - 1 : chosen + (event.key === "ArrowDown" ? 1 : -1));
      } else if (event.key === "Enter" && chosen >= 0) {
        event.preventDefault();
        location.assign(options()[chosen].dataset.url);
      } else if (event.key === "Escape" && !list.hidden) {
        event.preventDefault();
        event.stopPropagation();
        close();
      }
    });
    list.addEventListener("mousedown", (event) => {
      const option = event.target.closest("[role=option]");
      if (!option) return;
      event.preventDefault();
      location.assign(option.dataset.url);
    });
    input.addEventListener("blur", close);
    form.addEventListener("submit", close);
  });
})();
