// What the query runs on and what it remembers: executors and state.

import { columnHead, html, table } from "./dom.js";
import { bytes, count, latency, percent } from "./format.js";
import { WORDS } from "./words.js";

const head = (name, what) => columnHead(name, WORDS[what]);

export function executors(snapshot) {
  if (snapshot.executors.length === 0) return html("p", { class: "quiet" }, "No executor has reported yet.");
  const heads = [
    head("executor"),
    head("CPU", "cpu"),
    head("GC, longest", "gc"),
    head("hiccups, worst", "hiccups"),
    head("heap", "heap"),
  ];
  return table("resources", heads, snapshot.executors.map(executor));
}

function executor({ id, cpu_load: cpu, process_cpu_load: own, ...figures }) {
  const load = html("meter", {
    min: 0,
    max: 1,
    high: 0.85,
    low: 0.7,
    optimum: 0,
    value: cpu ?? 0,
    "aria-label": `CPU load of ${id}`,
  });
  return html(
    "tr",
    null,
    html("th", { scope: "row" }, id),
    html(
      "td",
      { title: `${WORDS.cpu} This executor: ${percent(own)}.` },
      cpu !== null && load,
      html("span", { class: "value" }, percent(cpu)),
    ),
    html(
      "td",
      { title: `${count(figures.gc_pauses)} pauses, ${latency(figures.gc_total_ms)} together. ${WORDS.gc}` },
      html("span", { class: "lesser" }, `${count(figures.gc_pauses)} × `),
      latency(figures.gc_max_ms),
    ),
    html("td", { title: `p99 ${latency(figures.hiccup_p99_ms)}. ${WORDS.hiccups}` }, latency(figures.hiccup_max_ms)),
    html(
      "td",
      { title: WORDS.heap },
      bytes(figures.heap_used_bytes),
      html("span", { class: "lesser" }, ` / ${bytes(figures.heap_max_bytes)}`),
    ),
  );
}

export function state(query) {
  if (query.state.length === 0)
    return html("p", { class: "quiet" }, "This query keeps no state, or no epoch has ended yet.");
  const heads = [
    head("operator"),
    head("rows", "state rows"),
    head("memory", "state memory"),
    head("commit", "commit"),
  ];
  return table("resources", heads, query.state.map(operator));
}

function operator({ operator: name, rows, memory_bytes: memory, commit_ms: commit }) {
  return html(
    "tr",
    null,
    html("th", { scope: "row" }, name),
    html("td", null, count(rows)),
    html("td", null, bytes(memory)),
    html("td", null, latency(commit)),
  );
}
