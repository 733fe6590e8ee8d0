/**
 * Telling a connection that was never made from one that was lost.
 *
 * @since 0.1.0
 */

const codes = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "EHOSTDOWN",
  "EADDRNOTAVAIL",
  "UND_ERR_CONNECT_TIMEOUT",
  "CERT_HAS_EXPIRED",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
  "ERR_TLS_CERT_ALTNAME_INVALID",
  "ERR_HOST_NOT_ALLOWED"
])

/**
 * Whether this error, or one that caused it, says that nothing was sent.
 *
 * @since 0.1.0
 * @category predicates
 */
export const isNeverSent = (cause: unknown): boolean => {
  if (typeof cause !== "object" || cause === null) return false
  if ("code" in cause && typeof cause.code === "string") return codes.has(cause.code)
  return "cause" in cause && isNeverSent(cause.cause)
}
