/** The SQS of the demo: an emulator in this process, unless the address names an endpoint. Amazon's own is never asked. */

/** A service to work on, and what ends it. */
export interface Service {
  readonly address: string
  stop(): Promise<void>
}

export async function sqsAt(given: string): Promise<Service> {
  const address = new URL(given)
  if (address.searchParams.has('endpoint')) return { address: given, stop: async () => {} }
  const { startFauxqs } = await import('fauxqs')
  const emulator = await startFauxqs({ port: 0, host: '127.0.0.1', logger: false })
  address.searchParams.set('endpoint', `http://127.0.0.1:${emulator.port}`)
  // Its calls cost nothing: what is for later is found as soon as it is due.
  address.searchParams.set('poll', 'each')
  return { address: address.href, stop: () => emulator.stop() }
}
