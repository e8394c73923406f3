// Builds the page's elements. Whatever comes from the data becomes text or an attribute's value, never HTML.

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element: html("p", { class: "aside" }, "some text", anotherElement). */
export const html = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);

/** A table of the given class: one cell for each column's head, and the rows. */
export const table = (style, heads, ...rows) =>
  html("table", { class: style }, html("thead", null, html("tr", null, heads)), html("tbody", null, rows));

/** The head of a column, with what it means. */
export const columnHead = (name, meaning) => html("th", { scope: "col", title: meaning }, name);

/** An SVG element. */
export const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value !== null && value !== undefined && value !== false)
      element.setAttribute(name, value === true ? "" : value);
  }
  element.append(
    ...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false),
  );
  return element;
}

/**
 * Makes the container's children equal to the given ones and touches only what differs, so that a figure that
 * changes each second does not take the focus, the selection or the tooltip from the reader.
 */
export function show(container, ...children) {
  const wanted = children.flat(Infinity).filter(Boolean);
  wanted.forEach((next, position) => {
    const present = container.childNodes[position];
    if (present) become(present, next);
    else container.append(next);
  });
  while (container.childNodes.length > wanted.length) container.lastChild.remove();
}

function become(present, next) {
  if (present.nodeName !== next.nodeName) {
    present.replaceWith(next);
  } else if (next.nodeType === Node.TEXT_NODE) {
    if (present.data !== next.data) present.data = next.data;
  } else {
    for (const { name } of [...present.attributes]) {
      // Positions are set from outside, after the layout is known.
      if (!next.hasAttribute(name) && name !== "style") present.removeAttribute(name);
    }
    for (const { name, value } of next.attributes) {
      if (present.getAttribute(name) !== value) present.setAttribute(name, value);
    }
    show(present, ...next.childNodes);
  }
}

export const byId = (id) => document.getElementById(id);
