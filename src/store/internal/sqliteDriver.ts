/**
 * Opens SQLite's files.
 *
 * @since 0.1.0
 */
import Database from "better-sqlite3"

/**
 * Node.js 24.19 to 24.21 abort when an object of a native module is collected that was compiled against their headers
 * (https://github.com/nodejs/node/issues/65446), which is what happens to the driver where its binary can not be
 * downloaded. There, what it makes is kept as long as the process lives.
 */
const isAborting = /^v24\.(19|20|21)\./.test(process.version)

const kept: Array<unknown> = []

const keep = <A>(made: A): A => {
  kept.push(made)
  return made
}

class KeptDatabase extends Database {
  override prepare: Database.Database["prepare"] = (source: string) => keep(super.prepare(source))
  override pragma(source: string, options?: Database.PragmaOptions): unknown {
    const statement = this.prepare(`PRAGMA ${source}`)
    const simple = options?.simple === true
    if (statement.reader) return simple ? statement.pluck().get() : statement.all()
    statement.run()
    return simple ? undefined : []
  }
}

/**
 * How many statements of a file are kept prepared.
 *
 * @since 0.1.0
 * @category constants
 */
export const preparedStatements = isAborting ? Number.POSITIVE_INFINITY : 500

/**
 * Opens a file. Throws what SQLite says against it, as a `SqliteError`.
 *
 * @since 0.1.0
 * @category constructors
 */
export const openDatabase = (filename: string, options: Database.Options): Database.Database =>
  isAborting ? keep(new KeptDatabase(filename, options)) : new Database(filename, options)
