// Where the time goes: the three parts of end-to-end, for the usual row and for the slow one.

import { stackedBar, sum, swatch } from "./bars.js";
import { columnHead, html, table } from "./dom.js";
import { latency } from "./format.js";
import { WORDS } from "./words.js";

const PARTS = [
  { key: "source_queue", name: "source queue", class: "queue" },
  { key: "processing", name: "processing", class: "processing" },
  { key: "acknowledgement", name: "acknowledgement", class: "acknowledgement" },
];
const WITHIN_PROCESSING = [
  { key: "python", name: "python" },
  { key: "shuffle", name: "shuffle" },
  { key: "sink", name: "sink" },
];
const NAMES = { python: "Python batch", shuffle: "shuffle", sink: "sink call" };
const NOT_A_SUM =
  "Each part's own percentile. The slow rows of one part are not those of the other, so they need not add up.";
const PERCENTILES = [
  { key: "p50_ms", name: "p50" },
  { key: "p99_ms", name: "p99" },
];

export function breakdown(query, chosen) {
  const figures = query.windows[chosen];
  if (!figures.end_to_end) return html("p", { class: "quiet" }, "No rows in this time span.");
  const row = ({ key, name, class: style }) =>
    html(
      "tr",
      { class: style ? "part" : "within" },
      html("th", { scope: "row", title: WORDS[name] }, style && swatch(style), NAMES[key] ?? name),
      PERCENTILES.map((percentile) => html("td", null, latency(figures[key]?.[percentile.key]))),
    );
  return [
    html(
      "div",
      { class: "breakdown" },
      PERCENTILES.map((percentile) => bar(figures, percentile)),
    ),
    table(
      "parts",
      [html("td"), PERCENTILES.map(({ name }) => columnHead(name, WORDS[name]))],
      PARTS.map(row),
      WITHIN_PROCESSING.filter(({ key }) => figures[key]).map(row),
    ),
  ];
}

function bar(figures, { key, name }) {
  const parts = PARTS.map((part) => ({ ...part, value: figures[part.key]?.[key] ?? 0 }));
  return html(
    "div",
    { class: "breakdown-row", title: NOT_A_SUM },
    html("span", { class: "percentile" }, name),
    stackedBar(parts, sum(parts) || 1, `Parts of ${name}`),
    html("span", { class: "value" }, latency(figures.end_to_end[key])),
  );
}
