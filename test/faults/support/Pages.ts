/** Damage to single pages of a database file, as a failing disk would do it. */
import { closeSync, openSync, readFileSync, writeSync } from "node:fs"
import Database from "better-sqlite3"

const size = 4096

/** Brings everything into the file itself, so that pages can be found there. */
export const settle = (file: string): void => {
  const db = new Database(file, { timeout: 5000 })
  try {
    db.pragma("wal_checkpoint(TRUNCATE)")
  } finally {
    db.close()
  }
}

/** Overwrites the bytes of the page with this number. */
export const scribble = (file: string, page: number): void => {
  const handle = openSync(file, "r+")
  try {
    writeSync(handle, Buffer.alloc(size, 0x5a), 0, size, (page - 1) * size)
  } finally {
    closeSync(handle)
  }
}

/** Every page of a table that holds this text. */
export const holding = (file: string, table: string, text: string): ReadonlyArray<number> => {
  settle(file)
  const bytes = readFileSync(file)
  const db = new Database(file, { readonly: true })
  try {
    return db
      .prepare<[string], number>("SELECT pageno FROM dbstat WHERE name = ?")
      .pluck()
      .all(table)
      .filter((page) => bytes.subarray((page - 1) * size, page * size).includes(text))
  } finally {
    db.close()
  }
}

/** The page from which a table or an index is reached. */
export const root = (file: string, name: string): number => {
  const db = new Database(file, { readonly: true })
  try {
    return Number(db.prepare("SELECT rootpage FROM sqlite_master WHERE name = ?").pluck().get(name))
  } finally {
    db.close()
  }
}
