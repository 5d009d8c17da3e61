/** The exposition text: a strict reader of OpenMetrics 1.0, and a plain one of Prometheus' text, for tests. */

export interface ReadFamily {
  readonly name: string
  readonly type: string
  readonly unit: string | undefined
  readonly help: string
  readonly samples: readonly ReadSample[]
}

export interface ReadSample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

const nameForm = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/
const suffixes: Readonly<Record<string, readonly string[]>> = {
  gauge: [''],
  counter: ['_total'],
  histogram: ['_bucket', '_sum', '_count'],
}

/** Throws an error that names the line for what OpenMetrics 1.0 does not allow. */
export function openMetricsFamilies(text: string): ReadFamily[] {
  if (!text.endsWith('\n# EOF\n')) throw new Error('the text must end with `# EOF` and a line break')
  const lines = text.slice(0, -'# EOF\n'.length).split('\n').slice(0, -1)
  const families: { name: string; type: string; unit: string | undefined; help: string; samples: ReadSample[] }[] = []
  const seen = new Set<string>()
  for (const line of lines) {
    const refuse = (why: string): never => {
      throw new Error(`${why}: ${line}`)
    }
    const [, word, name = '', rest = ''] = /^# (HELP|TYPE|UNIT) (\S+) (.*)$/.exec(line) ?? []
    const family = families.at(-1)
    if (word === 'HELP') {
      if (!nameForm.test(name) || families.some((one) => one.name === name)) refuse('a family that is told twice')
      families.push({ name, type: '', unit: undefined, help: unescaped(rest, refuse), samples: [] })
    } else if (word !== undefined) {
      if (family?.name !== name || family.samples.length > 0) refuse('a head that is not with its family')
      if (word === 'TYPE') family!.type = suffixes[rest] === undefined ? refuse('a type that is unknown') : rest
      else family!.unit = name.endsWith(`_${rest}`) ? rest : refuse('a unit that does not end the name')
    } else {
      const sample = sampleIn(line, refuse)
      if (family === undefined) refuse('a sample without a family')
      if (!suffixes[family!.type]?.some((suffix) => sample.name === `${family!.name}${suffix}`))
        refuse('a sample of another family')
      const key = JSON.stringify([sample.name, Object.entries(sample.labels).sort()])
      if (seen.has(key)) refuse('a sample that is told twice')
      seen.add(key)
      if (family!.type !== 'gauge' && !(sample.value >= 0)) refuse('a count below 0')
      family!.samples.push(sample)
    }
  }
  for (const family of families) if (family.type === 'histogram') checkHistogram(family)
  return families
}

/** By the line without its value: `millrace_jobs{queue="mail",state="dead"}`. Of either form. */
export function valuesIn(text: string): ReadonlyMap<string, number> {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]))
}

function sampleIn(line: string, refuse: (why: string) => never): ReadSample {
  const [, name, labels, value] =
    /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{((?:[a-zA-Z_]\w*="(?:[^"\\]|\\.)*",?)*)\})? ([^ ]+)$/.exec(line) ??
    refuse('no sample')
  if (labels?.endsWith(',')) refuse('a comma too many')
  const pairs = [...(labels ?? '').matchAll(/([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g)].map(
    ([, label, text]) => [label!, unescaped(text!, refuse)] as const,
  )
  if (new Set(pairs.map(([label]) => label)).size !== pairs.length) refuse('a label that is told twice')
  if (!/^[+-]?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?|Inf)$|^NaN$/.test(value!)) refuse('no number')
  return { name: name!, labels: Object.fromEntries(pairs), value: Number(value) }
}

function unescaped(text: string, refuse: (why: string) => never): string {
  return text.replace(/\\(.)/g, (_, character: string) => {
    if (character === 'n') return '\n'
    return character === '\\' || character === '"' ? character : refuse('an unknown escape')
  })
}

/** Buckets ascend, the last is infinite and has all. */
function checkHistogram({ name, samples }: ReadFamily): void {
  const bySeries = new Map<string, ReadSample[]>()
  for (const sample of samples) {
    const { le: _, ...labels } = sample.labels
    const key = JSON.stringify(labels)
    bySeries.set(key, [...(bySeries.get(key) ?? []), sample])
  }
  for (const [series, all] of bySeries) {
    const buckets = all.filter((sample) => sample.name === `${name}_bucket`)
    const bounds = buckets.map(({ labels }) =>
      labels['le'] === '+Inf' ? Number.POSITIVE_INFINITY : Number(labels['le']),
    )
    const whole = buckets.every(({ labels }) => labels['le'] === '+Inf' || /^\d+\.\d+$/.test(labels['le']!))
    const ascends = (numbers: readonly number[], least: number) =>
      numbers.every((number, i) => i === 0 || number - numbers[i - 1]! >= least)
    const count = all.find((sample) => sample.name === `${name}_count`)?.value
    if (!whole || !ascends(bounds.slice(0, -1), Number.MIN_VALUE) || bounds.at(-1) !== Number.POSITIVE_INFINITY)
      throw new Error(`${name}${series}: the bounds do not ascend to +Inf`)
    if (
      !ascends(
        buckets.map(({ value }) => value),
        0,
      ) ||
      buckets.at(-1)?.value !== count
    )
      throw new Error(`${name}${series}: the buckets are not cumulative`)
  }
}
