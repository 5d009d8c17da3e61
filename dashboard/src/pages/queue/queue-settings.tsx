/** The queue settings: the declared or stored settings, in words. */

import { Section } from '../../frame/page-head.js'
import { exactCount } from '../../words/count-words.js'
import { durationWords } from '../../words/duration-words.js'
import { safeText } from '../../words/safe-text.js'

/** Settings that are shown elsewhere on the page. */
const elsewhere = new Set(['name', 'kind', 'ordered', 'paused', 'draining', 'throttle'])

/** `claimSize` as `claim size`; the value has the unit. */
function keyWords(key: string): string {
  const words = key.replace(/Ms$/, '').replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
  return words.charAt(0).toUpperCase() + words.slice(1)
}

function valueWords(key: string, value: unknown): string {
  if (typeof value === 'number') return key.endsWith('Ms') ? durationWords(value) : exactCount(value)
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (typeof value !== 'object' || value === null) return safeText(String(value))
  const parts = Object.entries(value).map(([name, part]) => `${keyWords(name).toLowerCase()} ${valueWords(name, part)}`)
  return parts.length === 0 ? 'without a bound' : parts.join(', ')
}

export function QueueSettings({ settings }: { readonly settings: Readonly<Record<string, unknown>> }) {
  const shown = Object.entries(settings).filter(([key, value]) => !elsewhere.has(key) && value !== undefined)
  return (
    <Section title="Settings">
      <dl class="panel grid gap-x-8 px-3.5 py-2 sm:columns-2 sm:block xl:columns-3">
        {shown.map(([key, value]) => (
          <div key={key} class="flex break-inside-avoid justify-between gap-4 border-b border-line py-1.5 text-sm">
            <dt class="text-muted">{keyWords(key)}</dt>
            <dd class="text-end wrap-anywhere">{valueWords(key, value)}</dd>
          </div>
        ))}
      </dl>
    </Section>
  )
}
