/**
 * On whose behalf the present fiber acts.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"

/**
 * The id of the user that owns what is created and may see what is read. The default, `local`, is the single user of
 * a program without authentication; a server sets it for each request.
 *
 * @since 0.1.0
 * @category services
 */
export class CurrentUser extends Context.Reference<CurrentUser>()("runlet/CurrentUser", {
  defaultValue: () => "local"
}) {}
