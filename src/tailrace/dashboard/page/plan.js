// The plan as a picture: sources, stages, sink, and what it takes to get from one to the next.

import { byId, html, show, svg } from "./dom.js";
import { latency, rate } from "./format.js";
import { WORDS } from "./words.js";

// The least that looks well side by side; with less room, one goes below the other.
const END_WIDTH = 120;
const STAGE_WIDTH = 190;
const ARROW_WIDTH = 92;
const MOST_TASK_BARS = 48;

const container = byId("plan");
let edges = [];

export function drawPlan(query, chosen) {
  if (query.stages.length === 0) {
    edges = [];
    show(container, html("p", { class: "quiet" }, "The plan is not known yet."));
    return;
  }
  const slowest = slowestStage(query.stages, chosen);
  const layers = layersOf(query.stages);
  edges = edgesOf(query, chosen);
  const sideBySide = 2 * END_WIDTH + layers.length * STAGE_WIDTH + (layers.length + 1) * ARROW_WIDTH;
  container.className = sideBySide > container.clientWidth ? "plan stacked" : "plan";
  show(
    container,
    svg("svg", { class: "edges", "aria-hidden": "true" }),
    html(
      "div",
      { class: "layer" },
      sourcesOf(query.stages).map((topic) => end("source", topic, `source:${topic}`)),
    ),
    layers.map((layer) =>
      html(
        "div",
        { class: "layer" },
        layer.map((stage) => box(stage, chosen, stage === slowest)),
      ),
    ),
    html(
      "div",
      { class: "layer" },
      sinksOf(query.stages).map((sink) => end("sink", sink, `sink:${sink}`)),
    ),
    edges.map(
      ({ dist, name, what }) =>
        dist &&
        html(
          "p",
          { class: "edge-label", title: what },
          html("span", null, name),
          html("strong", null, latency(dist.p99_ms)),
        ),
    ),
  );
  connect();
}

const sourcesOf = (stages) => [...new Set(stages.flatMap((stage) => stage.sources))];
const sinksOf = (stages) => [...new Set(stages.map((stage) => stage.sink).filter(Boolean))];

function slowestStage(stages, chosen) {
  const timed = stages.filter((stage) => stage.windows[chosen].time);
  if (timed.length < 2) return null;
  return timed.reduce((one, other) =>
    other.windows[chosen].time.p99_ms > one.windows[chosen].time.p99_ms ? other : one,
  );
}

/** A stage stands right of all that it reads from. */
function layersOf(stages) {
  const byNumber = new Map(stages.map((stage) => [stage.stage, stage]));
  const depths = new Map();
  const depth = (stage, seen = new Set()) => {
    if (!depths.has(stage)) {
      const before = stage.inputs.map((number) => byNumber.get(number)).filter((input) => input && !seen.has(input));
      depths.set(stage, Math.max(-1, ...before.map((input) => depth(input, new Set([...seen, stage])))) + 1);
    }
    return depths.get(stage);
  };
  const layers = [];
  for (const stage of stages) (layers[depth(stage)] ??= []).push(stage);
  return layers.filter(Boolean);
}

/** One figure for all that arrives at a node: it is the receiver's. */
function edgesOf(query, chosen) {
  const figures = query.windows[chosen];
  const edge = (from, to, name, words, dist) => ({ from, to, name, what: `p99. ${words}`, dist });
  return query.stages.flatMap((stage) => {
    const here = `stage:${stage.stage}`;
    const { shuffle } = stage.windows[chosen];
    return [
      ...stage.sources.map((topic, position) =>
        edge(`source:${topic}`, here, "queue", WORDS["source queue"], position ? null : figures.source_queue),
      ),
      ...stage.inputs.map((number, position) =>
        edge(`stage:${number}`, here, "shuffle", WORDS.shuffle, position ? null : shuffle),
      ),
      ...(stage.sink ? [edge(here, `sink:${stage.sink}`, "ack.", WORDS.acknowledgement, figures.acknowledgement)] : []),
    ];
  });
}

const end = (kind, name, node) =>
  html(
    "div",
    { class: `node end ${kind}`, "data-node": node },
    html("p", { class: "kind" }, kind),
    html("p", { class: "name" }, name),
  );

