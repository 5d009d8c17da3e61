import { expect, it } from 'vitest'
import { isSound } from '#src/stores/sqlite/file/sqlite-driver.js'

it('a SQLite version that may corrupt the log of a shared file is refused', () => {
  for (const version of [undefined, '3.46.1', '3.51.2', '3.9.9', '2.99.99']) expect(isSound(version)).toBe(false)
})

it('SQLite 3.51.3 and newer are accepted', () => {
  for (const version of ['3.51.3', '3.51.10', '3.53', '3.100.0', '4.0.0']) expect(isSound(version)).toBe(true)
})
