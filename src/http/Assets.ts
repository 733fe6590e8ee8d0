/**
 * The pages: the web application at `/`, the reference at `/docs`, and what belongs to them. Everything comes from
 * this server and nothing runs that does not, which the pages' policy makes browsers enforce.
 *
 * @since 0.1.0
 */
import { fileURLToPath } from "node:url"
import * as FileSystem from "@effect/platform/FileSystem"
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import type * as HttpRouter from "@effect/platform/HttpRouter"
import { HttpServerRequest } from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as OpenApi from "@effect/platform/OpenApi"
import * as Effect from "effect/Effect"
import * as Hash from "effect/Hash"
import type * as Layer from "effect/Layer"
import { RunsApi } from "./RunsApi.js"

const types: { readonly [extension: string]: string } = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml"
}

const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'"
].join("; ")

/** Where the built pages lie: beside the one-file server, beside the library, or, from the sources, in the build. */
const places = ["./web/", "../web/", "../../dist/web/"]

/** The addresses of each page. That of a replay tells nothing of the run, not even whether there is one. */
const addresses: { readonly [file: string]: ReadonlyArray<HttpRouter.PathInput> } = {
  "index.html": ["/"],
  "docs.html": ["/docs"],
  "replay.html": ["/runs/:runId/replay", "/replay"]
}

const extensionOf = (path: string) => path.slice(path.lastIndexOf(".") + 1)

/** A file of a page. What is named after its content never changes under its name; pages are asked for anew. */
const file = (path: string, text: string, cacheControl: string) => {
  const etag = `"${(Hash.string(text) >>> 0).toString(36)}-${text.length.toString(36)}"`
  const headers = {
    etag,
    "cache-control": cacheControl,
    "content-security-policy": policy,
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff"
  }
  const whole = HttpServerResponse.text(text, { contentType: types[extensionOf(path)] ?? "text/plain", headers })
  const unchanged = HttpServerResponse.empty({ status: 304, headers })
  return Effect.map(HttpServerRequest, (request) => (request.headers["if-none-match"] === etag ? unchanged : whole))
}

type Route = readonly [path: HttpRouter.PathInput, response: ReturnType<typeof file>]

const entities: { readonly [character: string]: string } = { "&": "&amp;", '"': "&quot;", "<": "&lt;" }

/** Tells a page something, without a script in it. */
const telling = (html: string, name: string, content: string): string =>
  html.replace(
    "</head>",
    () => `<meta name="${name}" content="${content.replace(/[&"<]/g, (one) => entities[one] ?? one)}"></head>`
  )

/** The routes of the built pages. They are read once, so that no address can name any other file. */
const pages = Effect.fnUntraced(function* (traceUrl: string | undefined) {
  const fs = yield* FileSystem.FileSystem
  const directories = places.map((place) => fileURLToPath(new URL(place, import.meta.url)))
  const directory = yield* Effect.findFirst(directories, (path) =>
    Effect.orElseSucceed(fs.exists(`${path}assets`), () => false)
  )
  if (directory._tag === "None") return []
  const read = (name: string, path: HttpRouter.PathInput, cacheControl: string) =>
    Effect.map(fs.readFileString(directory.value + name), (text): Route => {
      const told = traceUrl !== undefined && name === "replay.html" ? telling(text, "trace-url", traceUrl) : text
      return [path, file(name, told, cacheControl)]
    })
  const [documents, assets] = yield* Effect.all([
    fs.readDirectory(directory.value),
    fs.readDirectory(`${directory.value}assets`)
  ])
  return yield* Effect.all([
    ...documents.flatMap((name) => (addresses[name] ?? []).map((path) => read(name, path, "no-cache"))),
    ...assets
      .filter((name) => extensionOf(name) in types)
      .map((name) => read(`assets/${name}`, `/assets/${name}`, "public, max-age=31536000, immutable"))
  ])
})

const openApi = OpenApi.fromApi(RunsApi)

/**
 * Adds the pages and the OpenAPI document to the server's routes. Without a build of the pages there are none.
 * `traceUrl`: where a person looks at traces, with `{traceId}` in it, for the replay page.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = ({
  traceUrl
}: {
  readonly traceUrl?: string | undefined
}): Layer.Layer<never, never, FileSystem.FileSystem> =>
  HttpApiBuilder.Router.use((router) =>
    Effect.gen(function* () {
      yield* router.get(
        "/openapi.json",
        Effect.succeed(HttpServerResponse.unsafeJson(openApi, { headers: { "cache-control": "no-cache" } }))
      )
      for (const [path, response] of yield* Effect.orDie(pages(traceUrl))) yield* router.get(path, response)
    })
  )
