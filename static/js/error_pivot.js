// The table of failures as a heat map. It is drawn again when the page refreshes or the theme changes.
(() => {
  "use strict";
  let chart = null;

  // light-dark() is resolved by the browser where it is used, not where it is declared: an element is asked.
  function resolved(name) {
    const probe = document.createElement("span");
    probe.style.color = `var(${name})`;
    document.body.append(probe);
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  }

  function draw() {
    const place = document.querySelector("[data-heat]");
    const source = document.getElementById("heat");
    chart?.dispose();
    chart = null;
    if (!place || !source || !window.echarts) return;
    const heat = JSON.parse(source.textContent);
    if (!heat.values.length) return;
    place.closest("[data-heat-card]").hidden = false;
    place.style.height = `${Math.max(220, heat.rows.length * 20 + 190)}px`;
    const text = resolved("--text"), muted = resolved("--muted"), line = resolved("--line");
    const narrow = place.clientWidth < 600;
    const short = (words) => (words.length > (narrow ? 14 : 30) ? `${words.slice(0, narrow ? 13 : 29)}…` : words);
    const values = heat.values.map(([x, y, value]) => [x, y, Math.log1p(value)]);
    chart = echarts.init(place, null, { renderer: "svg" });
    chart.setOption({
      animation: false,
      textStyle: { color: text, fontFamily: getComputedStyle(document.body).fontFamily },
      tooltip: {
        renderMode: "richText",
        formatter: ({ data, dataIndex }) => `${heat.rows[data[1]]}\n${heat.columns[data[0]]}\n${heat.values[dataIndex][2].toLocaleString("en-GB")} ${heat.measure}`,
      },
      grid: { left: narrow ? 110 : 230, right: 16, top: 10, bottom: 120 },
      xAxis: { type: "category", data: heat.columns, axisLabel: { rotate: 40, color: muted, formatter: short, interval: 0 }, axisLine: { lineStyle: { color: line } } },
      yAxis: { type: "category", inverse: true, data: heat.rows, axisLabel: { color: muted, formatter: short, interval: 0 }, axisLine: { lineStyle: { color: line } } },
      visualMap: { show: false, min: 0, max: Math.max(...values.map((v) => v[2])), inRange: { color: [resolved("--raised"), resolved("--bad-fill")] } },
      series: [{ type: "heatmap", data: values, itemStyle: { borderColor: resolved("--surface"), borderWidth: 1 }, emphasis: { itemStyle: { borderColor: text } } }],
    });
    chart.on("click", ({ dataIndex }) => { if (heat.urls[dataIndex]) location.href = heat.urls[dataIndex]; });
  }

  document.addEventListener("DOMContentLoaded", draw);
  document.addEventListener("htmx:afterSettle", draw);
  window.addEventListener("resize", () => chart?.resize());
  new MutationObserver(draw).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
})();
