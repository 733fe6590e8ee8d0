/** What Gemini's streamGenerateContent says: chunks of one candidate, each with the usage so far. */
import * as Script from "../../../src/testing/UpstreamScript.js"

type Json = { readonly [key: string]: unknown }

const usageMetadata = {
  promptTokenCount: 120,
  candidatesTokenCount: 30,
  thoughtsTokenCount: 10,
  cachedContentTokenCount: 64,
  totalTokenCount: 160,
  promptTokensDetails: [{ modality: "TEXT", tokenCount: 120 }]
}

const chunk = (candidate: Json): Script.Step =>
  Script.raw(
    `data: ${JSON.stringify({
      candidates: [{ index: 0, ...candidate }],
      usageMetadata,
      modelVersion: "gemini-2.5-flash",
      responseId: "Xk3NaP_gGZ"
    })}\r\n\r\n`
  )

const part = (...parts: ReadonlyArray<Json>): Script.Step => chunk({ content: { parts, role: "model" } })

export const thought = (text: string, thoughtSignature?: string): Script.Step =>
  part({ text, thought: true, thoughtSignature })

export const text = (text: string): Script.Step => part({ text })

export const call = (name: string, args: Json, thoughtSignature?: string): Script.Step =>
  part({ functionCall: { name, args }, thoughtSignature })

export const end = (finishReason = "STOP"): Script.Step =>
  chunk({ content: { parts: [{ text: "" }], role: "model" }, finishReason })

/** An end that brings no content. */
export const blocked: Script.Step = chunk({ finishReason: "SAFETY", safetyRatings: [] })

export const refused = (status: number, code: string): Script.Reply =>
  Script.body(
    status,
    "application/json",
    JSON.stringify({ error: { code: status, message: "No. AIza-canary", status: code } })
  )
