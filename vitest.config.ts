import { fileURLToPath } from "node:url"
import { defineConfig } from "vitest/config"

const source = (file: string) => fileURLToPath(new URL(`src/${file}`, import.meta.url))

export default defineConfig({
  // The package by its own names, as its users know it.
  resolve: {
    alias: [
      { find: /^runlet$/, replacement: source("index.ts") },
      { find: /^runlet\/(node|testing)$/, replacement: source("$1/index.ts") }
    ]
  },
  test: {
    include: ["test/**/*.test.ts", "test/**/*.test.tsx"],
    // The scenarios of one server are minutes more when they are played over a fleet.
    exclude: [
      "test/bench/**",
      "test/providers/**",
      "node_modules/**",
      ...(process.env.RUNLET_FLEET === "all" ? [] : ["test/fleet/scenarios/**"])
    ],
    setupFiles: ["test/dice.ts"],
    globalSetup: ["test/postgres/support/global.ts"],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    maxWorkers: 2,
    minWorkers: 1
  }
})
