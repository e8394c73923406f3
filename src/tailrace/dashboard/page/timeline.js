// Curves and heat map on one time axis, and the read-out that follows the pointer or the arrow keys.

import { boundaryText } from "./axes.js";
import { curves, SERIES } from "./curves.js";
import { byId, html, show } from "./dom.js";
import { clock, count, latency } from "./format.js";
import { heatKey, heatmap, paint } from "./heatmap.js";
import { timeScale } from "./scales.js";
import { WORDS } from "./words.js";

const LEAST_WIDTH = 160;
const CURVES_SHARE = 0.6;
const SPANS_S = [60, 120, 300, 600];
const NEAR_S = 1.6; // a sample belongs to the pointer's time if it is no further away
const NEAR_PIXELS = 5;

const container = byId("timeline");
const readout = byId("readout");
const crosshair = byId("crosshair");

let drawn = null; // { history, boundaries, x }
let pointedAt = null; // a time of day

export function drawTimeline(history, boundaries, now) {
  const { clientWidth: width, clientHeight: height } = container;
  if (width < LEAST_WIDTH) return; // not on the page yet, or nothing that one could read
  const share = Math.round(height * CURVES_SHARE);
  const x = frame(history, now, width);
  drawn = { history, boundaries, x };
  show(byId("curves"), curves(history, boundaries, x, width, share));
  show(byId("heatmap"), heatmap(history, boundaries, x, width, height - share));
  const most = paint(byId("heatmap"), history, x, width, height - share);
  show(
    byId("timeline-key"),
    html("span", { class: "boundary-key", title: WORDS.boundary }, "epoch boundary"),
    history.at.length > 0 && heatKey(byId("heatmap"), most),
  );
  drawReadout();
}

/** A young query gets a shorter axis, so that its first minute is not a sliver at the edge. */
function frame(history, now, width) {
  const end = history.at.at(-1) ?? now;
  const length = end - (history.at[0] ?? end);
  const span = SPANS_S.find((candidate) => candidate >= length) ?? SPANS_S.at(-1);
  return timeScale(end - span, end, width < 480 ? 46 : 54, width - 44);
}

function drawReadout() {
  crosshair.hidden = readout.hidden = pointedAt === null || drawn === null;
  if (readout.hidden) return;
  const { history, boundaries, x } = drawn;
  const at = Math.min(Math.max(pointedAt, x.begin), x.end);
  const nearPixels = ((x.end - x.begin) / (x.right - x.left)) * NEAR_PIXELS;
  const sample = nearest(history.at, at);
  const near = sample !== -1 && Math.abs(history.at[sample] - at) <= Math.max(NEAR_S, nearPixels);
  const boundary = boundaries.find((candidate) => Math.abs(candidate.at - at) <= nearPixels);
  const line = (name, value, style) => html("div", null, html("dt", { class: style }, name), html("dd", null, value));
  show(
    readout,
    html("p", { class: "when" }, clock(near ? history.at[sample] : at)),
    near
      ? html(
          "dl",
          null,
          line("max", latency(history.max_ms[sample])),
          SERIES.map(({ key, name, class: style }) => line(name, latency(history[key][sample]), style)),
          line("rows in", count(history.rows_in[sample])),
          line("rows out", count(history.rows_out[sample])),
          line("lag", count(history.lag_rows[sample])),
        )
      : html("p", null, "Nothing was recorded."),
    boundary && html("p", { class: "boundary-note" }, boundaryText(boundary)),
  );
  const pixel = x(near ? history.at[sample] : at);
  crosshair.style.left = `${pixel}px`;
  const left = pixel + 14 + readout.offsetWidth <= x.right ? pixel + 14 : pixel - 14 - readout.offsetWidth;
  readout.style.left = `${Math.max(0, left)}px`;
}

function nearest(times, at) {
  let best = -1;
  times.forEach((time, position) => {
    if (best === -1 || Math.abs(time - at) < Math.abs(times[best] - at)) best = position;
  });
  return best;
}

function point(at) {
  pointedAt = at;
  drawReadout();
}

container.addEventListener("pointermove", (event) => {
  if (drawn) point(drawn.x.invert(event.clientX - container.getBoundingClientRect().left));
});
container.addEventListener("pointerleave", () => point(null));
container.addEventListener("blur", () => point(null));
container.addEventListener("keydown", (event) => {
  if (!drawn || drawn.history.at.length === 0) return;
  const times = drawn.history.at;
  const last = times.length - 1;
  const here = pointedAt === null ? last : nearest(times, pointedAt);
  const target = {
    ArrowLeft: here - 1,
    ArrowRight: here + 1,
    PageUp: here - 60,
    PageDown: here + 60,
    Home: 0,
    End: last,
  }[event.key];
  if (event.key === "Escape") point(null);
  if (target === undefined) return;
  event.preventDefault();
  point(times[Math.min(Math.max(pointedAt === null ? last : target, 0), last)]);
});
