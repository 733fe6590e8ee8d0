/**
 * How the next question is asked. What is a matter of taste is kept by the browser; what belongs to one question is not.
 *
 * @since 0.1.0
 */
import { computed, type ReadonlySignal, type Signal, signal } from "@preact/signals"
import type { Model } from "../../client/Api.js"
import { stored } from "../Stored.js"
import type { Document } from "./Documents.js"
import type { Manner } from "./Thread.js"

/**
 * The settings of the next question. `manner` is what they come to in a request; `modelId` is the chosen model, if one
 * was chosen that the server has.
 *
 * @since 0.1.0
 * @category models
 */
export interface Settings {
  readonly models: Signal<ReadonlyArray<Model>>
  readonly modelId: ReadonlySignal<string | undefined>
  readonly thinking: Signal<boolean>
  readonly plan: Signal<boolean>
  readonly document: Signal<Document | undefined>
  readonly manner: ReadonlySignal<Manner>
  readonly choose: (modelId: string) => void
}

/**
 * The settings as this browser has them.
 *
 * @since 0.1.0
 * @category constructors
 */
export const makeSettings = (): Settings => {
  const kept = { model: stored("runlet.model"), thinking: stored("runlet.thinking") }
  const models = signal<ReadonlyArray<Model>>([])
  const chosen = signal(kept.model.get())
  const thinking = signal(kept.thinking.get() === "yes")
  const plan = signal(false)
  const document = signal<Document | undefined>()
  thinking.subscribe((on) => kept.thinking.set(on ? "yes" : undefined))
  const modelId = computed(() => models.value.find((model) => model.modelId === chosen.value)?.modelId)
  return {
    models,
    modelId,
    thinking,
    plan,
    document,
    choose: (next) => {
      chosen.value = next
      kept.model.set(next)
    },
    manner: computed(() => {
      const open = document.value
      return {
        ...(modelId.value !== undefined && { modelId: modelId.value }),
        ...(plan.value && { mode: "plan" as const }),
        enableThinking: thinking.value,
        ...(open && {
          currentDocument: {
            id: open.id,
            title: open.title,
            ...(open.contentHash !== undefined && { contentHash: open.contentHash })
          }
        })
      }
    })
  }
}
