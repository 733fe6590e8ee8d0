/**
 * Which addresses a text that somebody else wrote may lead to.
 *
 * @since 0.1.0
 */

const allowed = new Set(["http:", "https:", "mailto:"])

/**
 * The address in its normal form, if a person may be led there: a whole one of the web, or of a mailbox. Everything
 * else, such as scripts, data, files and places of this very server, has none.
 *
 * @since 0.1.0
 * @category parsing
 */
export const safeUrl = (address: string): string | undefined => {
  if (!URL.canParse(address)) return undefined
  const { href, protocol } = new URL(address)
  return allowed.has(protocol) ? href : undefined
}
