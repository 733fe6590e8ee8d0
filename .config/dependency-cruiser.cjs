// The rooms of the house, bottom up. A module may import from its own room and from the rooms below it.
const order = ["domain", ["model", "tool"], "store", "agent", "resume", "engine", "http"]
const tops = ["client", "adapters", "testing", "node", "cli", "web"]

// What a room may see besides those below it: the server mounts the adapters, which know only what a log is.
const besides = { http: ["adapters"] }

const rooms = order.map((room) => (Array.isArray(room) ? room : [room]))
const below = (index) => rooms.slice(0, index).flat()
const src = (names) => `^src/(${names.join("|")})/`

/** What each of the rooms on top may see, besides itself. */
const allowed = {
  client: ["domain", "http"],
  adapters: ["domain"],
  testing: [...rooms.flat(), "client", "adapters"],
  node: rooms.flat(),
  cli: [...rooms.flat(), "client", "testing", "node"],
  web: ["domain", "http", "client"]
}

const forbid = (name, from, to, comment) => ({ name, severity: "error", comment, from, to })

const direction = [
  ...rooms.flatMap((names, index) =>
    names.map((room) =>
      forbid(
        `${room}-imports-down`,
        { path: src([room]) },
        {
          path: "^src/[^/]+/",
          pathNot: src([room, ...below(index), ...(names.length > 1 ? names : []), ...(besides[room] ?? [])])
        },
        `${room} may import only from the rooms below it`
      )
    )
  ),
  ...tops.map((room) =>
    forbid(
      `${room}-imports-down`,
      { path: src([room]) },
      { path: "^src/[^/]+/", pathNot: src([room, ...allowed[room]]) },
      `${room} may import only: ${allowed[room].join(", ")}`
    )
  )
]

const browserSafe = "^src/(domain/|client/|web/|adapters/|http/(RunsApi|RunsSchemas|AdaptersApi|Sse)\\.ts$)"

/** @type {import("dependency-cruiser").IConfiguration} */
module.exports = {
  forbidden: [
    forbid("no-circular", {}, { circular: true }, "modules must not import each other in a circle"),
    ...direction,
    forbid(
      "domain-imports-effect-only",
      { path: "^src/domain/" },
      { path: "node_modules", pathNot: "node_modules/(effect|uuid)/" },
      "the domain knows Effect and nothing else"
    ),
    forbid(
      "browser-safe",
      { path: browserSafe },
      { path: "(^node:|platform-node|better-sqlite3|undici)" },
      "browsers load this module"
    ),
    forbid("browser-safe-core", { path: browserSafe }, { dependencyTypes: ["core"] }, "browsers load this module"),
    forbid(
      "contract-only",
      { path: "^src/(client|web|adapters)/" },
      { path: "^src/http/", pathNot: "^src/http/(RunsApi|RunsSchemas|AdaptersApi|Sse)\\.ts$" },
      "of http, clients see the contract only"
    ),
    forbid(
      "testing-without-runner",
      { path: "^src/testing/" },
      { path: "node_modules/(vitest|@effect/vitest|fast-check)/" },
      "the published test helpers belong to no test runner"
    ),
    forbid(
      "no-dev-dependencies",
      // What the page is made of is in its bundle.
      { path: "^src/", pathNot: "^src/web/" },
      { dependencyTypes: ["npm-dev"], dependencyTypesNot: ["npm", "npm-peer", "type-only"] },
      "what is published must not need what is not installed"
    ),
    forbid("resolvable", {}, { couldNotResolve: true }, "the module must exist")
  ],
  options: {
    doNotFollow: { path: "node_modules" },
    tsConfig: { fileName: "tsconfig.json" },
    tsPreCompilationDeps: true,
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["import", "require", "node", "default", "types"],
      mainFields: ["module", "main", "types"]
    }
  }
}
