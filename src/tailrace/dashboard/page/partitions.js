// Each partition's p99 and what it is made of, the worst on top.

import { keyTo, stackedBar, sum } from "./bars.js";
import { columnHead, html, table } from "./dom.js";
import { count, latency, rate } from "./format.js";
import { WORDS } from "./words.js";

const MOST = 30;
const PARTS = [
  { name: "source queue", class: "queue" },
  { name: "processing", class: "processing" },
  { name: "rest", class: "acknowledgement" },
];

const head = (name, what) => columnHead(name, WORDS[what]);

export const partitionsKey = () => keyTo(PARTS);

export function partitions(query, chosen) {
  if (query.partitions.length === 0) return html("p", { class: "quiet" }, "No partition has been read yet.");
  const measured = query.partitions.map((partition) => measure(partition, chosen)).sort(worstFirst);
  const shown = measured.slice(0, MOST);
  const longest = Math.max(...shown.map(({ parts }) => sum(parts)), 0.001);
  const heads = [
    head("partition"),
    head("p99, end to end", "end to end"),
    head("", "p99"),
    head("rows/s", "rows in"),
    head("lag", "lag"),
  ];
  return [
    table(
      "partitions",
      heads,
      shown.map((partition) => row(partition, longest)),
    ),
    measured.length > MOST && html("p", { class: "more" }, `and ${measured.length - MOST} more`),
  ];
}

function measure(partition, chosen) {
  const figures = partition.windows[chosen];
  const total = figures.end_to_end?.p99_ms ?? null;
  const queue = figures.source_queue?.p99_ms ?? 0;
  const processing = figures.processing?.p99_ms ?? 0;
  const rest = Math.max(0, (total ?? 0) - queue - processing);
  const parts = [queue, processing, rest].map((value, position) => ({ ...PARTS[position], value }));
  return { ...partition, total, parts, read: figures.rows_in_per_s };
}

/** Equal in what is shown of them, partitions keep their places; they would change them every second. */
const rank = ({ total }) => (total ? Number(total.toPrecision(2)) : -1);

function worstFirst(one, other) {
  if (rank(one) !== rank(other)) return rank(other) - rank(one);
  return one.topic.localeCompare(other.topic) || one.partition - other.partition;
}

function row(partition, longest) {
  const name = `${partition.topic}/${partition.partition}`;
  return html(
    "tr",
    null,
    html("th", { scope: "row", title: name }, name),
    html("td", { class: "bar-cell" }, stackedBar(partition.parts, longest, `Parts of p99 of ${name}`)),
    html("td", { class: "value" }, latency(partition.total)),
    html("td", { "data-unit": "rows/s" }, rate(partition.read)),
    html("td", { "data-unit": "behind" }, count(partition.lag_rows)),
  );
}
