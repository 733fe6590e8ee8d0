import * as Schema from "effect/Schema"
import type * as AST from "effect/SchemaAST"
import { Config } from "../../src/node/ConfigSchema.js"

/** Paths of keys; whether each must be given where what it belongs to is given. */
type Keys = ReadonlyMap<string, boolean>

const membersOf = (ast: AST.AST): ReadonlyArray<AST.AST> =>
  ast._tag === "Union" ? ast.types.flatMap(membersOf) : [ast]

const isStruct = (ast: AST.AST): ast is AST.TypeLiteral =>
  ast._tag === "TypeLiteral" && ast.propertySignatures.length > 0

/** The keys of structs of which one is given: a key must be there if it must in all of them. */
const fieldsOf = (structs: ReadonlyArray<AST.TypeLiteral>, prefix: string): Keys => {
  const keys = new Map<string, boolean>()
  const signatures = structs.flatMap(({ propertySignatures }) => propertySignatures)
  for (const name of new Set(signatures.map((signature) => signature.name))) {
    const same = signatures.filter((signature) => signature.name === name)
    const path = `${prefix}${String(name)}`
    const kinds = same.flatMap(({ type }) => membersOf(type)).filter(({ _tag }) => _tag !== "UndefinedKeyword")
    // A group that is only a name for what is in it is no key that says something.
    if (!kinds.every(isStruct)) keys.set(path, same.length === structs.length && same.every((one) => !one.isOptional))
    for (const kind of kinds) {
      const inner =
        kind._tag === "TupleType"
          ? kind.rest.map(({ type }) => ({ type, path: `${path}[].` }))
          : kind._tag === "TypeLiteral"
            ? kind.indexSignatures.map(({ type }) => ({ type, path: `${path}.<name>.` }))
            : []
      for (const { path: below, type } of inner) {
        for (const [key, required] of fieldsOf(membersOf(type).filter(isStruct), below)) keys.set(key, required)
      }
    }
    for (const [key, required] of fieldsOf(kinds.filter(isStruct), `${path}.`)) keys.set(key, required)
  }
  return keys
}

/** Every key that a configuration may have. */
export const keys: Keys = fieldsOf(membersOf(Schema.encodedSchema(Config).ast).filter(isStruct), "")

/** A configuration with one of everything that has a name or a place of its own, and of it nothing but what it needs. */
const sparse = {
  models: { x: { provider: "openai-compatible", baseUrl: "http://localhost" } },
  tools: [{ name: "x", description: "", kind: "readonly", url: "http://localhost" }],
  auth: { tokens: [{ token: "x", user: "x" }] },
  mcpServers: { x: { command: "x" }, y: { url: "http://localhost" } }
}

const decode = Schema.decodeUnknownSync(Config)

const at = (value: unknown, [first, ...rest]: ReadonlyArray<string>): unknown => {
  if (first === undefined) return value
  if (typeof value !== "object" || value === null) return undefined
  if (first !== "<name>" && first !== "[]") return at(Reflect.get(value, first), rest)
  return Object.values(value)
    .map((one) => at(one, rest))
    .find((one) => one !== undefined)
}

/** The default of a key: `undefined` where there is none. */
export const defaultOf = (key: string): unknown => {
  const path = key.replaceAll("[]", ".[]").split(".")
  const free = path.some((part) => part === "<name>" || part === "[]")
  if (!free) return at(decode({}), path)
  return at(sparse, path) === undefined ? at(decode(sparse), path) : undefined
}
