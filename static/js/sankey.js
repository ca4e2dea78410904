// Flow of data by ECharts, from JSON that stands in the page. The same numbers are in a table below it.
"use strict";

(() => {
  const text = () => getComputedStyle(document.body).color;
  function draw(place) {
    const data = JSON.parse(document.getElementById(place.dataset.from).textContent);
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const chart = echarts.getInstanceByDom(place) || echarts.init(place);
    chart.setOption({
      animation: !still,
      tooltip: { trigger: "item", renderMode: "richText", valueFormatter: (value) => `${value.toLocaleString("en-GB")} MB` },
      series: [{
        type: "sankey", data: data.nodes, links: data.links, nodeGap: 12, right: 160, left: 10, emphasis: { focus: "adjacency" },
        lineStyle: { color: "gradient", opacity: 0.4 }, label: { color: text(), fontSize: 12 },
      }],
    }, true);
  }
  const places = () => document.querySelectorAll("[data-sankey]");
  const drawAll = () => places().forEach(draw);
  document.addEventListener("DOMContentLoaded", drawAll);
  new MutationObserver(drawAll).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  addEventListener("resize", () => {
    for (const place of places()) echarts.getInstanceByDom(place)?.resize();
  });
})();
