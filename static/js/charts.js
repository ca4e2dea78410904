// Drawings by ECharts of data that stands in the page as JSON. The same numbers are in a table beside each drawing.
"use strict";

(() => {
  // A custom property may hold light-dark(); an element that wears it says what it means now.
  function worn(name) {
    const probe = document.createElement("span");
    probe.className = `probe ${name}`;
    document.body.append(probe);
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  }
  const text = () => getComputedStyle(document.body).color;
  const KINDS = {
    sankey: (data) => ({
      tooltip: { trigger: "item", renderMode: "richText", valueFormatter: (value) => `${value.toLocaleString("en-GB")} MB` },
      series: [{
        type: "sankey", data: data.nodes, links: data.links, nodeGap: 12, right: 160, left: 10, emphasis: { focus: "adjacency" },
        lineStyle: { color: "gradient", opacity: 0.4 }, label: { color: text(), fontSize: 12 },
      }],
    }),
    // {rows: [...], columns: [...], cells: [[column, row, number], ...], unit}: numbers of two attributes.
    heatmap: (data) => ({
      tooltip: {
        renderMode: "richText",
        formatter: (point) => `${data.rows[point.value[1]]}\n${data.columns[point.value[0]]}\n${point.value[2].toLocaleString("en-GB")} ${data.unit || ""}`,
      },
      grid: { left: 10, right: 70, top: 10, bottom: 10, containLabel: true },
      xAxis: { type: "category", data: data.columns, axisLabel: { color: text(), rotate: 40, width: 150, overflow: "truncate" }, splitArea: { show: true } },
      yAxis: { type: "category", data: data.rows, inverse: true, axisLabel: { color: text(), width: 190, overflow: "truncate" }, splitArea: { show: true } },
      visualMap: {
        min: 0, max: Math.max(1, ...data.cells.map((cell) => cell[2])), calculable: false, orient: "vertical", right: 0, top: "center",
        itemHeight: 120, textStyle: { color: text() }, inRange: { color: [worn("heat-low"), worn("heat-high")] },
      },
      series: [{ type: "heatmap", data: data.cells, progressive: 0, emphasis: { itemStyle: { borderColor: text(), borderWidth: 1 } } }],
    }),
  };

  function draw(place) {
    const data = JSON.parse(document.getElementById(place.dataset.from).textContent);
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const chart = echarts.getInstanceByDom(place) || echarts.init(place, null, { renderer: "canvas" });
    chart.setOption({ animation: !still, textStyle: { color: text() }, ...KINDS[place.dataset.chart](data) }, true);
    return chart;
  }
  function drawAll() {
    for (const place of document.querySelectorAll("[data-chart]")) draw(place);
  }
  document.addEventListener("DOMContentLoaded", drawAll);
  document.addEventListener("htmx:afterSettle", drawAll);
  new MutationObserver(drawAll).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  addEventListener("resize", () => {
    for (const place of document.querySelectorAll("[data-chart]")) echarts.getInstanceByDom(place)?.resize();
  });
})();
