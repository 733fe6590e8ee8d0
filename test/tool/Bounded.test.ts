import { afterEach, describe, expect, it, vi } from "vitest"
import { bounded } from "../../src/tool/Bounded.js"

/** Work that has an end when this many milliseconds have passed since it was first begun. */
const until = (ms: number) => {
  let end: number | undefined
  return () => {
    end ??= Date.now() + ms
    while (Date.now() < end);
    return "done"
  }
}

describe("work that is bounded", () => {
  afterEach(() => vi.restoreAllMocks())

  it("ends with its value, or with its own error", () => {
    expect(bounded(() => 1, 100)).toBe(1)
    expect(() =>
      bounded(() => {
        throw new TypeError("no")
      }, 100)
    ).toThrow(TypeError)
  })

  it("is stopped when it has used its time", () => {
    let looks = 0
    vi.spyOn(process, "cpuUsage").mockImplementation(() => ({ user: ++looks * 20_000, system: 0 }))
    expect(() => bounded(until(60_000), 20)).toThrow("it takes too long")
  })

  it("is begun again when the machine gave the process no time to do it", () => {
    vi.spyOn(process, "cpuUsage").mockReturnValue({ user: 0, system: 0 })
    expect(bounded(until(100), 20)).toBe("done")
  })
})
