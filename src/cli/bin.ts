#!/usr/bin/env node
/**
 * The program `runlet`.
 *
 * @since 0.1.0
 */
import { stripVTControlCharacters } from "node:util"
import * as NodeContext from "@effect/platform-node/NodeContext"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Cause from "effect/Cause"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Secrets from "../domain/Secrets.js"
import * as Wiring from "../node/Wiring.js"
import * as Cli from "./Cli.js"
import { Failure } from "./Failure.js"
import * as Logs from "./Logs.js"
import { inert } from "./Text.js"

/** Whoever sends a second signal does not want to wait. One that npm or a terminal doubled is not a second one. */
const doubledMs = 300
let first: number | undefined
for (const [signal, code] of [
  ["SIGINT", 130],
  ["SIGTERM", 143]
] as const) {
  process.on(signal, () => {
    first ??= performance.now()
    if (performance.now() - first > doubledMs) process.exit(code)
  })
}

/** A tool's code may leave a promise behind that nobody awaits; its failure must not end everybody's runs. */
process.on("unhandledRejection", () => {
  process.stderr.write("A promise was rejected after nobody waited for it any more.\n")
})

/** Help is made for terminals with colours; where there are none its words are enough. */
const plain = (line: unknown): unknown => (typeof line === "string" ? stripVTControlCharacters(line) : line)
const isStyled = process.stdout.isTTY && process.stdout.hasColors()

Console.consoleWith((console) => {
  const program = Cli.run(Wiring.layer)(process.argv)
  return isStyled
    ? program
    : Console.withConsole(program, { ...console, log: (...said) => console.log(...said.map(plain)) })
}).pipe(
  Effect.provide([NodeContext.layer, Logs.layer(process.stderr.isTTY === true)]),
  NodeRuntime.runMain({
    disableErrorReporting: true,
    disablePrettyLogger: true,
    teardown: (exit, onExit) => {
      // A command may have said what an interruption of it means.
      if (Exit.isSuccess(exit) || Cause.isInterruptedOnly(exit.cause)) return onExit(Number(process.exitCode ?? 0))
      const failure = Option.filter(Cause.failureOption(exit.cause), (error) => error instanceof Failure)
      const { exitCode, message } = Option.getOrElse(failure, () => ({
        exitCode: 1,
        message: Secrets.make([]).told.text(`Runlet failed unexpectedly.\n${Cause.pretty(exit.cause)}`)
      }))
      if (message !== "") process.stderr.write(`${inert(message)}\n`)
      onExit(exitCode)
    }
  })
)
