/**
 * Small helpers around the DOM. Text goes in as text only, so nothing that a model says can become markup.
 *
 * @since 0.1.0
 */

/**
 * The element of this id, which the page is known to have.
 *
 * @since 0.1.0
 * @category elements
 */
export const byId = <Type extends HTMLElement = HTMLElement>(id: string, type: new () => Type): Type => {
  const element = document.getElementById(id)
  if (element instanceof type) return element
  throw new Error(`the page has no #${id}`)
}

/**
 * A new element with a class, a text and children.
 *
 * @since 0.1.0
 * @category elements
 */
export const make = (tag: string, className: string, text: string, ...children: ReadonlyArray<Node>): HTMLElement => {
  const element = document.createElement(tag)
  if (className !== "") element.className = className
  element.textContent = text
  element.append(...children)
  return element
}

/**
 * Sets the text unless it is the same, so that a selection in it survives.
 *
 * @since 0.1.0
 * @category elements
 */
export const setText = (element: Element, text: string) => {
  if (element.textContent !== text) element.textContent = text
}

/**
 * Any value as text for people.
 *
 * @since 0.1.0
 * @category text
 */
export const show = (value: unknown): string =>
  typeof value === "string" ? value : (JSON.stringify(value, undefined, 2) ?? "")