function box(stage, chosen, isSlowest) {
  const { time, python, rows_per_s: rows } = stage.windows[chosen];
  const figure = (name, what, value) =>
    html("div", null, html("dt", { title: WORDS[what] }, name), html("dd", null, value));
  return html(
    "div",
    { class: isSlowest ? "node stage slowest" : "node stage", "data-node": `stage:${stage.stage}` },
    html("h4", null, `Stage ${stage.stage} `, isSlowest && html("span", { class: "tag" }, "slowest")),
    html(
      "ol",
      { class: "operators" },
      stage.operators.map((operator) => html("li", null, operator)),
    ),
    html(
      "dl",
      null,
      figure("p50", "stage time", latency(time?.p50_ms)),
      figure("p99", "stage time", latency(time?.p99_ms)),
      python && figure("Python p99", "python", latency(python.p99_ms)),
      figure("rows/s", "rows in", rate(rows)),
    ),
    taskBars(stage.tasks, chosen),
  );
}

function taskBars(tasks, chosen) {
  const label = tasks.length === 1 ? "1 task" : `${tasks.length} tasks`;
  const values = tasks.map((task) => task.windows[chosen].time?.p99_ms ?? 0);
  // Many tasks share bars; the worst of those that share one is shown.
  const share = Math.ceil(values.length / MOST_TASK_BARS) || 1;
  const bars = [];
  for (let first = 0; first < values.length; first += share) bars.push(Math.max(...values.slice(first, first + share)));
  const high = Math.max(...bars, 0.001);
  const width = 100 / Math.max(bars.length, 8);
  return html(
    "div",
    { class: "tasks", title: WORDS.tasks },
    svg(
      "svg",
      { "aria-hidden": "true" },
      bars.map((value, position) => {
        const height = Math.max(4, (value / high) * 100);
        return svg("rect", {
          x: `${(position * width).toFixed(2)}%`,
          y: `${(100 - height).toFixed(1)}%`,
          width: `${(width * 0.72).toFixed(2)}%`,
          height: `${height.toFixed(1)}%`,
        });
      }),
    ),
    html("span", null, label),
  );
}

/** Lines between the boxes, once the browser has placed them. */
function connect() {
  const origin = container.getBoundingClientRect();
  const place = (name) => {
    const node = [...container.querySelectorAll("[data-node]")].find((candidate) => candidate.dataset.node === name);
    if (!node) return null;
    const { left, right, top, bottom } = node.getBoundingClientRect();
    const [dx, dy] = [container.scrollLeft - origin.left, container.scrollTop - origin.top];
    return { left: left + dx, right: right + dx, top: top + dy, bottom: bottom + dy };
  };
  const stacked = container.classList.contains("stacked");
  const labels = [...container.querySelectorAll(".edge-label")];
  const lines = [];
  for (const edge of edges) {
    const [from, to] = [place(edge.from), place(edge.to)];
    const label = edge.dist ? labels.shift() : null;
    if (!from || !to) continue;
    const line = stacked ? downwards(from, to) : sideways(from, to);
    lines.push(svg("path", { class: "edge", d: line.path }), svg("path", { class: "arrow-head", d: line.head }));
    if (label) {
      label.style.left = `${line.label.x}px`;
      label.style.top = `${line.label.y}px`;
    }
  }
  const canvas = container.querySelector(".edges");
  canvas.setAttribute("width", container.scrollWidth);
  canvas.setAttribute("height", container.scrollHeight);
  show(canvas, lines);
}

function sideways(from, to) {
  const [x1, y1, x2, y2] = [from.right, (from.top + from.bottom) / 2, to.left - 2, (to.top + to.bottom) / 2];
  // A line from above or below has come to the target's height before the label begins.
  const join = x2 - ARROW_WIDTH * 0.66;
  const bend = (x1 + join) / 2;
  return {
    path: `M${x1} ${y1}C${bend} ${y1} ${bend} ${y2} ${join} ${y2}H${x2}`,
    head: `M${x2} ${y2}l-7 -4v8z`,
    label: { x: x2 - ARROW_WIDTH * (Math.abs(y1 - y2) < 4 ? 0.5 : 0.39), y: y2 },
  };
}

function downwards(from, to) {
  const [x1, y1, x2, y2] = [(from.left + from.right) / 2, from.bottom, (to.left + to.right) / 2, to.top - 2];
  const join = y2 - (to.top - from.bottom) / 2;
  const bend = (y1 + join) / 2;
  return {
    path: `M${x1} ${y1}C${x1} ${bend} ${x2} ${bend} ${x2} ${join}V${y2}`,
    head: `M${x2} ${y2}l-4 -7h8z`,
    label: { x: x2, y: join },
  };
}
