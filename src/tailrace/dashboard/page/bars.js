// Bars of several parts, one after the other.

import { html, svg } from "./dom.js";
import { latency } from "./format.js";
import { WORDS } from "./words.js";

/** `parts`: each with its name, class and value; `whole` is the value that fills the width. */
export function stackedBar(parts, whole, label) {
  let left = 0;
  return svg(
    "svg",
    { class: "bar", role: "img", "aria-label": label },
    parts.map(({ name, class: style, value }) => {
      const share = (Math.max(0, value) / whole) * 100;
      const segment = svg(
        "rect",
        { class: `segment ${style}`, x: `${left.toFixed(2)}%`, width: `${share.toFixed(2)}%`, height: "100%" },
        svg("title", null, `${name}: ${latency(value)}`),
      );
      left += share;
      return segment;
    }),
  );
}

export const swatch = (style) => html("span", { class: `swatch ${style}`, "aria-hidden": "true" });

export const keyTo = (parts) =>
  parts.map((part) => html("span", { title: WORDS[part.name] }, swatch(part.class), part.name));

export const sum = (parts) => parts.reduce((total, { value }) => total + Math.max(0, value), 0);
