"use strict";
// Zoom and scroll of the timeline, the details of what is pointed at, the copy buttons and the
// filter. The page is whole without it. Text goes in as text only, never as markup.
(() => {
  const $ = (id) => document.getElementById(id);
  for (const button of document.querySelectorAll("[data-copy]")) {
    button.addEventListener("click", () => copy(button));
  }
  const chart = $("chart");
  if (!chart) return;
  const end = +chart.dataset.end;
  const first = { from: +chart.dataset.from, span: chart.dataset.to - chart.dataset.from };
  const number = (element, name) => parseFloat(element.style.getPropertyValue(name));
  const timed = [...chart.querySelectorAll(".t:not(.tick-label)")].map((element) => {
    const from = number(element, "--a"), to = number(element, "--b");
    return {
      element, from, to: Number.isNaN(to) ? from : to, bar: element.classList.contains("bar"),
      off: element.classList.contains("off"), tiny: element.classList.contains("tiny"),
    };
  });
  const sparse = [...chart.querySelectorAll(".sparse")];
  const pins = [...chart.querySelectorAll(".pin")];
  const plot = $("axis");
  let data = null;
  let view = { ...first };
  let step = -1;
  let locked = false;
  let waiting = 0;

  function show(from, span) {
    span = Math.min(Math.max(span, 0.0005), Math.max(end * 1.04, first.span));
    from = Math.min(Math.max(from, -0.02 * end), Math.max(end * 1.02 - span, first.from));
    view = { from, span };
    if (!waiting) waiting = requestAnimationFrame(draw);
  }

  // At most once a frame, however many events the wheel sends.
  function draw() {
    waiting = 0;
    const { from, span } = view;
    chart.style.setProperty("--from", from);
    chart.style.setProperty("--span", span);
    const until = from + span;
    const narrow = (span * 30) / Math.max(plot.clientWidth, 200);
    for (const item of timed) {
      const off = item.to < from || item.from > until;
      if (off !== item.off) item.element.classList.toggle("off", item.off = off);
      if (off || !item.bar) continue;
      const tiny = Math.min(item.to, until) - Math.max(item.from, from) < narrow;
      if (tiny !== item.tiny) item.element.classList.toggle("tiny", item.tiny = tiny);
    }
    for (const track of sparse) {
      track.classList.toggle("off", !track.querySelector(".t:not(.off)"));
    }
    const box = $("window").style;
    box.left = `${(Math.max(from, 0) / end) * 100}%`;
    box.width = `${((Math.min(until, end) - Math.max(from, 0)) / end) * 100}%`;
    ticks();
    level();
  }

  // A tick at every round time, about 110 pixels apart.
  function ticks() {
    const wanted = (view.span * 110) / Math.max(plot.clientWidth, 200);
    const ten = 10 ** Math.floor(Math.log10(wanted));
    const each = [1, 2, 5, 10].map((n) => n * ten).find((n) => n >= wanted);
    const digits = Math.max(0, Math.min(6, -Math.floor(Math.log10(each) + 1e-9)));
    const made = [];
    for (let n = Math.ceil(Math.max(view.from, 0) / each); n * each <= view.from + view.span; n++) {
      const tick = document.createElement("span");
      tick.className = "tick-label";
      tick.style.setProperty("--a", n * each);
      tick.textContent = `${(n * each).toFixed(digits)} s`;
      made.push(tick);
    }
    $("ticks").replaceChildren(...made);
  }

  // Pins that would hide each other stand above each other.
  function level() {
    const right = [];
    for (const pin of pins.filter((pin) => !pin.classList.contains("off"))) {
      const x = ((number(pin, "--a") - view.from) / view.span) * plot.clientWidth;
      let at = right.findIndex((edge) => edge < x - 10);
      if (at < 0) at = Math.min(right.length, 3);
      right[at] = x + 10;
      pin.style.setProperty("--level", at);
    }
    plot.style.setProperty("--levels", Math.max(1, right.length));
  }

  const zoom = (factor, at = 0.5) =>
    show(view.from + view.span * at * (1 - factor), view.span * factor);
  const move = (part) => show(view.from + view.span * part, view.span);

  // Brings a time into view; as near as the first window, if it was farther off.
  function go(seq) {
    const target = $(`m${seq}`) || chart.querySelector(`[data-e="${seq}"]:not(.pin)`);
    data ??= JSON.parse($("data").textContent);
    if (!target && !data[seq]) return false;
    const at = target ? number(target, "--a") : data[seq].at_ns / 1e9;
    if (at < view.from + view.span * 0.03 || at > view.from + view.span * 0.97) {
      show(at - view.span / 2, view.span);
    }
    tell(seq, target);
    target?.classList.remove("flash");
    void target?.offsetWidth;
    target?.classList.add("flash");
    locked = true;
    return true;
  }

  function flat(value, path, rows) {
    if (value === null || typeof value !== "object") {
      rows.push([path || "kind", value]);
    } else {
      for (const [key, inner] of Object.entries(value)) {
        flat(inner, path ? `${path}.${key}` : key, rows);
      }
    }
    return rows;
  }

  function tell(seq, element) {
    data ??= JSON.parse($("data").textContent);
    const event = seq === undefined ? undefined : data[seq];
    const line = document.createElement("p");
    line.className = "line";
    line.textContent = element ? element.title : $(`e${seq}`).cells[3].textContent;
    const list = document.createElement("dl");
    for (const [name, value] of event ? flat(event, "", []) : []) {
      const row = document.createElement("div");
      const dt = document.createElement("dt"), dd = document.createElement("dd");
      dt.textContent = name.replace(/^kind\./, "");
      dd.textContent = String(value);
      row.append(dt, dd);
      list.append(row);
    }
    $("details").replaceChildren(line, list);
    $("details").className = "filled";
    for (const chosen of chart.querySelectorAll(".chosen")) chosen.classList.remove("chosen");
    element?.classList.add("chosen");
  }

  const pointed = (event) => event.target.closest?.("#chart [data-e], #chart .bar[title]");
  chart.addEventListener("mouseover", (event) => {
    const element = pointed(event);
    if (element && !locked && !drag) tell(element.dataset.e, element);
  });
  chart.addEventListener("focusin", (event) => {
    const element = pointed(event);
    if (element) tell(element.dataset.e, element);
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("[data-go]");
    if (link && go(link.dataset.go)) {
      event.preventDefault();
      const step = pins.findIndex((pin) => pin.dataset.e === link.dataset.go);
      if (step >= 0) chart.scrollIntoView({ block: "nearest" });
      else chart.scrollIntoView({ block: "center" });
    }
  });
  chart.addEventListener("click", (event) => {
    const element = pointed(event);
    if (element) {
      event.preventDefault();
      tell(element.dataset.e, element);
    }
    locked = Boolean(element);
  });

  let drag = null;
  chart.addEventListener("pointerdown", (event) => {
    const strip = event.target.closest?.("#overview");
    if (strip) {
      const box = strip.getBoundingClientRect();
      show(((event.clientX - box.left) / box.width) * end - view.span / 2, view.span);
    } else if (event.button === 0 && event.target.closest?.(".plot, .shades")) {
      drag = { x: event.clientX, from: view.from, moved: false };
    }
  });
  window.addEventListener("pointermove", (event) => {
    if (!drag) return;
    const by = event.clientX - drag.x;
    if (Math.abs(by) > 4) drag.moved = true;
    if (drag.moved) show(drag.from - (by / plot.clientWidth) * view.span, view.span);
  });
  window.addEventListener("pointerup", () => { drag = null; });
  chart.addEventListener("dragstart", (event) => event.preventDefault());
  chart.addEventListener("dblclick", (event) => {
    const box = plot.getBoundingClientRect();
    zoom(0.4, (event.clientX - box.left) / box.width);
  });
  chart.addEventListener("wheel", (event) => {
    const box = plot.getBoundingClientRect();
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      zoom(Math.exp(event.deltaY * 0.002), (event.clientX - box.left) / box.width);
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      move((event.deltaX || event.deltaY) / plot.clientWidth);
    }
  }, { passive: false });

  function walk(by) {
    if (!pins.length) return;
    step = (step + by + pins.length) % pins.length;
    go(pins[step].dataset.e);
  }
  const actions = {
    evidence: () => show(first.from, first.span),
    all: () => show(-0.01 * end, end * 1.02),
    in: () => zoom(0.5),
    out: () => zoom(2),
    left: () => move(-0.25),
    right: () => move(0.25),
    next: () => walk(1),
    previous: () => walk(step < 0 ? 0 : -1),
  };
  const keys = {
    e: "evidence", a: "all", "+": "in", "=": "in", "-": "out", n: "next", p: "previous",
    ArrowLeft: "left", ArrowRight: "right",
  };
  for (const button of document.querySelectorAll("[data-do]")) {
    button.addEventListener("click", () => actions[button.dataset.do]());
  }
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input")) return;
    if (event.key === "Escape") locked = false;
    const action = keys[event.key];
    if (action) {
      event.preventDefault();
      actions[action]();
    }
  });
  window.addEventListener("resize", () => show(view.from, view.span));
  draw();

  const filter = $("filter");
  filter?.addEventListener("input", () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of document.querySelectorAll("#events tbody tr")) {
      const text = (row.said ??= row.textContent.toLowerCase());
      row.hidden = !words.every((word) => text.includes(word));
      shown += !row.hidden;
    }
    $("matches").textContent = words.length ? `${shown} shown` : "";
  });

  function copy(button) {
    const said = button.parentElement.querySelector("output");
    const done = () => {
      said.textContent = "copied";
      setTimeout(() => { said.textContent = ""; }, 1500);
    };
    const byHand = () => {
      const area = document.createElement("textarea");
      area.value = button.dataset.copy;
      document.body.append(area);
      area.select();
      if (document.execCommand("copy")) done();
      area.remove();
    };
    if (navigator.clipboard) navigator.clipboard.writeText(button.dataset.copy).then(done, byHand);
    else byHand();
  }
})();
