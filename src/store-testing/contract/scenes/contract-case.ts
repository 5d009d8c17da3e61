/**
 * A contract case: one claim about every store, with a test of it. It knows no test runner and throws if the claim does
 * not hold.
 */

import type { Store } from '../../../stores/contract/store.js'
import { type HarnessMaker, type StoreHarness, UnseenError } from '../../harness/store-harness.js'
import { JoinScene } from './join-scene.js'
import { OrderedScene } from './ordered-scene.js'
import { Scene } from './scene.js'

export interface ContractCase {
  readonly title: string
  /** True, or the reason why the case says nothing about this store. */
  readonly needs?: (store: Store) => true | string
  run(harness: StoreHarness): Promise<void>
}

export interface ContractConcern {
  readonly concern: string
  readonly cases: readonly ContractCase[]
}

/** A requirement of a case: true, or the reason why the case says nothing about the store. */
type Need = (store: Store) => true | string

export const records: Need = (store) => store.records !== undefined || 'the store cannot look jobs up'
export const workers: Need = (store) => store.workers !== undefined || 'the store keeps no registry of workers'
export const live: Need = (store) => store.live !== undefined || 'the store tells nobody what happens'
export const history: Need = (store) => store.history !== undefined || 'the store keeps no history'
export const priority: Need = (store) => store.traits.priority || 'the store knows no priorities'
export const throttled: Need = (store) => store.traits.throttled || 'the store has no throttles'
export const joins: Need = (store) => store.joins !== undefined || 'no job of the store waits for others'
export const steps: Need = (store) => store.steps !== undefined || 'no job of the store keeps the steps of its run'
export const deaths: Need = (store) => store.deaths !== undefined || 'no death in the store waits to be reported'
export const scheduled: Need = (store) => store.schedules !== undefined || 'the store keeps no schedules'
export const groups: Need = ({ traits }) =>
  (traits.groups && traits.inTurns) || (traits.groups ? 'the store gives groups no turns' : 'the store knows no groups')
export const limited: Need = (store) => store.traits.limited || 'the store does not bound what runs'
export const ordered: Need = ({ traits }) =>
  (traits.ordered && traits.merges) ||
  (traits.ordered ? 'the store merges no payloads' : 'the store has no ordered queues')
export const remote: Need = (store) => store.traits.remote || 'the store is no server that could start anew'
export const inOrder: Need = (store) => store.traits.inOrder || 'the store keeps no order'
export const exactEnqueue: Need = (store) => store.traits.exactEnqueue || 'the store adds whatever is sent'
export const expires: Need = (store) => store.traits.expires || 'jobs of the store do not expire'
export const hasFields: Need = ({ traits }) => traits.fields || 'a new job of the store has no fields'
export const fenced: Need = (store) => store.traits.fenced || 'the store cannot refuse a claim that was taken over'
export const tellsCrashes: Need = (store) => store.traits.tellsCrashes || 'the store cannot tell how a run ended'
export const rings: Need = (store) => store.traits.rings || 'the store wakes nobody by a ring'
export const exactDepth: Need = (store) => store.traits.exactDepth || 'the store counts jobs only roughly'

/** Nothing is open before the case opens it: the place of a queue may depend on the limits of its first opening. */
export const firstUse: Need = () => true

type CaseBody<S extends Scene> = (scene: S) => Promise<void>
type UntitledCase = Omit<ContractCase, 'title'>
/** The cases of a concern by title. One whose needs or scene differ from the others is a `plainCase` or an `orderedCase`. */
type Cases<S extends Scene> = Readonly<Record<string, CaseBody<S> | UntitledCase>>

/** A concern whose cases have a plain queue, and these needs. */
export function plainConcern(concern: string, needs: readonly Need[], cases: Cases<Scene>): ContractConcern {
  return { concern, cases: titled(cases, (run) => plainCase(needs, run)) }
}

/** A concern whose cases have an ordered queue, and these needs. */
export function orderedConcern(concern: string, needs: readonly Need[], cases: Cases<OrderedScene>): ContractConcern {
  return { concern, cases: titled(cases, (run) => orderedCase(needs, run)) }
}

/** A concern whose cases have a queue of joins and one of their members. */
export function joinConcern(concern: string, needs: readonly Need[], cases: Cases<JoinScene>): ContractConcern {
  return { concern, cases: titled(cases, (run) => joinCase(needs, run)) }
}

/** A case with a queue of joins and one of their members, and needs in place of those of its concern. */
export function joinCase(needs: readonly Need[], run: CaseBody<JoinScene>): UntitledCase {
  return { needs: allOf([joins, ...needs]), run: async (on) => run(await JoinScene.on(on)) }
}

/** A case with a plain queue, and needs in place of those of its concern. */
export function plainCase(needs: readonly Need[], run: CaseBody<Scene>): UntitledCase {
  return { needs: allOf(needs), run: async (harness) => run(await Scene.on(harness, isOpen(needs))) }
}

/** A case with an ordered queue, and needs in place of those of its concern. It needs `ordered` first if they leave it out. */
export function orderedCase(needs: readonly Need[], run: CaseBody<OrderedScene>): UntitledCase {
  const all = needs.includes(ordered) ? needs : [ordered, ...needs]
  return { needs: allOf(all), run: async (harness) => run(await OrderedScene.on(harness, isOpen(needs))) }
}

function titled<S extends Scene>(cases: Cases<S>, caseOf: (run: CaseBody<S>) => UntitledCase): ContractCase[] {
  return Object.entries(cases).map(([title, one]) => ({ title, ...(typeof one === 'function' ? caseOf(one) : one) }))
}

function isOpen(needs: readonly Need[]): boolean {
  return !needs.includes(firstUse)
}

function allOf(needs: readonly Need[]): Need {
  return (store) => needs.map((need) => need(store)).find((answer) => answer !== true) ?? true
}

/**
 * Runs one case on a harness of its own. Resolves with the reason why it was skipped, or with undefined if the claim
 * holds; throws if it does not.
 */
export async function runContractCase(
  makeHarness: HarnessMaker,
  contractCase: ContractCase,
): Promise<string | undefined> {
  const harness = await makeHarness()
  try {
    const needed = contractCase.needs?.(await harness.open()) ?? true
    if (needed !== true) return needed
    await contractCase.run(harness)
    return undefined
  } catch (error) {
    if (error instanceof UnseenError) return error.message
    throw error
  } finally {
    await harness.close()
  }
}
