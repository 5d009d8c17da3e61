import { describe, expect, it } from 'vitest'
import { cronMistake } from '#src/core/schedule/cron-text.js'

describe('a cron text', () => {
  it.each([
    '0 3 * * *',
    '*/5 * * * * *',
    '@daily',
    '0 0 L * *',
    '0 0 * * MON#2',
    '0 0 * * 5L',
    '0 12 29 2 *',
    ' @Daily ',
    '0 0 12 ? * MON',
    '0 0 ? * 5-7',
    '0 0 * * FRI-SUN',
    '0 0 LW * *',
    '0 0 1-5,L jan-mar *',
  ])('may be %s', (text) => expect(cronMistake(text)).toBeUndefined())

  it('that is wrong is refused with the field, the position and the reason', () => {
    expect(cronMistake('0 3 32 * *')).toMatch(/^has '32' as its day of month, at character 5: /)
    expect(cronMistake('61 * * * *')).toMatch(/^has '61' as its minute, at character 1: /)
    expect(cronMistake('0 0 3 * FOO *')).toMatch(/^has 'FOO' as its month, at character 9: /)
    expect(cronMistake('*/0 * * * *')).toMatch(/^has '\*\/0' as its minute, /)
  })

  it('with too few or too many fields is refused with their count', () => {
    expect(cronMistake('* * * *')).toMatch(/^must be 5 fields .*; its fields are 4$/)
    expect(cronMistake('0 0 0 1 1 * 2030')).toMatch(/its fields are 7$/)
    expect(cronMistake('@often')).toMatch(/^must be 5 fields .*@daily/)
    expect(cronMistake(7)).toMatch(/^must be 5 fields/)
  })

  it.each([
    // The numbers that were written, and the range that is right.
    ['0 0 32 * *', /'32' as its day of month, at character 5: 32 is no day of month; it is a number from 1 to 31$/],
    ['0 0 0 * *', /: 0 is no day of month; it is a number from 1 to 31$/],
    ['0 0 1 13 *', /'13' as its month, .*: 13 is no month; it is a number from 1 to 12, or JAN to DEC$/],
    ['0 0 1,40 * *', /'1,40' as its day of month, .*: 40 is no day of month/],
    ['0 24 * * *', /: 24 is no hour; it is a number from 0 to 23$/],
    ['0 0 * * 8', /: 8 is no day of week; it is a number from 0 to 7, or SUN to SAT$/],
    ['0 0 * January *', /: 'January' is no month; it is a number from 1 to 12, or one of JAN, FEB/],
    ['-5 * * * *', /: '-5' is below the least, 0$/],
    ['0 22-2 * * *', /: the range '22-2' ends before it begins$/],
    ['0/15 * * * *', /: a step needs a range before it: '\*\/15', or '0-59\/15' to begin at 0$/],
    ['*/70 * * * *', /: the step '70' must be a whole number from 1 to 60$/],
    ['1-5/2/3 * * * *', /: '1-5\/2\/3' has two steps$/],
    ['1,,2 * * * *', /: a list has something on both sides of each comma$/],
    // Texts of other programs.
    ['0 12 * * ? *', /^has '\?' as its month, at character 10: '\?' may stand only for a day\. .*EventBridge/],
    ['0 2 1 * ? *', /^has '\?' as its month, /],
    ['0 18 ? * 2-6 *', /^has '\?' as its hour, /],
    ['?/5 * * * *', /^has '\?\/5' as its minute, /],
    ['0 0 ?/2 * *', /'\?' must stand alone/],
    ['cron(0 12 * * ? *)', /without 'cron\(…\)'\. An expression of EventBridge has the year/],
    ['CRON_TZ=Asia/Tokyo 0 3 * * *', /give the zone as `timeZone: 'Asia\/Tokyo'`$/],
    ['TZ=UTC 0 3 * * *', /give the zone as `timeZone: 'UTC'`$/],
    [
      '0 4 * * * send_email',
      /^has 'send_email' after its five fields\. A crontab has a command there: give the `task`/,
    ],
    ['0 4 * * * task ?id=x {"a":1}', /^has 'task \?id=x \{"a":1\}' after its five fields/],
    ['0 3 * * * /usr/bin/backup.sh --all', /^has '\/usr\/bin\/backup\.sh --all' after its five fields/],
    ['@reboot', /^@reboot names no time: .*`onWorkerStart`$/],
    ['@every 1h', /^@every is an interval: give `every: '1h'` instead of `cron`$/],
  ])('%s is refused with the wrong part and a correction', (text, message) => {
    expect(cronMistake(text)).toMatch(message)
  })

  it.each(['30 2 31 2 *', '0 0 30 2 *', '0 0 31 4,6,9,11 *'])('%s is refused because its date never comes', (text) =>
    expect(cronMistake(text)).toMatch(/names a date that never comes/),
  )
})
