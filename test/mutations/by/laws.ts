import * as Stores from "../../../src/testing/Stores.js"
import { simulate } from "./support.js"

simulate(Stores.memory, 3000)
