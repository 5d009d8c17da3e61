import { describe, expect, it } from 'vitest'
import { cronMistake } from '#src/core/schedule/cron-text.js'

describe('a cron text', () => {
  it.each(['0 3 * * *', '*/5 * * * * *', '@daily', '0 0 L * *', '0 0 * * MON#2', '0 0 * * 5L', '0 12 29 2 *'])(
    '%s is one',
    (text) => expect(cronMistake(text)).toBeUndefined(),
  )

  it('that is wrong is refused with the field, where it stands, and why', () => {
    expect(cronMistake('0 3 32 * *')).toMatch(/^has '32' as its day of month, at character 5: /)
    expect(cronMistake('61 * * * *')).toMatch(/^has '61' as its minute, at character 1: /)
    expect(cronMistake('0 0 3 * FOO *')).toMatch(/^has 'FOO' as its month, at character 9: /)
    expect(cronMistake('*/0 * * * *')).toMatch(/^has '\*\/0' as its minute, /)
  })

  it('with too few or too many fields is refused with their number', () => {
    expect(cronMistake('* * * *')).toMatch(/^must be 5 fields .*; its fields are 4$/)
    expect(cronMistake('0 0 0 1 1 * 2030')).toMatch(/its fields are 7$/)
    expect(cronMistake('@often')).toMatch(/^must be 5 fields .*@daily/)
    expect(cronMistake(7)).toMatch(/^must be 5 fields/)
  })

  it.each(['30 2 31 2 *', '0 0 30 2 *', '0 0 31 4,6,9,11 *'])('%s names a date that never comes', (text) =>
    expect(cronMistake(text)).toMatch(/names a date that never comes/),
  )
})
