// The figures that one looks at first: the query's name and status, its latency, its traffic, its epoch.

import { partsText } from "./axes.js";
import { html } from "./dom.js";
import { clock, count, latency, latencyParts, NONE, rate, roughly, stretch } from "./format.js";
import { sparkline } from "./sparkline.js";
import { STATUS_WORDS, WORDS } from "./words.js";

export const WINDOWS = [
  { key: "10s", name: "10 s" },
  { key: "1m", name: "1 min" },
  { key: "run", name: "run" },
];

const FIGURES = [
  { key: "p50_ms", name: "p50", class: "p50" },
  { key: "p99_ms", name: "p99", class: "p99" },
  { key: "p999_ms", name: "p99.9", class: "p999" },
  { key: "max_ms", name: "max", class: "max" },
];

/** A query that runs and keeps up is called ready, as /health calls it. */
export const statusWord = (query) => (query.status === "running" ? "ready" : query.status);

export const queryName = (query) => query.name ?? `query ${query.id.slice(0, 8)}`;

export function pill(query) {
  const status = statusWord(query);
  return html("span", { class: `pill ${status}`, title: STATUS_WORDS[status] }, status);
}

export function title(query, now) {
  const since = `since ${clock(query.started_at)}, ${roughly((query.ended_at ?? now) - query.started_at)}`;
  const times = query.ended_at === null ? since : `${since}; ended at ${clock(query.ended_at)}`;
  return [
    html(
      "div",
      { class: "title" },
      html("h2", null, queryName(query)),
      pill(query),
      html("p", { class: "aside" }, times),
    ),
    query.status === "failed" &&
      html(
        "div",
        { class: "failure", role: "alert" },
        html("h3", null, "The query failed"),
        html("pre", { tabindex: "0" }, query.error ?? "The cause is not known."),
      ),
  ];
}

export function headline(query, history, chosen, now) {
  return [
    html(
      "div",
      { class: "card group" },
      html("h3", { title: WORDS["end to end"] }, "End to end"),
      html(
        "dl",
        { class: "figures four" },
        FIGURES.map((figure) => latencyFigure(query, figure, chosen)),
      ),
    ),
    html(
      "div",
      { class: "card group" },
      html("h3", null, "Traffic"),
      html("dl", { class: "figures three" }, rows(query, history, chosen), lag(query, history), epoch(query, now)),
    ),
  ];
}

function latencyFigure(query, { key, name, class: style }, chosen) {
  const [value, unit] = latencyParts(query.windows[chosen].end_to_end?.[key]);
  const others = WINDOWS.filter((window) => window.key !== chosen);
  return html(
    "div",
    { class: `figure ${style}` },
    html("dt", { title: WORDS[name] }, name),
    html("dd", { class: "big" }, value, unit && html("small", null, unit)),
    others.map((window) =>
      html(
        "dd",
        { class: "other" },
        html("span", null, window.name),
        " ",
        html("span", { class: "value" }, latency(query.windows[window.key].end_to_end?.[key])),
      ),
    ),
  );
}

function rows(query, history, chosen) {
  const { rows_in_per_s: read, rows_out_per_s: written } = query.windows[chosen];
  return html(
    "div",
    { class: "figure" },
    html("dt", { title: WORDS["rows in"] }, "rows in"),
    html("dd", { class: "big" }, rate(read), html("small", null, "rows/s")),
    html(
      "dd",
      { class: "other", title: WORDS["rows out"] },
      html("span", null, "out"),
      " ",
      html("span", { class: "value" }, `${rate(written)}\u00a0rows/s`),
    ),
    html("dd", { class: "trend" }, sparkline(history.rows_in, "Rows read each second, over the last ten minutes")),
  );
}

function lag(query, history) {
  const known = query.lag_rows !== null;
  return html(
    "div",
    { class: `figure ${query.status === "lagging" ? "behind" : ""}` },
    html("dt", { title: WORDS.lag }, "lag"),
    html("dd", { class: "big" }, known ? count(query.lag_rows) : NONE, known && html("small", null, "rows")),
    html("dd", { class: "other" }, html("span", null, known ? "behind the newest" : "not known yet")),
    html("dd", { class: "trend" }, sparkline(history.lag_rows, "Lag each second, over the last ten minutes")),
  );
}

function epoch(query, now) {
  if (!query.epoch) return null;
  const { number, began_at: began, duration_s: length } = query.epoch;
  const passed = Math.max(0, (query.ended_at ?? now) - began);
  const { pause } = query;
  return html(
    "div",
    { class: "figure" },
    html("dt", { title: WORDS.epoch }, "epoch"),
    html("dd", { class: "big" }, count(number)),
    html(
      "dd",
      { class: "other" },
      html(
        "span",
        { class: "value" },
        length === null ? stretch(passed) : `${stretch(Math.min(passed, length))} of ${stretch(length)}`,
      ),
    ),
    length !== null &&
      html(
        "dd",
        { class: "trend" },
        html("progress", {
          max: length,
          value: Math.min(passed, length).toFixed(1),
          "aria-label": "Progress of the epoch",
        }),
      ),
    pause &&
      html(
        "dd",
        { class: "other", title: `${WORDS.boundary} Median of ${pause.boundaries}${partsText(pause.parts_ms)}.` },
        html("span", null, `pause ${latency(pause.median_ms)}`),
        html("span", null, `last ${latency(pause.last_ms)}`),
      ),
  );
}
