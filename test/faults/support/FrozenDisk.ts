/** A disk of its own that becomes read-only while files on it are open, as the system makes one that has an error. */
import { execFileSync } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { basename, join } from "node:path"

export interface FrozenDisk {
  readonly path: string
  /** From now on nothing can be written, also to files that are open. */
  readonly freeze: () => void
  /** The disk as it was when it froze, repaired, to be written again. Nobody may use it meanwhile. */
  readonly repair: () => void
  readonly stop: () => void
}

const run = (program: string, ...parameters: ReadonlyArray<string>): string =>
  execFileSync(program, parameters, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] })

/** A disk in a file of so many bytes, or the reason why there is none: only who may mount can have one. */
export const make = (bytes: number): FrozenDisk | string => {
  const place = mkdtempSync(join(tmpdir(), "runlet-frozen-"))
  const [image, path] = [join(place, "image"), join(place, "disk")]
  const mount = () => run("mount", "-o", "loop,errors=remount-ro", image, path)
  const device = () => basename(run("losetup", "-n", "-O", "NAME", "-j", image).trim())
  const fault = () => `/sys/fs/ext4/${device()}/trigger_fs_error`
  try {
    writeFileSync(image, "")
    truncateSync(image, bytes)
    mkdirSync(path)
    run("mkfs.ext4", "-q", "-F", image)
    mount()
  } catch (error) {
    rmSync(place, { recursive: true, force: true })
    return `no disk could be made and mounted: ${error instanceof Error ? error.message : String(error)}`
  }
  return {
    path,
    freeze: () => writeFileSync(fault(), "1"),
    repair: () => {
      run("umount", path)
      try {
        run("e2fsck", "-fy", image)
      } catch {
        // It says with a status of 1 that it has mended something.
      }
      mount()
    },
    stop: () => {
      run("umount", "-l", path)
      rmSync(place, { recursive: true, force: true })
    }
  }
}
