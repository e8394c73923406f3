// What stands out, why we think so, and what to do about it.

import { html } from "./dom.js";

export function findings(query) {
  if (query.findings.length === 0) {
    return html("p", { class: "quiet" }, "Nothing stands out.");
  }
  return html(
    "ul",
    { class: "findings" },
    query.findings.map((finding) =>
      html(
        "li",
        { class: finding.severity === "warning" ? "warning" : "note" },
        html("h4", null, html("span", { class: "unseen" }, `${finding.severity}: `), finding.title),
        html("p", { class: "detail" }, finding.detail),
        html("p", { class: "fix" }, finding.fix),
        html("code", null, finding.code),
      ),
    ),
  );
}
