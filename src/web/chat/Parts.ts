/**
 * The parts of an answer as a reader sees them.
 *
 * @since 0.1.0
 */
import type { Snapshot, SnapshotPart } from "../../domain/Snapshot.js"

/**
 * The parts with those joined that go on with what is before them: a sentence, or a thought, that one attempt began and
 * the next one ended is one.
 *
 * @since 0.1.0
 * @category reading
 */
export const joined = (parts: ReadonlyArray<SnapshotPart>): ReadonlyArray<SnapshotPart> => {
  const all: Array<SnapshotPart> = []
  for (const part of parts) {
    const last = all.at(-1)
    const goesOn =
      last !== undefined && last.type !== "tool-call" && part.type === last.type && part.iteration === last.iteration
    if (goesOn) all[all.length - 1] = { ...last, text: last.text + part.text, endedAt: part.endedAt }
    else all.push(part)
  }
  return all
}

/**
 * What the answer says, as it is copied: what was said between tool calls and thoughts, each as a paragraph.
 *
 * @since 0.1.0
 * @category reading
 */
export const textOf = ({ parts }: Snapshot): string =>
  joined(parts)
    .flatMap((part) => (part.type === "text" ? [part.text.trim()] : []))
    .filter(Boolean)
    .join("\n\n")
