/**
 * Where traces are kept, if the server has told the page.
 *
 * @since 0.1.0
 */
import { isTemplate } from "../../domain/TraceLink.js"

const told = document.querySelector<HTMLMetaElement>('meta[name="trace-url"]')?.content

/**
 * An address with `{traceId}` in it; `undefined` where nobody has said any.
 *
 * @since 0.1.0
 * @category constants
 */
export const traceUrl = told !== undefined && isTemplate(told) ? told : undefined
