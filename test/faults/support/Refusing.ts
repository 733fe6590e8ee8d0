/** A process whose writes to files the system refuses for a while, as on a disk that may only be read. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process"

/** What SQLite changes files by. Sockets and pipes are written otherwise. */
const calls = "pwrite64,pwritev,ftruncate,fallocate,unlink"

/** Why no process can be traced here, if so. */
export const unavailable = (): string | undefined => {
  const tried = spawnSync("strace", ["-qq", "-e", "trace=none", "true"], { encoding: "utf8" })
  return tried.status === 0
    ? undefined
    : `no system call can be refused: ${tried.error?.message ?? tried.stderr.trim()}`
}

/** Begins to refuse; the answer ends it. */
export const begin = async (pid: number): Promise<() => Promise<void>> => {
  const tracer: ChildProcess = spawn(
    "strace",
    ["-f", "-p", String(pid), "-e", `trace=${calls}`, "-e", `inject=${calls}:error=EROFS`, "-o", "/dev/null"],
    { stdio: ["ignore", "ignore", "pipe"] }
  )
  const ended = new Promise<void>((done) => tracer.once("exit", () => done()))
  await new Promise<void>((attached, failed) => {
    let said = ""
    tracer.stderr?.on("data", (piece) => {
      said += piece
      if (said.includes("attached")) attached()
    })
    void ended.then(() => failed(new Error(`strace ended: ${said}`)))
  })
  return async () => {
    tracer.kill("SIGINT")
    await ended
  }
}
