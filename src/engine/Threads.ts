/**
 * Conversations by the names that clients give them. Some protocols let the client name the thread before the server has
 * heard of it; the name and its user are all that such a conversation's id is made of.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import * as Ids from "../domain/Ids.js"
import * as Json from "../tool/Json.js"

/**
 * Whether a name is the id of a conversation.
 *
 * @since 0.1.0
 * @category predicates
 */
export const isId = Schema.is(Ids.ConversationId)

/**
 * The id of a user's conversation of this name. A name that is a conversation's id means that conversation.
 *
 * @since 0.1.0
 * @category conversions
 */
export const conversationOf = (user: string, name: string): string =>
  isId(name) ? name : Ids.namedConversation(Json.hash(["thread", user, name]))
