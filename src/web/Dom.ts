/** Small helpers around the DOM. Text goes in as text only, so nothing that a model says can become markup. */

/** The element of this id, which the page is known to have. */
export const byId = <Type extends HTMLElement = HTMLElement>(id: string, type: new () => Type): Type => {
  const element = document.getElementById(id)
  if (element instanceof type) return element
  throw new Error(`the page has no #${id}`)
}

/** A new element with a class, a text and children. */
export const make = (tag: string, className: string, text: string, ...children: ReadonlyArray<Node>): HTMLElement => {
  const element = document.createElement(tag)
  if (className !== "") element.className = className
  element.textContent = text
  element.append(...children)
  return element
}

/** Sets the text unless it is the same, so that a selection in it survives. */
export const setText = (element: Element, text: string) => {
  if (element.textContent !== text) element.textContent = text
}

/** Any value as text for people. */
export const show = (value: unknown): string =>
  typeof value === "string" ? value : (JSON.stringify(value, undefined, 2) ?? "")
