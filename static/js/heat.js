// Heat maps: an element with data-heat="id" is drawn from the JSON with that id ({rows, columns, cells: [[x, y, n]], most}).
// The table beside it has the same numbers for whoever has no script.
"use strict";

(() => {
  const ROW_PX = 17;
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  // Custom properties with light-dark() are resolved by a property that takes a colour.
  function resolved(name) {
    const probe = document.createElement("span");
    probe.style.color = colour(name);
    document.body.append(probe);
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  }
  const NARROW_PX = 700;
  function option(data, width) {
    const text = { color: resolved("--muted"), fontSize: 11 };
    return {
      animation: false,
      aria: { enabled: true },
      grid: { left: 8, right: 8, top: 8, bottom: 56, containLabel: true },
      tooltip: { renderMode: "richText", formatter: (one) => `${data.rows[one.value[1]]}\n${data.columns[one.value[0]]}: ${one.value[2].toLocaleString("en-GB")}` },
      xAxis: { type: "category", data: data.columns, position: "top", axisLabel: { ...text, rotate: width < NARROW_PX ? 90 : 30, interval: 0 }, axisTick: { show: false } },
      yAxis: { type: "category", data: data.rows, axisLabel: text, axisTick: { show: false } },
      visualMap: { min: 0, max: Math.max(data.most, 1), orient: "horizontal", left: "center", bottom: 4, itemHeight: 180, calculable: true, textStyle: text,
        inRange: { color: [resolved("--raised"), resolved("--warn-fill"), resolved("--bad-fill")] } },
      series: [{ type: "heatmap", data: data.cells, itemStyle: { borderColor: resolved("--surface"), borderWidth: 1 } }],
    };
  }
  // Charts by their element; those whose element was replaced by a refresh are thrown away.
  const charts = new Map();
  function draw(element) {
    const data = JSON.parse(document.getElementById(element.dataset.heat).textContent);
    element.hidden = false;
    element.style.height = `${data.rows.length * ROW_PX + 150}px`;
    if (!charts.has(element)) charts.set(element, window.echarts.init(element));
    charts.get(element).setOption(option(data, element.clientWidth), true);
  }
  function drawAll() {
    for (const [element, chart] of charts) {
      if (element.isConnected) continue;
      charts.delete(element);
      chart.dispose();
    }
    document.querySelectorAll("[data-heat]").forEach(draw);
  }
  document.addEventListener("DOMContentLoaded", drawAll);
  document.addEventListener("htmx:afterSettle", drawAll);
  window.addEventListener("resize", () => {
    for (const chart of charts.values()) chart.resize();
  });
  new MutationObserver(drawAll).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
})();
