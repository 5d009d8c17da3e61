import { commandSequence } from 'millrace/store-testing'
import { expect, it } from 'vitest'

it('the same seed makes the same commands, and another seed makes others', () => {
  expect(commandSequence(5, 200)).toEqual(commandSequence(5, 200))
  expect(commandSequence(6, 200)).not.toEqual(commandSequence(5, 200))
})

it('a longer sequence of a seed begins with the shorter one', () => {
  expect(commandSequence(5, 200).slice(0, 50)).toEqual(commandSequence(5, 50))
})

it('a long sequence has every verb and every end of a claim', () => {
  const commands = commandSequence(1, 5_000)

  expect([...new Set(commands.map(({ verb }) => verb))].sort()).toEqual(
    [
      ...[
        'adopt',
        'advance',
        'beat',
        'bury',
        'cancel',
        'claim',
        'clear',
        'delete',
        'delete dead',
        'depth',
        'drain',
        'enqueue',
      ],
      ...[
        'expect',
        'extend',
        'fail',
        'get',
        'gone',
        'held',
        'list',
        'list dead',
        'open',
        'pause',
        'queues',
        'remove worker',
        'reopen',
        'resume',
      ],
      ...['revive', 'runNow', 'set fields', 'setLimits', 'settle', 'watch', 'workers'],
    ].sort(),
  )
  const ends = commands
    .flatMap((command) => (command.verb === 'settle' ? command.items : []))
    .map(({ end }) => end.kind)
  expect([...new Set(ends)].sort()).toEqual(['bury', 'cancel', 'complete', 'release', 'retry'])
})
