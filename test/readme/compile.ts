import { readFileSync } from "node:fs"
import { join } from "node:path"
import ts from "typescript"

const root = join(__dirname, "../..")

const { exports }: { readonly exports: Readonly<Record<string, string | { readonly types: string }>> } = JSON.parse(
  readFileSync(join(root, "package.json"), "utf8")
)

/** The entry points that blocks of code may import, and where their sources are. */
export const entries: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(exports).flatMap(([name, target]) =>
    typeof target === "string"
      ? []
      : [[name.replace(".", "runlet"), target.types.replace("./dist/", "src/").replace(/\.d\.ts$/, ".ts")]]
  )
)

/** What the compiler has to say about programs, by their names, which may be those of places that do not exist. */
export const problemsOf = (programs: ReadonlyMap<string, string>): ReadonlyArray<string> => {
  const texts = new Map([...programs].map(([name, text]) => [join(__dirname, `${name}.ts`), text]))
  const file = ts.readConfigFile(join(root, "tsconfig.json"), ts.sys.readFile)
  const { options } = ts.parseJsonConfigFileContent({ ...file.config, include: [] }, ts.sys, root)
  const all: ts.CompilerOptions = {
    ...options,
    // What is shown may be made for somebody else to use.
    noUnusedLocals: false,
    baseUrl: root,
    paths: Object.fromEntries(Object.entries(entries).map(([name, path]) => [name, [path]]))
  }
  const host = ts.createCompilerHost(all)
  const { fileExists, getSourceFile, readFile } = host
  host.fileExists = (name) => texts.has(name) || fileExists(name)
  host.readFile = (name) => texts.get(name) ?? readFile(name)
  host.getSourceFile = (name, target, ...rest) => {
    const text = texts.get(name)
    return text === undefined
      ? getSourceFile(name, target, ...rest)
      : ts.createSourceFile(name, text, target, true, ts.ScriptKind.TS)
  }
  const program = ts.createProgram([...texts.keys()], all, host)
  return [...texts.keys()].flatMap((name) => {
    const source = program.getSourceFile(name)
    return [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)].map(
      ({ messageText, start: at = 0 }) =>
        `${name.slice(__dirname.length + 1)} +${(source?.getLineAndCharacterOfPosition(at).line ?? 0) + 1}: ${ts.flattenDiagnosticMessageText(messageText, "\n")}`
    )
  })
}
