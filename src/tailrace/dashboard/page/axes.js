// What the charts over time have in common: the marks of time, of latency, and of the ends of epochs.

import { svg } from "./dom.js";
import { axisLatency, clock, latency } from "./format.js";
import { timeMarks } from "./scales.js";

export function timeGrid(x, top, bottom) {
  return timeMarks(x).marks.map((at) => svg("line", { class: "grid", x1: x(at), x2: x(at), y1: top, y2: bottom }));
}

export function timeLabels(x, baseline) {
  const { marks, seconds } = timeMarks(x);
  return marks.map((at) =>
    svg("text", { class: "mark", x: x(at).toFixed(1), y: baseline, "text-anchor": "middle" }, clock(at, { seconds })),
  );
}

export function latencyLabel(ms, right, y) {
  return svg("text", { class: "mark", x: right, y: (y + 3.5).toFixed(1), "text-anchor": "end" }, axisLatency(ms));
}

export function boundaryMarks(boundaries, x, top, bottom, { heads = false } = {}) {
  return boundaries
    .filter(({ at }) => at >= x.begin && at <= x.end)
    .map((boundary) => {
      const pixel = x(boundary.at).toFixed(1);
      return svg(
        "g",
        { class: "boundary" },
        svg("title", null, boundaryText(boundary)),
        svg("line", { x1: pixel, x2: pixel, y1: top, y2: bottom }),
        heads && svg("path", { d: `M${pixel} ${top}m-3.5 -5h7l-3.5 5z` }),
      );
    });
}

export const boundaryText = ({ at, epoch, pause_ms, parts_ms, overlapped, reason }) =>
  `Epoch ${epoch} ended at ${clock(at)}` +
  (pause_ms === null ? "" : `; nothing was read for ${latency(pause_ms)}${partsText(parts_ms)}`) +
  (overlapped ? "; the next one overlapped" : reason ? `; not overlapped: ${reason}` : "");

// What a pause was made of, in the order in which it happens.
export const partsText = (parts) =>
  parts
    ? ": " +
      Object.entries(parts)
        .map(([part, taken]) => `${part} ${latency(taken)}`)
        .join(", ")
    : "";
