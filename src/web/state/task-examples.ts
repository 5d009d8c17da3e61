/**
 * The task examples: an input for each task of a queue, as its schema describes it, or as its latest job has it: something to
 * begin with for who enqueues a job by hand.
 */

import type { AnyTask } from '../../core/task/any-task.js'
import { defined } from '../../core/values/defined.js'
import type { MillWindow } from '../mill-window.js'

interface TaskExample {
  readonly name: string
  /** Absent if nothing is known of its inputs. */
  readonly example?: unknown
}

/** The jobs of the queue that are looked at. */
const mostJobs = 50

/** The tasks that the mill declares for the queue, in their order. */
export async function taskExamples(window: MillWindow, queue: string): Promise<TaskExample[]> {
  const admin = await window.known(queue)
  const tasks = [...window.mill.tasks.values()].filter((task) => task.queue === queue)
  const described = tasks.map((task) => schemaExample(task))
  const { records } = await window.mill.adminParts.look()
  const needsJobs = records !== undefined && described.includes(undefined)
  const { jobs } = needsJobs ? await admin.jobs.list({ limit: mostJobs }) : { jobs: [] }
  return tasks.map((task, i) => {
    if (described[i] !== undefined) return { name: task.name, example: described[i] }
    const latest = jobs.find(window.isOfTask(task.name))
    const { input, payloads } = latest === undefined ? {} : window.shown(latest)
    return { name: task.name, ...defined({ example: input ?? payloads?.at(-1)?.input }) }
  })
}

/** The JSON Schema of an input, as far as it is looked at. */
interface InputSchema {
  readonly type?: string | readonly string[]
  readonly const?: unknown
  readonly default?: unknown
  readonly examples?: readonly unknown[]
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly InputSchema[]
  readonly oneOf?: readonly InputSchema[]
  readonly allOf?: readonly InputSchema[]
  readonly properties?: Readonly<Record<string, InputSchema>>
  readonly required?: readonly string[]
  readonly items?: InputSchema
  readonly format?: string
  readonly minimum?: number
  readonly $ref?: string
  readonly $defs?: Readonly<Record<string, InputSchema>>
}

interface DescribedSchema {
  /** Standard JSON Schema, which a schema may have beside Standard Schema. It may throw. */
  readonly jsonSchema?: { readonly input?: (options: { readonly target: string }) => unknown }
}

/** Undefined for a task whose schema does not describe itself. */
function schemaExample({ input }: AnyTask): unknown {
  const { jsonSchema } = (input?.['~standard'] ?? {}) as DescribedSchema
  try {
    const schema = jsonSchema?.input?.({ target: 'draft-2020-12' })
    return typeof schema === 'object' && schema !== null ? exampleOf(schema as InputSchema) : undefined
  } catch {
    return undefined
  }
}

/** Deeper parts are left out: a schema may contain itself. */
const deepest = 6

const texts: Readonly<Record<string, string>> = {
  'date-time': '2026-12-24T18:00:00Z',
  date: '2026-12-24',
  email: 'ada@example.com',
  uri: 'https://example.com/',
  uuid: '00000000-0000-4000-8000-000000000000',
}

/** A value that fits the schema, or nearly so; undefined if nothing can be said. Pure. */
export function exampleOf(schema: InputSchema, root: InputSchema = schema, depth = 0): unknown {
  const inner = (one: InputSchema) => exampleOf(one, root, depth + 1)
  if (depth > deepest) return undefined
  const given = [schema.examples?.[0], schema.default, schema.const, schema.enum?.[0]].find((one) => one !== undefined)
  if (given !== undefined) return given
  const name = schema.$ref?.match(/^#\/\$defs\/(.+)$/)?.[1]
  if (name !== undefined) return root.$defs?.[name] && inner(root.$defs[name])
  const [choice] = schema.anyOf ?? schema.oneOf ?? []
  if (choice !== undefined) return inner(choice)
  if (schema.allOf !== undefined) return Object.assign({}, ...schema.allOf.map(inner))
  switch (typeof schema.type === 'string' ? schema.type : schema.type?.[0]) {
    case 'object': {
      const { properties = {}, required = Object.keys(properties) } = schema
      const parts = Object.entries(properties).filter(([key]) => required.includes(key))
      return defined(Object.fromEntries(parts.map(([key, part]) => [key, inner(part)])))
    }
    case 'array': {
      const item = schema.items && inner(schema.items)
      return item === undefined ? [] : [item]
    }
    case 'string':
      return texts[schema.format ?? ''] ?? 'text'
    case 'integer':
    case 'number':
      return schema.minimum ?? 0
    case 'boolean':
      return false
    case 'null':
      return null
    default:
      return undefined
  }
}
