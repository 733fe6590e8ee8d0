// `npm run api` writes down what each entry point offers, as `.api/<entry>.api.md`; `npm run api -- --check` fails when
// that is not what is checked in, so that a change of the public surface is seen in review. Needs a build.
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { Extractor, ExtractorConfig, ExtractorLogLevel } from "@microsoft/api-extractor"

const root = join(dirname(fileURLToPath(import.meta.url)), "..")
const manifest = join(root, "package.json")
const check = process.argv.includes("--check")
const quiet = { default: { logLevel: ExtractorLogLevel.None } }

const entries = Object.entries(JSON.parse(readFileSync(manifest, "utf8")).exports).flatMap(([name, { types }]) =>
  types === undefined ? [] : [{ name: name === "." ? "runlet" : name.slice(2).replaceAll("/", "-"), types }]
)
mkdirSync(join(root, ".api"), { recursive: true })
const scratch = mkdtempSync(join(tmpdir(), "runlet-api-"))
const changed = entries.filter(({ name, types }) => {
  const config = ExtractorConfig.prepare({
    packageJsonFullPath: manifest,
    configObjectFullPath: undefined,
    configObject: {
      projectFolder: root,
      mainEntryPointFilePath: join(root, types),
      compiler: { tsconfigFilePath: join(root, "tsconfig.json") },
      apiReport: {
        enabled: true,
        reportFolder: join(root, ".api"),
        reportTempFolder: scratch,
        reportFileName: `${name}.api.md`
      },
      docModel: { enabled: false },
      dtsRollup: { enabled: false },
      tsdocMetadata: { enabled: false },
      messages: {
        compilerMessageReporting: quiet,
        extractorMessageReporting: quiet,
        tsdocMessageReporting: quiet
      }
    }
  })
  const { apiReportChanged, succeeded } = Extractor.invoke(config, {
    localBuild: !check,
    messageCallback: (message) => {
      if (message.logLevel !== ExtractorLogLevel.Error) message.handled = true
    }
  })
  if (!succeeded && !apiReportChanged) process.exitCode = 1
  return apiReportChanged
})
rmSync(scratch, { recursive: true, force: true })
for (const { name } of changed)
  console.log(`.api/${name}.api.md ${check ? "is not what the package offers" : "written"}`)
if (check && changed.length > 0) {
  console.error("Run `npm run build && npm run api`, look at the difference, and commit it.")
  process.exitCode = 1
}
console.log(`${entries.length} entry points`)
