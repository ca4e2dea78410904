// Heat maps: an element with data-heat="id" is drawn from the JSON with that id: {rows, columns, cells: [[x, y, n]], measure, urls},
// where `urls` are addresses of the cells, or none. A table beside it has the same numbers for whoever has no script.
(() => {
  "use strict";
  const ROW_PX = 20, AXES_PX = 190, NARROW_PX = 600;
  // Charts by their element; those whose element was replaced by a refresh are thrown away.
  const charts = new Map();

  // light-dark() is resolved by the browser where it is used, not where it is declared: an element is asked.
  function resolved(name) {
    const probe = document.createElement("span");
    probe.style.color = `var(${name})`;
    document.body.append(probe);
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  }

  function option(heat, narrow) {
    const text = resolved("--text"), muted = resolved("--muted"), line = resolved("--line");
    // Names of sites often begin alike: the middle is left out.
    const half = narrow ? 7 : 15;
    const short = (words) => (words.length > 2 * half ? `${words.slice(0, half - 1)}…${words.slice(-half)}` : words);
    const values = heat.cells.map(([x, y, value]) => [x, y, Math.log1p(value)]);
    const labels = { color: muted, formatter: short, interval: 0 };
    return {
      animation: false,
      textStyle: { color: text, fontFamily: getComputedStyle(document.body).fontFamily },
      tooltip: {
        renderMode: "richText",
        formatter: ({ data, dataIndex }) => `${heat.rows[data[1]]}\n${heat.columns[data[0]]}\n${heat.cells[dataIndex][2].toLocaleString("en-GB")} ${heat.measure}`,
      },
      grid: { left: narrow ? 110 : 230, right: 16, top: 10, bottom: 120 },
      xAxis: { type: "category", data: heat.columns, axisLabel: { ...labels, rotate: 40 }, axisLine: { lineStyle: { color: line } } },
      yAxis: { type: "category", inverse: true, data: heat.rows, axisLabel: labels, axisLine: { lineStyle: { color: line } } },
      visualMap: { show: false, min: 0, max: Math.max(...values.map((v) => v[2])), inRange: { color: [resolved("--raised"), resolved("--bad-fill")] } },
      series: [{ type: "heatmap", data: values, itemStyle: { borderColor: resolved("--surface"), borderWidth: 1 }, emphasis: { itemStyle: { borderColor: text } } }],
    };
  }

  function draw(place) {
    const heat = JSON.parse(document.getElementById(place.dataset.heat).textContent);
    if (!heat.cells.length) return;
    place.closest("[data-heat-card]").hidden = false;
    place.style.height = `${heat.rows.length * ROW_PX + AXES_PX}px`;
    if (!charts.has(place)) charts.set(place, echarts.init(place, null, { renderer: "svg" }));
    const chart = charts.get(place);
    chart.resize();
    chart.setOption(option(heat, place.clientWidth < NARROW_PX), true);
    chart.off("click");
    chart.on("click", ({ dataIndex }) => { if (heat.urls?.[dataIndex]) location.href = heat.urls[dataIndex]; });
  }

  function drawAll() {
    for (const [place, chart] of charts) {
      if (place.isConnected) continue;
      charts.delete(place);
      chart.dispose();
    }
    document.querySelectorAll("[data-heat]").forEach(draw);
  }

  document.addEventListener("DOMContentLoaded", drawAll);
  document.addEventListener("htmx:afterSettle", drawAll);
  window.addEventListener("resize", drawAll);
  new MutationObserver(drawAll).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
})();
