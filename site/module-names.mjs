/** The names of the modules in the API pages: a plugin of TypeDoc that calls each as users import it, not after its file. */

import { Converter, ReflectionKind } from 'typedoc'

const names = {
  index: 'millrace',
  'store-exports': 'millrace/store',
  'store-testing/store-testing': 'millrace/store-testing',
  'telemetry/telemetry': 'millrace/telemetry',
  'testing/testing': 'millrace/testing',
  'web/web': 'millrace/web',
}

/** Called by TypeDoc. Throws if a module has no name here. */
export function load(app) {
  app.converter.on(Converter.EVENT_CREATE_DECLARATION, (_context, reflection) => {
    if (!reflection.kindOf(ReflectionKind.Module)) return
    const name = names[reflection.name]
    if (name === undefined) throw new Error(`The module ${reflection.name} has no name in site/module-names.mjs`)
    reflection.name = name
  })
}
