/** The administration of a Postgres store's throttles, and of holds and pauses of groups. What it changes raises the version of the scope. */

import { groupRules, rulesIn, type Throttle, type ThrottleRule } from '../../../core/queue/throttle.js'
import type {
  GroupRates,
  HoldsQuery,
  StoredHold,
  StoredHolds,
  ThrottleState,
  Throttles,
} from '../../contract/throttles.js'
import { refuseRates } from '../../rules/throttle/own-rates.js'
import { throttleState } from '../../rules/throttle/throttle-state.js'
import { changedBy } from '../../rules/throttle/throttle-subjects.js'
import type { PostgresConnection } from '../client/postgres-connection.js'
import { countGroups, listHolds, listRates, pauseGroup, releaseHolds, tuneScope } from '../limits/limit-functions.js'
import { LimitedQueue } from '../limits/limited-queue.js'
import { type LimitsLook, spansOf } from '../limits/limits-look.js'
import { lookAtLimits } from '../limits/look-function.js'
import { ringFreed } from '../work/limited-ring.js'
import type { NumberedQueue, PostgresQueues } from '../work/postgres-settings.js'

/** A throttle that it takes to be there. */
type Tuned = LimitedQueue & { readonly throttle: NonNullable<LimitedQueue['throttle']> }

export class PostgresThrottles implements Throttles {
  readonly #connection: PostgresConnection
  readonly #queues: PostgresQueues
  readonly #ready: <T>(call: () => Promise<T>) => Promise<T>

  /** `underWay`: makes a call of the open store. */
  constructor(
    connection: PostgresConnection,
    queues: PostgresQueues,
    underWay: <T>(call: () => Promise<T>) => Promise<T>,
  ) {
    this.#connection = connection
    this.#queues = queues
    this.#ready = underWay
  }

  state(name: string, group?: string): Promise<ThrottleState | undefined> {
    return this.#ready(async () => {
      const queue = await this.#named(name)
      const limited = await this.#look(queue, group)
      const { throttle, moment } = limited
      if (throttle === undefined) return undefined
      const { mono } = moment
      const { settings } = throttle
      const state = throttleState(settings, throttle, mono, group)
      const hasGroups = groupRules(settings) !== undefined
      if (hasGroups) throttle.groups(mono)
      const questions = JSON.stringify(limited.counters.questions)
      const answer = await this.#connection.call(countGroups, [settings.scope, questions])
      const { queues, groups } = answer as { queues: string[]; groups: number }
      return {
        ...state,
        queues,
        forMs: Math.max(state.forMs, limited.heldUntil(group) - mono),
        ...(hasGroups ? { groups } : {}),
      }
    })
  }

  set(name: string, rules: readonly ThrottleRule[], by?: Throttle['by']): Promise<void> {
    return this.#ready(() =>
      this.#tune(name, undefined, (limited) => {
        const changed = changedBy(name, limited.throttle?.settings, by)
        limited.throttle!.change(rules, changed)
      }),
    )
  }

  setRate(name: string, group: string, rules: readonly ThrottleRule[] | undefined): Promise<void> {
    return this.#ready(() =>
      this.#tune(name, { group, spans: rules && spansOf(rules) }, (limited) => {
        refuseRates(name, limited.throttle?.settings)
        limited.throttle!.setRate(group, rules)
      }),
    )
  }

  rates(name: string, limit: number): Promise<GroupRates> {
    return this.#ready(async () => {
      const { throttle } = await this.#look(await this.#named(name))
      if (throttle === undefined) return { rates: [], total: 0 }
      const rows = (await this.#connection.call(listRates, [throttle.row.scope, limit])) as [string, string][]
      const rates = rows.map(([group, rules]) => ({ group, rules: rulesIn(rules) }))
      return { rates, total: throttle.settings.own?.groups ?? 0 }
    })
  }

  holds(name: string, { groups, limit }: HoldsQuery): Promise<StoredHolds> {
    return this.#ready(async () => {
      const { qid } = await this.#named(name)
      const answer = await this.#connection.call(listHolds, [qid, groups ?? null, limit])
      const { whole, paused, held, total } = answer as {
        whole: number | null
        paused: string[]
        held: [string, number][]
        total: number
      }
      const holds: StoredHold[] = [
        ...(whole === null ? [] : [{ forMs: whole }]),
        ...paused.map((group) => ({ group })),
        ...held.map(([group, forMs]) => ({ group, forMs })),
      ]
      return { holds: holds.slice(0, limit), total }
    })
  }

  release(name: string, group?: string): Promise<number> {
    return this.#ready(async () => {
      const ended = await this.#inShards(name, ({ qid }) => this.#connection.call(releaseHolds, [qid, group ?? null]))
      await this.#inShards(name, async ({ qid }) => ringFreed(this.#connection, qid))
      return Math.max(...(ended as number[]))
    })
  }

  pause(name: string, group: string): Promise<void> {
    return this.#ready(async () => {
      await this.#inShards(name, ({ qid }) => this.#connection.call(pauseGroup, [qid, group, true]))
    })
  }

  resume(name: string, group: string): Promise<void> {
    return this.#ready(async () => {
      await this.#inShards(name, ({ qid }) => this.#connection.call(pauseGroup, [qid, group, false]))
      await this.#inShards(name, async ({ qid }) => ringFreed(this.#connection, qid))
    })
  }

  /** Limits are of the whole queue, but each shard has lanes of its own. */
  async #inShards<T>(name: string, call: (shard: NumberedQueue) => Promise<T>): Promise<T[]> {
    return (await this.#queues.everywhere(name, (shards) => Promise.all(shards.map(call)))).flat()
  }

  async #named(name: string): Promise<NumberedQueue> {
    return (await this.#queues.named([name]))[0]!
  }

  async #look(queue: NumberedQueue, group?: string): Promise<LimitedQueue> {
    const asked = [queue.qid, 0, false, Number.MAX_SAFE_INTEGER, group === undefined ? [] : [group], false, null]
    return new LimitedQueue((await this.#connection.call(lookAtLimits, asked)) as LimitsLook)
  }

  /** Changes the throttle; begins anew if its scope changes meanwhile. Jobs that it has shut are open again. */
  async #tune(
    name: string,
    rate: { readonly group: string; readonly spans: unknown } | undefined,
    change: (limited: LimitedQueue) => void,
  ): Promise<void> {
    const queue = await this.#named(name)
    for (;;) {
      const limited = await this.#look(queue, rate?.group)
      change(limited)
      const { row } = (limited as Tuned).throttle
      const { key, version } = limited.look.limits
      const own = rate && limited.counters.of(row.scope, rate.group)
      const of = rate === undefined ? null : JSON.stringify({ ...rate, rules: own ?? null })
      const qids = await this.#connection.call(tuneScope, [
        key,
        version,
        JSON.stringify(limited.changes(rate === undefined)),
        of,
      ])
      if (qids === null) continue
      for (const qid of qids as number[]) ringFreed(this.#connection, qid)
      return
    }
  }
}
