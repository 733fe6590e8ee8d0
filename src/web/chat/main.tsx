/**
 * Begins the page.
 *
 * @since 0.1.0
 */
import { render } from "preact"
import { makeApi } from "../../client/Api.js"
import { makeClient } from "../../client/Client.js"
import { App } from "./App.js"
import { makePage } from "./Page.js"

const page = makePage(makeClient(), makeApi())
history.scrollRestoration = "manual"
render(<App page={page} />, document.body)
void page.open(page.place())
