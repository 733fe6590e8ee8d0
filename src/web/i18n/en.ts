/**
 * What the pages say, in English: the table that the other languages follow. An entry is a text, or a function of what
 * the text tells.
 *
 * @since 0.1.0
 */
import { replayEn } from "./replay.js"

const counted = (count: number, one: string, other: string) => `${count} ${count === 1 ? one : other}`

/**
 * The English texts.
 *
 * @since 0.1.0
 * @category texts
 */
export const en = {
  ...replayEn,
  "app.name": "Runlet",
  "language.switch": "Language",
  "theme.switch": "Appearance",
  "theme.auto": "System",
  "theme.light": "Light",
  "theme.dark": "Dark",
  "common.close": "Close",
  "common.cancel": "Cancel",
  "common.copy": "Copy",
  "common.copied": "Copied",
  "common.loading": "Loading…",
  "time.seconds": (seconds: string) => `${seconds} s`,
  "time.minutes": (minutes: number, seconds: number) => `${minutes} min ${seconds} s`,
  "time.hours": (hours: number, minutes: number) => (minutes === 0 ? `${hours} h` : `${hours} h ${minutes} min`),

  "sidebar.label": "Conversations",
  "sidebar.fresh": "New conversation",
  "sidebar.search": "Search titles",
  "sidebar.today": "Today",
  "sidebar.week": "This week",
  "sidebar.older": "Earlier",
  "sidebar.empty": "What you ask will be kept here.",
  "sidebar.none": "No title has these words.",
  "sidebar.more": "Show more",
  "sidebar.reference": "API reference",
  "sidebar.signOut": "Sign out",
  "item.untitled": "Untitled",
  "item.title": "Title",
  "item.rename": "Rename",
  "item.renameThis": (title: string) => `Rename “${title}”`,
  "item.remove": "Delete",
  "item.removeThis": (title: string) => `Delete “${title}”`,
  "item.removeTitle": "Delete this conversation?",
  "item.removeText": (title: string) => `“${title}” and all its answers will be gone for good.`,
  "item.active": "An answer is being written",
  "item.waiting": "Waits for your decision",
  "item.failed": "The last answer failed",

  "welcome.title": "What would you like to know?",
  "welcome.text": "An answer goes on when you close this page, and is here when you come back.",
  "welcome.demo":
    "A demo model answers until you connect one of your own. It looks things up in the documents that come with Runlet, and asks you before it changes anything.",
  "welcome.one": "How does a client resume a run?",
  "welcome.two": "How do approvals work?",
  "welcome.three": "/write Shopping list: milk, bread and green tea",
  "welcome.unfinished": "Still under way",

  "thread.label": "Conversation",
  "thread.toEnd": "To the end",
  "turn.label": (place: number) => `Question ${place} and its answer`,
  "question.edit": "Edit and ask again",
  "question.branch": "The changed question begins a conversation of its own. This one stays as it is.",
  "question.send": "Ask this instead",

  "answer.expected": "Working…",
  "answer.next": "Next in line…",
  "answer.queued": (before: number) => `${counted(before, "answer", "answers")} before this one…`,
  "answer.gone": "This answer has been removed.",
  "answer.withdraw": "Withdraw",
  "reasoning.now": (time: string) => `Thinking… ${time}`,
  "reasoning.took": (time: string) => `Thought for ${time}`,
  "reasoning.moment": "Thought for a moment",

  "tool.input": "Input",
  "tool.progress": "Progress",
  "tool.result": "Result",
  "tool.reason": "Your reason",
  "tool.failed": "failed",
  "tool.streaming": "being written",
  "tool.ready": "about to start",
  "tool.approved": "approved",
  "tool.running": "running",
  "tool.waiting": "waits for you",
  "tool.done": "done",
  "tool.applied": "applied",
  "tool.rejected": "rejected",
  "tool.interrupted": "interrupted",
  "tool.in_doubt": "outcome unknown",
  "tool.invalid": "invalid call",
  "tool.expired": "not decided in time",

  "change.views": "Views of the change",
  "change.diff": "Changes",
  "change.after": "Preview",
  "change.all": "Details",
  "change.before": (title: string) => `was “${title}”`,

  "approval.asks": (tool: string) => `${tool} waits for your decision.`,
  "approval.write": "Allow this change?",
  "approval.effect": "Allow this? It can not be taken back.",
  "approval.conflict": "This has changed since you were asked. Allow it as it is now?",
  "approval.doubt": "Did this take effect? It is not known.",
  "approval.approve": "Approve",
  "approval.edit": "Edit…",
  "approval.reject": "Reject",
  "approval.why": "Why not? The model is told (you may leave this empty).",
  "approval.retry": "Try again",
  "approval.applied": "It took effect",
  "approval.abandon": "Give it up",
  "approval.expires": (time: string) => `${time} left`,
  "approval.expiring": "The time to decide is over",
  "editor.save": "Show me the new preview",
  "editor.wrong": (message: string) => `This is not JSON: ${message}`,

  "run.continue": "Continue",
  "run.again": "Answer again",
  "run.replay": "Replay step by step",
  "run.stopped": "Stopped.",
  "run.superseded": "Given up for a newer answer.",
  "run.limit": "Stopped: a limit was reached.",
  "run.ended.length": "The answer was cut short: it reached the model's longest answer.",
  "run.ended.steps": "The answer was ended: it took too many steps.",
  "run.ended.budget": "The answer was ended: its budget is used up.",
  "run.ended.filter": "The answer was ended by the model's content filter.",
  "run.failed": "Something went wrong.",
  "run.failed.busy": "The model is too busy at the moment.",
  "run.failed.model": "The model could not answer.",
  "run.failed.unavailable": "This model is not available.",
  "run.failed.access": "The server has no access to the model.",
  "run.failed.quota": "The account at the model's provider is used up.",
  "run.failed.silent": "The model fell silent.",
  "run.failed.connection": "The model could not be reached.",
  "run.failed.broken": "The answer broke off.",
  "run.failed.long": "The conversation has become too long for the model.",
  "run.failed.filter": "The model refused to answer this.",
  "run.failed.crash": "The server stopped too often during this answer.",
  "run.failed.interrupted": "The server stopped during this answer.",

  "facts.plan": "plan only",
  "facts.tokens": (shown: string, count: number) => `${shown} ${count === 1 ? "token" : "tokens"}`,
  "facts.first": (time: string) => `first word after ${time}`,
  "facts.took": (time: string) => `${time} in all`,
  "facts.attempt": (attempt: number) => `attempt ${attempt}`,
  "facts.usage": (input: string, output: string) => `${input} tokens read, ${output} written`,

  "versions.label": "Versions of this answer",
  "versions.place": (place: number, count: number) => `${place} of ${count}`,
  "versions.name": (place: number) => `Version ${place}`,
  "versions.before": "Earlier version",
  "versions.after": "Later version",
  "versions.compare": "Side by side",
  "versions.compared": "Versions side by side",

  "composer.region": "Ask",
  "composer.label": "Your question",
  "composer.placeholder": "Ask something",
  "composer.send": "Send",
  "composer.stop": "Stop",
  "composer.stopKey": "Stop (Esc)",
  "composer.model": "Model",
  "composer.think": "Think first",
  "composer.thinkHelp": "Ask the model to think before it answers",
  "composer.plan": "Plan only",
  "composer.planHelp": "Only look things up and plan; change nothing",
  "composer.hint.write": "to write",
  "composer.hint.line": "for a new line",
  "composer.hint.stop": "to stop",

  "documents.open": (count: number) => counted(count, "document", "documents"),
  "documents.title": "Documents written here",
  "documents.ask": "Ask about it",
  "documents.leave": "No longer ask about this document",

  "status.loading": "Loading…",
  "status.cut": "Reconnecting…",
  "status.queued": "In the queue",
  "status.running": "Working…",
  "status.streaming": "Answering…",
  "status.waiting_approval": "Waits for you",
  "status.completed": "Complete",
  "status.cancelled": "Stopped",
  "status.failed": "Failed",

  "notice.label": "News from other conversations",
  "notice.done": (title: string) => `“${title}” has been answered.`,
  "notice.failed": (title: string) => `The answer in “${title}” failed.`,
  "notice.cancelled": (title: string) => `The answer in “${title}” was stopped.`,
  "notice.waiting": (title: string) => `“${title}” waits for your decision.`,

  "problem.again": "Try again",
  "send.waiting": "The server can not be reached. Your message is kept, and is sent again…",
  "refused.unreachable": "The server can not be reached. It is tried again.",
  "refused.missing": "This is not there any more.",
  "refused.noConversation": "There is no such conversation, or it is not yours.",
  "refused.conflict": "This can not be done now.",
  "refused.limit": "That was too much at once. Wait a moment.",
  "refused.unavailable": "The server is not ready. Try again in a moment.",
  "refused.large": "This is longer than the server takes.",
  "refused.signedOut": "You are signed out.",
  "refused.forbidden": "The server does not take requests from this page.",
  "refused.other": "This did not work.",

  "signIn.title": "Sign in",
  "signIn.text": "This server asks who you are. Your access token comes from whoever runs it.",
  "signIn.token": "Access token",
  "signIn.submit": "Sign in",
  "signIn.wrong": "This token is not valid here."
}

/**
 * A table of texts: each key of the English one, with an entry that is used in the same way.
 *
 * @since 0.1.0
 * @category models
 */
export type Texts = {
  readonly [Key in keyof typeof en]: (typeof en)[Key] extends (...told: infer Told) => string
    ? (...told: Told) => string
    : string
}
