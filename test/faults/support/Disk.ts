/** A small disk of its own, that can be filled to the last byte and emptied again. */
import { execFileSync } from "node:child_process"
import { closeSync, mkdtempSync, openSync, rmdirSync, unlinkSync, writeSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

export interface Disk {
  readonly path: string
  /** Takes all that is free, and answers how much it was. */
  readonly fill: () => number
  readonly free: () => void
  readonly stop: () => void
}

/** A disk in memory of so many bytes, or the reason why there is none: only who may mount can have one. */
export const make = (bytes: number): Disk | string => {
  const path = mkdtempSync(join(tmpdir(), "runlet-disk-"))
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${bytes}`, "tmpfs", path], { stdio: "pipe" })
  } catch (error) {
    rmdirSync(path)
    return `no small disk could be mounted: ${error instanceof Error ? error.message : String(error)}`
  }
  const ballast = join(path, "ballast")
  return {
    path,
    fill: () => {
      const file = openSync(ballast, "a")
      let written = 0
      try {
        for (let size = 65_536; size >= 1; size = Math.floor(size / 2)) {
          try {
            while (true) written += writeSync(file, Buffer.alloc(size))
          } catch (error) {
            if (!(error instanceof Error && "code" in error && error.code === "ENOSPC")) throw error
          }
        }
      } finally {
        closeSync(file)
      }
      return written
    },
    free: () => unlinkSync(ballast),
    stop: () => {
      execFileSync("umount", ["-l", path])
      rmdirSync(path)
    }
  }
}
