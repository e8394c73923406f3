// The heat map: how many rows took how long, each second. It shows what percentiles hide, such as two humps.

import { boundaryMarks, latencyLabel, timeLabels } from "./axes.js";
import { html, svg } from "./dom.js";
import { count } from "./format.js";
import { WORDS } from "./words.js";

const TOP = 22;
const LABELS = 24;

/** Where the cells are: from `bottom` upwards, one row a bucket, none for buckets that are not needed. */
function grid({ bounds_ms: bounds, counts }, height) {
  const { low, high } = occupied(counts, bounds.length);
  const bottom = height - LABELS;
  const row = (bottom - TOP) / (high - low + 1);
  return { low, high, row, bottom, top: (bucket) => bottom - (bucket - low + 1) * row };
}

export function heatmap(history, boundaries, x, width, height) {
  const { low, high, row, bottom, top } = grid(history.heatmap, height);
  const every = Math.max(1, Math.ceil(20 / row));
  const labeled = history.heatmap.bounds_ms
    .map((bound, bucket) => ({ bound, bucket }))
    .filter(({ bucket }) => bucket >= low && bucket < high && (bucket - low) % every === 0);
  return [
    // Painted by `paint` once it is on the page and its colors are known.
    html("canvas", { class: "cells", "aria-hidden": "true" }),
    svg(
      "svg",
      { width, height, role: "img", "aria-label": "Heat map of latency over time" },
      svg("rect", { class: "frame", x: x.left, y: TOP, width: x.right - x.left, height: bottom - TOP }),
      svg(
        "text",
        { class: "mark", x: x.left, y: TOP - 7 },
        svg("title", null, WORDS["heat map"]),
        "rows by latency, each second",
      ),
      labeled.map(({ bound, bucket }) => latencyLabel(bound, x.left - 8, top(bucket))),
      boundaryMarks(boundaries, x, TOP, bottom),
      timeLabels(x, bottom + 17),
    ),
  ];
}

/** The buckets between the fastest and the slowest row, and one more on either side. */
function occupied(counts, last) {
  const some = [];
  for (let bucket = 0; bucket <= last; bucket += 1) if (counts.some((column) => column[bucket] > 0)) some.push(bucket);
  return { low: Math.max(0, (some[0] ?? 1) - 1), high: Math.min(last, (some.at(-1) ?? last - 1) + 1) };
}

/** Fills the canvas; returns the most rows of a cell, for the key. */
export function paint(container, history, x, width, height) {
  const canvas = container.querySelector("canvas");
  const scale = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  const brush = canvas.getContext("2d");
  const { low, high, row, top } = grid(history.heatmap, height);
  const { columns, step } = gather(history, x);
  const most = Math.max(1, ...[...columns.values()].flat());
  const colors = colorScale(container);
  // On whole pixels, else the seams between cells shine through.
  const pixel = (place) => Math.round(place * scale);
  for (const [column, counts] of columns) {
    const left = pixel(Math.max(x.left, x.left + (column - 0.5) * step));
    const right = pixel(Math.min(x.right, x.left + (column + 0.5) * step));
    for (let bucket = low; bucket <= high; bucket += 1) {
      if (!counts[bucket]) continue;
      // A single slow row among thousands must be seen: colors follow the logarithm.
      brush.fillStyle = colors(most > 1 ? Math.log(counts[bucket]) / Math.log(most) : 1);
      brush.fillRect(left, pixel(top(bucket)), right - left, pixel(top(bucket) + row) - pixel(top(bucket)));
    }
  }
  return most;
}

/** Where a second is narrower than two pixels, neighbors share a column. */
function gather(history, x) {
  const second = (x.right - x.left) / (x.end - x.begin);
  const step = second * Math.max(1, Math.ceil(2 / second));
  const columns = new Map();
  history.at.forEach((at, position) => {
    const column = Math.round((x(at) - x.left) / step);
    const before = columns.get(column);
    const counts = history.heatmap.counts[position];
    columns.set(column, before ? before.map((number, bucket) => number + counts[bucket]) : counts);
  });
  return { columns, step };
}

/** From the style sheet's `--heat`, a list of colors whose lightness runs one way: it reads without hues, too. */
function colorScale(element) {
  const stops = getComputedStyle(element)
    .getPropertyValue("--heat")
    .trim()
    .split(/\s+/)
    .map((hex) => [1, 3, 5].map((start) => parseInt(hex.slice(start, start + 2), 16)));
  return (share) => {
    const place = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
    const from = Math.min(Math.floor(place), stops.length - 2);
    const mixed = stops[from].map((value, channel) => value + (stops[from + 1][channel] - value) * (place - from));
    return `rgb(${mixed.map(Math.round).join(" ")})`;
  };
}

export function heatKey(container, most) {
  const colors = colorScale(container);
  const steps = [0, 0.2, 0.4, 0.6, 0.8, 1];
  return html(
    "span",
    { class: "heat-key", title: "The heat map's colors: rows of one second in one range of latency" },
    "1 row",
    svg(
      "svg",
      { width: 72, height: 10, "aria-hidden": "true" },
      steps.map((share, position) => svg("rect", { x: position * 12, width: 12, height: 10, fill: colors(share) })),
    ),
    count(most),
  );
}
