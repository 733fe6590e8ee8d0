/**
 * The way out: where calls of models and tools may go. What the configuration names was checked when it was read; this
 * holds for every request, whatever address it came to have on its way.
 *
 * @since 0.1.0
 */
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientError from "@effect/platform/HttpClientError"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Tracing from "../domain/Tracing.js"

/**
 * Whether an address is at one of these hosts, named with or without a port. `null` stands for all.
 *
 * @since 0.1.0
 * @category predicates
 */
export const isAllowed = (hosts: ReadonlyArray<string> | null, address: string): boolean => {
  if (hosts === null) return true
  if (!URL.canParse(address)) return false
  const { host, hostname } = new URL(address)
  return hosts.includes(hostname) || hosts.includes(host)
}

/** Tells the hosts that are trusted with it in which trace they are called. */
const tracing = (hosts: ReadonlyArray<string>, request: HttpClientRequest.HttpClientRequest) =>
  hosts.length > 0 && isAllowed(hosts, request.url)
    ? Effect.map(Effect.option(Effect.currentParentSpan), (span) => {
        const traceparent = Tracing.traceparent(Option.getOrUndefined(span))
        return traceparent === undefined ? request : HttpClientRequest.setHeader(request, "traceparent", traceparent)
      })
    : Effect.succeed(request)

/**
 * A client that calls these hosts only, follows no redirect by itself, and lets a silent connection be silent. `traced` are
 * hosts that get the `traceparent` of the call, where it is recorded; by default nobody does.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (
  hosts: ReadonlyArray<string> | null,
  traced: ReadonlyArray<string> = []
): Layer.Layer<HttpClient.HttpClient> =>
  Layer.effect(
    HttpClient.HttpClient,
    Effect.map(HttpClient.HttpClient, (client) =>
      HttpClient.mapRequestEffect(client, (request) =>
        isAllowed(hosts, request.url)
          ? tracing(traced, request)
          : Effect.fail(
              new HttpClientError.RequestError({
                request,
                reason: "InvalidUrl",
                cause: Object.assign(new Error("The host is not in outgoing.allowHosts"), {
                  code: "ERR_HOST_NOT_ALLOWED"
                })
              })
            )
      )
    )
  ).pipe(Layer.provide(NodeHttpClient.layerUndici))
