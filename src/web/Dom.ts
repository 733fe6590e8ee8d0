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

/**
 * A text field of a JSON object.
 *
 * @since 0.1.0
 * @category text
 */
export const field = (json: unknown, name: string): string | undefined => {
  if (typeof json !== "object" || json === null) return undefined
  const value: unknown = Object.entries(json).find(([key]) => key === name)?.[1]
  return typeof value === "string" ? value : undefined
}

/**
 * A button that does something.
 *
 * @since 0.1.0
 * @category elements
 */
export const button = (label: string, className: string, click: () => void): HTMLButtonElement => {
  const element = document.createElement("button")
  element.type = "button"
  element.className = className
  element.textContent = label
  element.addEventListener("click", click)
  return element
}

/**
 * The child of this key, made when it is not there yet.
 *
 * @since 0.1.0
 * @category keys
 */
export const keyed = (parent: Element, key: string, create: () => HTMLElement): HTMLElement => {
  for (const child of parent.children) {
    if (child instanceof HTMLElement && child.dataset.key === key) return child
  }
  const element = create()
  element.dataset.key = key
  parent.append(element)
  return element
}

/**
 * Removes the children that are not among the keys, and puts the rest in their order.
 *
 * @since 0.1.0
 * @category keys
 */
export const arrange = (parent: Element, keys: ReadonlyArray<string>) => {
  const wanted = new Set(keys)
  for (const child of [...parent.children]) {
    if (child instanceof HTMLElement && !wanted.has(child.dataset.key ?? "")) child.remove()
  }
  keys.forEach((key, index) => {
    const present = parent.children[index]
    if (present instanceof HTMLElement && present.dataset.key !== key) {
      const element = [...parent.children].find((_) => _ instanceof HTMLElement && _.dataset.key === key)
      if (element !== undefined) parent.insertBefore(element, present)
    }
  })
}
