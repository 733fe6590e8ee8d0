/**
 * Any JSON value to look through: objects and lists fold, long texts keep to themselves. It is text and nothing else.
 *
 * @since 0.1.0
 */
interface JsonProps {
  readonly value: unknown
  /** The name of the field it is the value of. */
  readonly name?: string | undefined
  /** How deep it is open at first. */
  readonly open?: number | undefined
}

/** A longer list or object shows so many, and how many more there are. */
const most = 200

const Leaf = ({ name, value }: JsonProps) => {
  const kind = value === null ? "null" : typeof value
  const long = typeof value === "string" && (value.length > 60 || value.includes("\n"))
  return (
    <div class="field">
      {name !== undefined && <span class="name">{name}</span>}
      {long ? (
        <pre dir="auto">{value}</pre>
      ) : (
        <span class={`value ${kind}`} dir="auto">
          {typeof value === "string" ? value : JSON.stringify(value)}
        </span>
      )}
    </div>
  )
}

/**
 * The value, as a tree.
 *
 * @since 0.1.0
 * @category components
 */
export const Json = ({ name, open = 1, value }: JsonProps) => {
  if (typeof value !== "object" || value === null) return <Leaf name={name} value={value} />
  const entries = Object.entries(value)
  const size = Array.isArray(value) ? `[${entries.length}]` : `{${entries.length}}`
  if (entries.length === 0) {
    return (
      <div class="field">
        {name !== undefined && <span class="name">{name}</span>}
        <span class="value soft">{Array.isArray(value) ? "[]" : "{}"}</span>
      </div>
    )
  }
  const fields = (
    <>
      {entries.slice(0, most).map(([key, field]) => (
        <Json key={key} name={key} value={field} open={open - 1} />
      ))}
      {entries.length > most && <p class="soft">… {entries.length - most}</p>}
    </>
  )
  if (name === undefined) return <div class="json">{fields}</div>
  return (
    <details class="tree" open={open > 0}>
      <summary>
        <span class="name">{name}</span> <span class="soft">{size}</span>
      </summary>
      <div class="inside">{fields}</div>
    </details>
  )
}
