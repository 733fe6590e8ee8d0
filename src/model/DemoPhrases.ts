/**
 * What the demo model says, in English and in Chinese.
 *
 * @since 0.1.0
 */

/**
 * All that the demo model can say, in one language.
 *
 * @since 0.1.0
 * @category models
 */
export interface Phrases {
  readonly thinkSearch: (question: string) => string
  readonly thinkRead: (titles: ReadonlyArray<string>) => string
  readonly thinkAnswer: string
  readonly thinkAct: (tool: string) => string
  readonly found: string
  readonly steps: string
  readonly from: (title: string) => string
  readonly nothing: string
  readonly noTools: string
  readonly failed: (tool: string, message: string) => string
  readonly applied: (tool: string) => string
  readonly rejected: string
  readonly expired: string
  readonly answered: (tool: string) => string
  readonly notOffered: (tool: string) => string
  readonly memories: string
  readonly noMemories: string
  readonly usage: (usage: string) => string
  readonly sign: string
  readonly help: string
  readonly long: ReadonlyArray<string>
}

/**
 * The phrases in English.
 *
 * @since 0.1.0
 * @category constants
 */
export const english: Phrases = {
  thinkSearch: (question) => `The user asks: "${question}". I will look for it in the documents first.`,
  thinkRead: (titles) => `These look right: ${titles.join(", ")}. I will read them before I answer.`,
  thinkAnswer: "I have read enough. I will quote the sentences that speak about the question.",
  thinkAct: (tool) => `The user wants something done. The tool ${tool} can do it.`,
  found: "Here is what I found:",
  steps: "Here is a plan, from what I found:",
  from: (title) => `From **${title}**:`,
  nothing:
    "I found nothing about that in the documents. Try *How does a client resume a run?* or *How do approvals work?*, or type `/help`.",
  noTools: "There are no documents for me to look into here.",
  failed: (tool, message) =>
    `The tool \`${tool}\` failed: ${message}\n\nThat is no end: the failure is a result like any other, and the conversation goes on.`,
  applied: (tool) => `Done: you confirmed it, and \`${tool}\` applied it exactly once.`,
  rejected: "You rejected it, so nothing was changed.",
  expired: "Nobody decided in time, so nothing was changed.",
  answered: (tool) => `The tool \`${tool}\` answered:`,
  notOffered: (tool) => `I was not offered a tool \`${tool}\` here.`,
  memories: "This is what I was asked to remember:",
  noMemories: "There is nothing that I was asked to remember. Try `/remember I like green tea`.",
  usage: (usage) => `Please write it as \`${usage}\`.`,
  sign: "*I am the demo model that comes with Runlet: I look things up and quote them, no more. To connect a real model, add it to `runlet.config.json` and make it the `defaultModel`.*",
  help: `I am the demo model. Ask me about Runlet, in English or Chinese, and I look it up in the documents. These words steer me:

- \`/help\` shows this list
- \`/write <title>: <text>\` proposes a new document, which you confirm
- \`/update <id or title>: <text>\` proposes a new text for one of your documents
- \`/remember <text>\` and \`/recall <question>\` keep and find facts
- \`/plan <goal>\` answers with numbered steps
- \`/call <tool> <JSON>\` calls any tool that is offered
- \`/long <n>\` answers with n words
- \`/fail-tool\` calls a tool that fails, and goes on
- \`/slow\` speaks eight times slower
- \`/cut\` breaks off in the middle of the first attempt, so that you can resume

The last three may stand in front of anything.`,
  long: [
    "A run is a record of what happened, not a promise about a connection.",
    "Every event is stored before anybody sees it, and so nothing that was seen can be lost.",
    "The reader keeps a single number, and with it the whole story can be told again from any point.",
    "When the power fails, the log stands where it stood, and the next process goes on from there.",
    "A tool that only reads may be asked again, but a tool that writes must be asked once.",
    "People decide about changes, and what they decide is part of the log as well.",
    "A slow reader does not hold up a fast one, because each of them carries a bookmark.",
    "To cancel is to interrupt, and what was said before the interruption remains."
  ]
}

/**
 * The phrases in Chinese; the help is in English.
 *
 * @since 0.1.0
 * @category constants
 */
export const chinese: Phrases = {
  thinkSearch: (question) => `用户的问题是：“${question}”。我先在文档里查找。`,
  thinkRead: (titles) => `这些文档看起来相关：${titles.join("、")}。回答之前我先读一读。`,
  thinkAnswer: "资料足够了，我来引用和问题有关的句子。",
  thinkAct: (tool) => `用户要我做一件事，可以用工具 ${tool}。`,
  found: "我找到了这些内容：",
  steps: "根据找到的内容，步骤如下：",
  from: (title) => `来自《${title}》：`,
  nothing: "文档里没有找到相关内容。可以试试“断线后如何恢复？”，或者输入 `/help`。",
  noTools: "这里没有可供查找的文档。",
  failed: (tool, message) => `工具 \`${tool}\` 失败了：${message}\n\n这并不是终点：失败也是一种结果，对话可以继续。`,
  applied: (tool) => `完成了：您已确认，\`${tool}\` 只执行了一次。`,
  rejected: "您拒绝了，所以没有任何改动。",
  expired: "没有人及时决定，所以没有任何改动。",
  answered: (tool) => `工具 \`${tool}\` 的结果：`,
  notOffered: (tool) => `这里没有提供工具 \`${tool}\`。`,
  memories: "我记住的内容：",
  noMemories: "还没有要我记住的内容。可以试试 `/remember 我喜欢绿茶`。",
  usage: (usage) => `请这样写：\`${usage}\`。`,
  sign: "*我是 Runlet 自带的演示模型，只会查找和引用文档。要连接真正的模型，请在 `runlet.config.json` 里添加它，并设为 `defaultModel`。*",
  help: english.help,
  long: [
    "运行是对已经发生的事情的记录，而不是对一个连接的承诺。",
    "每个事件都先保存，再显示，所以看到过的内容不会丢失。",
    "读者只需要记住一个序号，就可以从任何地方接着读下去。",
    "断电以后，日志还在原处，下一个进程会从那里继续。",
    "只读的工具可以再问一次，写入的工具只能执行一次。"
  ]
}
