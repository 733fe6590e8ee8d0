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

const file = (path: string, text: string) => {
  const extension = path.slice(path.lastIndexOf(".") + 1)
  const etag = `"${(Hash.string(text) >>> 0).toString(36)}-${text.length.toString(36)}"`
  const headers = {
    etag,
    "cache-control": "no-cache",
    "content-security-policy": policy,
    "referrer-policy": "no-referrer"
  }
  const whole = HttpServerResponse.text(text, { contentType: types[extension] ?? "text/plain", headers })
  const unchanged = HttpServerResponse.empty({ status: 304, headers })
  return Effect.map(HttpServerRequest, (request) => (request.headers["if-none-match"] === etag ? unchanged : whole))
}

/** The routes of the built pages. They are read once, so that no address can name any other file. */
const pages = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const directories = places.map((place) => fileURLToPath(new URL(place, import.meta.url)))
  const directory = yield* Effect.findFirst(directories, (path) =>
    Effect.orElseSucceed(fs.exists(`${path}app.js`), () => false)
  )
  if (directory._tag === "None") return []
  const names = yield* fs.readDirectory(directory.value)
  return yield* Effect.forEach(
    names.filter((name) => name.slice(name.lastIndexOf(".") + 1) in types),
    (name) =>
      Effect.map(fs.readFileString(directory.value + name), (text): [HttpRouter.PathInput, ReturnType<typeof file>] => {
        const path: HttpRouter.PathInput =
          name === "index.html" ? "/" : name.endsWith(".html") ? `/${name.slice(0, -5)}` : `/assets/${name}`
        return [path, file(name, text)]
      })
  )
})

const openApi = OpenApi.fromApi(RunsApi)

/**
 * Adds the pages and the OpenAPI document to the server's routes. Without a build of the pages there are none.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer: Layer.Layer<never, never, FileSystem.FileSystem> = HttpApiBuilder.Router.use((router) =>
  Effect.gen(function* () {
    yield* router.get(
      "/openapi.json",
      Effect.succeed(HttpServerResponse.unsafeJson(openApi, { headers: { "cache-control": "no-cache" } }))
    )
    for (const [path, response] of yield* Effect.orDie(pages)) yield* router.get(path, response)
  })
)
