/** A confirmation: the question before something is destroyed that nobody listed by name. Only a person is asked. */

import { createInterface } from 'node:readline'
import { OperationError } from './exit-code.js'

interface Prompt {
  readonly input: NodeJS.ReadableStream & { readonly isTTY?: boolean }
  readonly output: NodeJS.WritableStream & { readonly isTTY?: boolean }
}

/**
 * Goes on where `y` or `yes` is answered; without a terminal, or where `yes` was said already, nobody is asked. It asks on
 * stderr: stdout may be read by a program.
 * Throws `OperationError` for every other answer, and where the person leaves.
 */
export async function confirm(
  question: () => Promise<string>,
  { yes = false, json = false }: { readonly yes?: boolean; readonly json?: boolean },
  { input, output }: Prompt = { input: process.stdin, output: process.stderr },
): Promise<void> {
  if (yes || json || input.isTTY !== true || output.isTTY !== true) return
  const words = await question()
  const asking = createInterface({ input, output })
  const answer = await new Promise<string | undefined>((resolve) => {
    asking.once('line', resolve)
    asking.once('close', () => resolve(undefined))
    asking.setPrompt(`${words} [y/N] `)
    asking.prompt()
  })
  asking.close()
  // The error must not stand on the line of the question.
  if (answer === undefined) output.write('\n')
  if (!/^y(?:es)?$/i.test(answer?.trim() ?? '')) throw new OperationError('not confirmed; nothing was changed.')
}
