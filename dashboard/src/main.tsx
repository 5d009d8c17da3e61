/** The page: the first code that runs in the browser. */

import './window.css'
import { render } from 'preact'
import { App } from './app.js'
import { placeAt } from './places.js'
import { showTheme } from './state/colour-theme.js'
import { startKeys } from './state/key-bindings.js'
import { path, startNavigation } from './state/page-address.js'

const root = document.querySelector('#window')
if (root === null) throw new Error('index.html has no element with the id window')

showTheme()
startNavigation()
startKeys()
// The page's code is fetched while the session loads.
void placeAt(path.value).page.ask?.()
render(<App />, root)
