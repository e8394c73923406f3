// The latency curves: p50, p99 and p99.9 of each second, on a logarithmic scale.

import { boundaryMarks, latencyLabel, timeGrid } from "./axes.js";
import { svg } from "./dom.js";
import { latency } from "./format.js";
import { latencyMarks, logScale, roundLatency } from "./scales.js";
import { WORDS } from "./words.js";

const TOP = 14;
const LONGEST_STEP_S = 2.5; // further apart, two seconds have a gap between them
const LABEL_HEIGHT = 14;

// The lowest one last: it lies on top.
export const SERIES = [
  { key: "p999_ms", name: "p99.9", class: "p999" },
  { key: "p99_ms", name: "p99", class: "p99" },
  { key: "p50_ms", name: "p50", class: "p50" },
];

export function curves(history, boundaries, x, width, height) {
  const bottom = height - 8;
  const values = SERIES.flatMap(({ key }) => history[key]).filter((value) => value > 0);
  const low = values.length ? roundLatency(Math.min(...values) * 0.9, "down") : 1;
  const high = roundLatency(Math.max(...values, low * 10) * 1.05, "up");
  const y = logScale(low, high, bottom, TOP + 4);
  const latest = SERIES.map((series) => ({
    ...series,
    value: history[series.key].findLast((value) => value !== null),
  }));
  return svg(
    "svg",
    { width, height, role: "img", "aria-label": description(latest) },
    timeGrid(x, TOP, bottom),
    latencyMarks(y, bottom - TOP).map((mark) => [
      svg("line", { class: "grid", x1: x.left, x2: x.right, y1: y(mark), y2: y(mark) }),
      latencyLabel(mark, x.left - 8, y(mark)),
    ]),
    boundaryMarks(boundaries, x, TOP, bottom, { heads: true }),
    SERIES.map(({ key, class: name }) =>
      svg("path", { class: `curve ${name}`, d: path(history.at, history[key], x, y) }),
    ),
    values.length === 0 &&
      svg(
        "text",
        { class: "chart-note", x: (x.left + x.right) / 2, y: height / 2, "text-anchor": "middle" },
        "No rows yet",
      ),
    endLabels(latest, x.right + 7, y, bottom),
  );
}

function path(at, values, x, y) {
  let drawn = "";
  let before = null;
  at.forEach((time, position) => {
    const value = values[position];
    if (value === null) {
      before = null;
      return;
    }
    const joined = before !== null && time - before <= LONGEST_STEP_S;
    const point = `${x(time).toFixed(1)} ${y(value).toFixed(1)}`;
    drawn += joined ? `L${point}` : `M${point}h0`; // a lone second is a dot
    before = time;
  });
  return drawn;
}

/** Names at the curves' ends, to save the reader comparing colors; pushed apart where they would overlap. */
function endLabels(latest, left, y, bottom) {
  let free = TOP;
  return latest
    .filter(({ value }) => value !== undefined)
    .sort((one, other) => other.value - one.value)
    .map(({ name, class: style, value }, position, all) => {
      const lowest = bottom - (all.length - 1 - position) * LABEL_HEIGHT;
      const at = Math.min(Math.max(y(value), free), lowest);
      free = at + LABEL_HEIGHT;
      return svg(
        "text",
        { class: `curve-name ${style}`, x: left, y: (at + 4).toFixed(1) },
        svg("title", null, WORDS[name]),
        name,
      );
    });
}

function description(latest) {
  const figures = latest
    .filter(({ value }) => value !== undefined)
    .map(({ name, value }) => `${name} ${latency(value)}`);
  return figures.length
    ? `Latency end to end, each second. Latest: ${figures.join(", ")}.`
    : "No latency recorded yet.";
}
