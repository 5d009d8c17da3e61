import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { confirm } from '#src/cli/terminal/confirmation.js'

/** What a person at a terminal sees, and what came of the answer; null: they leave. */
async function asked(answer: string | null) {
  const [input, output] = [tty(), tty()]
  const shown = text(output)
  input.end(answer ?? '')
  const outcome = await confirm(async () => 'Go on?', {}, { input, output }).then(
    () => 'confirmed',
    (error: Error) => error.message,
  )
  output.end()
  return { outcome, shown: await shown }
}

function tty() {
  return Object.assign(new PassThrough(), { isTTY: true })
}

const refused = 'not confirmed; nothing was changed.'

describe('a confirmation', () => {
  it.each(['y\n', 'Yes\n', ' y \n'])('is given by %j', async (answer) => {
    const { outcome, shown } = await asked(answer)
    expect(outcome).toBe('confirmed')
    expect(shown).toContain('Go on? [y/N] ')
  })

  it.each(['n\n', '\n', 'yep\n', 'all\n', '\u0003', null])('is refused by %j', async (answer) => {
    expect((await asked(answer)).outcome).toBe(refused)
  })

  it.each([
    ['--yes', { yes: true }, true, true],
    ['--json', { json: true }, true, true],
    ['no terminal to read from', {}, false, true],
    ['no terminal to ask at', {}, true, false],
  ] as const)('is not requested with %s', async (_, flags, inputIsTty, outputIsTty) => {
    const input = Object.assign(new PassThrough(), { isTTY: inputIsTty })
    const output = Object.assign(new PassThrough(), { isTTY: outputIsTty })
    const question = () => Promise.reject(new Error('asked'))

    await expect(confirm(question, flags, { input, output })).resolves.toBeUndefined()
  })
})
