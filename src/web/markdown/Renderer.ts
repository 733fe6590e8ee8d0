/**
 * Turns the tokens of a Markdown text into elements, while the text arrives. Text becomes text nodes and nothing else;
 * the elements are those of the table; addresses go through an allow-list. So no text can become markup.
 *
 * @since 0.1.0
 */
import * as Smd from "streaming-markdown"
import { safeUrl } from "./Url.js"

const tags: { readonly [token: number]: keyof HTMLElementTagNameMap } = {
  [Smd.PARAGRAPH]: "p",
  [Smd.HEADING_1]: "h3",
  [Smd.HEADING_2]: "h3",
  [Smd.HEADING_3]: "h4",
  [Smd.HEADING_4]: "h5",
  [Smd.HEADING_5]: "h6",
  [Smd.HEADING_6]: "h6",
  [Smd.BLOCKQUOTE]: "blockquote",
  [Smd.LINE_BREAK]: "br",
  [Smd.RULE]: "hr",
  [Smd.ITALIC_AST]: "em",
  [Smd.ITALIC_UND]: "em",
  [Smd.STRONG_AST]: "strong",
  [Smd.STRONG_UND]: "strong",
  [Smd.STRIKE]: "s",
  [Smd.CODE_INLINE]: "code",
  [Smd.RAW_URL]: "a",
  [Smd.LINK]: "a",
  // A picture from elsewhere would tell a stranger who reads what: it is offered as a link.
  [Smd.IMAGE]: "a",
  [Smd.LIST_UNORDERED]: "ul",
  [Smd.LIST_ORDERED]: "ol",
  [Smd.LIST_ITEM]: "li",
  [Smd.TABLE_ROW]: "tr",
  [Smd.EQUATION_BLOCK]: "code",
  [Smd.EQUATION_INLINE]: "code"
}

/** What finds its own direction, by the first letter in it. */
const directed = new Set(["P", "H3", "H4", "H5", "H6", "BLOCKQUOTE", "UL", "OL", "TABLE"])
/** A whole whose direction is that of the texts in it; it would not look at texts that had one of their own. */
const whole = "ul, ol, blockquote, table"

const make = (tag: keyof HTMLElementTagNameMap, parent: Element): HTMLElement => {
  const element = document.createElement(tag)
  const own = directed.has(element.tagName) && (element.tagName !== "P" || parent.closest(whole) === null)
  if (own) element.dir = "auto"
  return element
}

/** Where a token's content goes, and what is put into the parent for it. */
const place = (parent: HTMLElement, token: Smd.Token): HTMLElement => {
  switch (token) {
    case Smd.CODE_BLOCK:
    case Smd.CODE_FENCE: {
      const block = parent.appendChild(make("pre", parent))
      block.dir = "ltr"
      block.tabIndex = 0
      return block.appendChild(make("code", block))
    }
    case Smd.CHECKBOX: {
      const box = document.createElement("input")
      box.type = "checkbox"
      box.disabled = true
      return parent.appendChild(box)
    }
    case Smd.TABLE: {
      const scroll = parent.appendChild(make("div", parent))
      scroll.className = "scroll"
      scroll.tabIndex = 0
      return scroll.appendChild(make("table", scroll))
    }
    case Smd.TABLE_ROW: {
      const body = parent.children.length === 0 ? "thead" : "tbody"
      const part = parent.children[1] ?? parent.appendChild(make(body, parent))
      return part.appendChild(make("tr", part))
    }
    case Smd.TABLE_CELL:
      return parent.appendChild(make(parent.parentElement?.tagName === "THEAD" ? "th" : "td", parent))
    default:
      return parent.appendChild(make(tags[token] ?? "span", parent))
  }
}

const point = (element: HTMLElement, address: string) => {
  const url = safeUrl(address)
  if (!(element instanceof HTMLAnchorElement) || url === undefined) return
  element.href = url
  element.title = url
  element.target = "_blank"
  element.rel = "noopener noreferrer nofollow"
}

const attribute = (element: HTMLElement, kind: Smd.Attr, value: string) => {
  switch (kind) {
    case Smd.HREF:
    case Smd.SRC:
      return point(element, value)
    case Smd.CHECKED:
      return element.setAttribute("checked", "")
    case Smd.START:
      return element.setAttribute("start", String(Number.parseInt(value, 10) || 1))
    case Smd.LANG:
      if (element.parentElement) element.parentElement.dataset.language = value.slice(0, 40)
  }
}

/**
 * What parses a text piece by piece and draws it. `end` draws what was held back because it could still have become
 * markup.
 *
 * @since 0.1.0
 * @category models
 */
export interface Writer {
  readonly write: (text: string) => void
  readonly end: () => void
}

/** What no markup begins with in the middle of a line, and so may be seen before it is sure what follows. */
const plain = /^[\p{L}\p{M}\p{N}.,;:?…、。，；：？！]+$/u

/**
 * A writer into an element, which it empties first.
 *
 * @since 0.1.0
 * @category constructors
 */
export const makeWriter = (root: HTMLElement): Writer => {
  root.replaceChildren()
  const open: Array<HTMLElement> = [root]
  const inside = () => open.at(-1) ?? root
  const early = new Text()
  const parser = Smd.parser({
    data: undefined,
    add_token: (_, token) => {
      if (token !== Smd.DOCUMENT) open.push(place(inside(), token))
    },
    end_token: () => {
      if (open.length > 1) open.pop()
    },
    add_text: (_, text) => {
      const last = inside().lastChild
      // One node that grows, so that a selection in it survives.
      if (last instanceof Text) last.appendData(text)
      else inside().append(text)
    },
    set_attr: (_, kind, value) => attribute(inside(), kind, value)
  })
  return {
    write: (text) => {
      early.remove()
      Smd.parser_write(parser, text)
      // The parser always holds back the last character.
      if (inside() === root || !plain.test(parser.pending)) return
      early.data = parser.pending
      inside().append(early)
    },
    end: () => {
      early.remove()
      Smd.parser_end(parser)
    }
  }
}
