/**
 * The database that a store keeps its runs in, as far as tools may use it. Statements of another client inside a
 * transaction run on the transaction's connection, and an autocommit statement can slip into somebody else's
 * transaction; so one fiber owns the client that writes, and everybody else reads through the other.
 *
 * @since 0.1.0
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import * as Context from "effect/Context"

/**
 * The client that the store's single writer uses. Other rooms use it inside an append's `within` and while their
 * layer is built, nowhere else.
 *
 * @since 0.1.0
 * @category services
 */
export class WriteClient extends Context.Tag("runlet/WriteClient")<WriteClient, SqlClient>() {}

/**
 * The client for reading. It sees what is committed.
 *
 * @since 0.1.0
 * @category services
 */
export class ReadClient extends Context.Tag("runlet/ReadClient")<ReadClient, SqlClient>() {}
