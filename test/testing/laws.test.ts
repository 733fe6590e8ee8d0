import { lawsHold } from "./support.js"

lawsHold("memory", { cases: Number(process.env.RUNLET_CASES ?? 1800) })
