// The page: asks for figures, remembers which query and time span are looked at, and draws.

import { breakdown } from "./breakdown.js";
import { byId, html, show } from "./dom.js";
import { findings } from "./findings.js";
import { clock, latency } from "./format.js";
import { headline, queryName, statusWord, title } from "./headline.js";
import { partitions, partitionsKey } from "./partitions.js";
import { drawPlan } from "./plan.js";
import { MonitorFailure, poll } from "./poll.js";
import { executors, state } from "./resources.js";
import { drawTimeline } from "./timeline.js";
import { WORDS } from "./words.js";

const ACTIVE = ["starting", "running", "lagging"];
const NO_HISTORY = {
  at: [],
  p50_ms: [],
  p99_ms: [],
  p999_ms: [],
  max_ms: [],
  rows_in: [],
  rows_out: [],
  lag_rows: [],
  heatmap: { bounds_ms: [], counts: [] },
};

let snapshot = null;
let histories = { run: null, curves: NO_HISTORY };

/** A query's place in the address: its name, which outlives a restart; an earlier run of it has only its run id. */
function addresses(queries) {
  const activeFirst = (one, other) => ACTIVE.includes(other.status) - ACTIVE.includes(one.status);
  const current = new Map();
  for (const query of [...queries].sort((one, other) => activeFirst(one, other) || other.started_at - one.started_at)) {
    const name = query.name ?? query.id;
    if (!current.has(name)) current.set(name, query);
  }
  const names = new Map([...current].map(([name, query]) => [query, name]));
  return new Map(queries.map((query) => [query, names.get(query) ?? query.run_id]));
}

const wanted = () => {
  try {
    return decodeURIComponent(location.hash.slice(1));
  } catch {
    return ""; // an address that we did not make
  }
};

function chosenQuery({ queries }) {
  const byAddress = new Map([...addresses(queries)].map(([query, address]) => [address, query]));
  return byAddress.get(wanted()) ?? queries.find((query) => ACTIVE.includes(query.status)) ?? queries[0] ?? null;
}

const chosenWindow = () => document.querySelector("input[name=window]:checked").value;

function draw() {
  if (snapshot === null) return;
  const query = chosenQuery(snapshot);
  const { application } = snapshot;
  show(
    byId("application"),
    html("strong", null, application.name),
    html(
      "span",
      null,
      ` ${application.master} · Spark ${application.spark_version} · Tailrace ${application.tailrace_version}`,
    ),
  );
  byId("nothing").hidden = query !== null;
  byId("query").hidden = byId("window").hidden = query === null;
  drawTabs(query);
  document.title = query === null ? "Tailrace" : `${queryName(query)}: ${tabFigure(query)} · Tailrace`;
  if (query !== null) drawQuery(query);
}

const tabFigure = (query) =>
  statusWord(query) === "ready" ? `p99 ${latency(query.windows["10s"].end_to_end?.p99_ms)}` : statusWord(query);

function drawTabs(current) {
  byId("queries").hidden = snapshot.queries.length < 2;
  show(
    byId("queries"),
    [...addresses(snapshot.queries)].map(([query, address]) =>
      html(
        "a",
        { href: `#${encodeURIComponent(address)}`, "aria-current": query === current ? "page" : null },
        html("span", { class: `dot ${statusWord(query)}`, "aria-hidden": "true" }),
        html("span", { class: "name" }, queryName(query)),
        " ",
        statusWord(query) !== "ready" && html("span", { class: "word" }, statusWord(query)),
      ),
    ),
  );
}

function drawQuery(query) {
  const chosen = chosenWindow();
  const curves = histories.run === query.run_id ? histories.curves : NO_HISTORY;
  show(byId("title"), title(query, snapshot.at));
  show(byId("headline"), headline(query, curves, chosen, snapshot.at));
  drawTimeline(curves, query.boundaries, snapshot.at);
  show(byId("findings"), findings(query));
  show(byId("breakdown"), breakdown(query, chosen));
  drawPlan(query, chosen);
  show(byId("partitions-key"), partitionsKey());
  show(byId("partitions"), partitions(query, chosen));
  show(byId("executors"), executors(snapshot));
  show(byId("state"), state(query));
}

function arrived(figures, run, curves) {
  snapshot = figures;
  histories = { run, curves: curves ?? NO_HISTORY };
  byId("connection").hidden = true;
  document.body.classList.remove("stale");
  show(
    byId("live"),
    html("span", { class: "dot ready", "aria-hidden": "true" }),
    html("span", null, `live ${clock(figures.at)}`),
  );
  draw();
}

function lost(reason) {
  const what = reason instanceof MonitorFailure ? `The driver has no figures (${reason.message})` : "Connection lost";
  const since = snapshot ? `last figures from ${clock(snapshot.at)}` : "no figures so far";
  show(byId("connection"), html("span", null, `${what}, ${since}. Trying again every second.`));
  show(byId("live"), html("span", { class: "dot failed", "aria-hidden": "true" }), html("span", null, "not live"));
  byId("connection").hidden = false;
  document.body.classList.toggle("stale", snapshot !== null);
}

show(
  byId("glossary"),
  Object.entries(WORDS).map(([name, meaning]) => html("div", null, html("dt", null, name), html("dd", null, meaning))),
);
const askNow = poll({ choose: (figures) => chosenQuery(figures)?.run_id ?? null, arrived, lost });

addEventListener("hashchange", () => {
  draw();
  askNow();
});
byId("window").addEventListener("change", draw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);

new ResizeObserver(draw).observe(byId("timeline"));
