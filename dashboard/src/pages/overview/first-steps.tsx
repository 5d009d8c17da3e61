/** The first steps: how to enqueue and run the first job, shown while there is none. */

import { CopyButton } from '../../parts/name-text.js'

const lines = [
  ['Enqueue a job', `npx millrace enqueue send-email '{"to":"ada@example.org"}'`],
  ['Run what waits', 'npx millrace work'],
] as const

export function FirstSteps({ title }: { readonly title: string }) {
  return (
    <div class="grid w-full max-w-2xl gap-3 py-4 text-start">
      <p class="text-center text-ink">{title}</p>
      {lines.map(([text, command]) => (
        <div key={text} class="grid gap-1">
          <span class="text-xs">{text}</span>
          <div class="flex items-center gap-2 rounded-md bg-sunk py-1.5 ps-3 pe-1.5">
            <code class="min-w-0 flex-1 overflow-x-auto font-mono text-sm whitespace-nowrap text-ink">{command}</code>
            <CopyButton text={command} what={command} />
          </div>
        </div>
      ))}
    </div>
  )
}
