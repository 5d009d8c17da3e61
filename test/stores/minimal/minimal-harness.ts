/** The harness of the minimal store. Its service has a clock that stands; nobody can look into it, set its clock or start it anew. */

import { defaultStartAt, type HarnessMaker, ManualClock, UnseenError } from 'millrace/store-testing'
import { MessageService } from './message-service.js'
import { MinimalStore } from './minimal-store.js'

export const minimalHarness: HarnessMaker = async (options) => {
  const clock = new ManualClock(options?.startAt ?? defaultStartAt)
  const now = () => clock.now()
  const service = new MessageService(now)
  const handles: MinimalStore[] = []
  const unseen = (what: string) => async (): Promise<never> => {
    throw new UnseenError(what)
  }
  return {
    name: 'minimal',
    async open() {
      const store = new MinimalStore(service, now)
      handles.push(store)
      return store
    },
    async advance(ms) {
      clock.advance(ms)
    },
    step: unseen('nobody can set the clock of the service'),
    restart: unseen('the service never says that it was started anew'),
    dump: unseen('nobody can look into the service'),
    audit: unseen('the service keeps no audit'),
    async close() {
      for (const store of handles) await store.close()
    },
  }
}
