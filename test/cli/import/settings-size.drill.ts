/** A settings file of the largest size: whatever it is made of, it is read in linear time. */

import { expect, it } from 'vitest'
import { settingsIn } from '#src/cli/commands/import/settings-file.js'

// Each in linear time: what takes the square of it would not end within the test.
it.each(['=', '(', '"', "'''", '\\', "A='", 'A=A\n', ' \n A=', 'if a:', 'a = b = ', '#', "f(x='y')\n"])(
  'a settings file of the largest allowed size is read to its end, even if it consists of %j',
  (part) => {
    const { settings } = settingsIn(part.repeat(1_048_500 / part.length), 'settings.py')
    expect(settings.size).toBeLessThanOrEqual(1)
  },
  60_000,
)
