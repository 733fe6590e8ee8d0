/**
 * What runs on Node.js: the stack in one layer, its configuration, SQLite, PostgreSQL and the server.
 *
 * @since 0.1.0
 */
export * as Auth from "../http/Auth.js"
export * as Credentials from "../http/Credentials.js"
export * as HttpServer from "../http/HttpServer.js"
export * as JwtCredentials from "../http/JwtCredentials.js"
export * as TokenCredentials from "../http/TokenCredentials.js"
export * as Postgres from "../store/Postgres.js"
export * as Sqlite from "../store/Sqlite.js"
export * as PostgresDocuments from "../tool/documents/PostgresDocuments.js"
export * as SqliteDocuments from "../tool/documents/SqliteDocuments.js"
export * as Config from "./Config.js"
export * as ConfigSchema from "./ConfigSchema.js"
export * as Heap from "./Heap.js"
export * as Migrate from "./Migrate.js"
export * as NodeProcess from "./NodeProcess.js"
export * as Outgoing from "./Outgoing.js"
export * as Runlet from "./Runlet.js"
export * as Wiring from "./Wiring.js"
