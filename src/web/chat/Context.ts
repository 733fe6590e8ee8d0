/**
 * How the parts of the page reach what they show.
 *
 * @since 0.1.0
 */
import { createContext } from "preact"
import { useContext } from "preact/hooks"
import type { Page } from "./Page.js"

/**
 * The page that a component is part of.
 *
 * @since 0.1.0
 * @category context
 */
export const PageContext = createContext<Page | undefined>(undefined)

/**
 * The page around the component. It is a mistake of the program when there is none.
 *
 * @since 0.1.0
 * @category context
 */
export const usePage = (): Page => {
  const page = useContext(PageContext)
  if (page === undefined) throw new Error("there is no page around this component")
  return page
}
