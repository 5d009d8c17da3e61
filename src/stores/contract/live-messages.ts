/** The facet `live`: messages from processes that have something to tell of a queue to those that watch it now. Nothing is kept. */

export interface LiveMessages {
  /**
   * Tells `message`, at most 1 MiB of text, to all who watch the queue, in whatever process: at most once, in the order of the
   * calls of one handle. Without a message nothing is told. Resolves with whether anybody watches it, and then only did it
   * cost anything beyond asking.
   */
  publish(queue: string, message?: string): Promise<boolean>
  /**
   * Hears what is published of the queue from the moment this resolves until `signal` aborts or the store is closed. An outage
   * is bridged: `heard` is then, as wherever messages may have been missed, called once with undefined. Rejects where it
   * cannot begin.
   */
  watch(queue: string, heard: (message: string | undefined) => void, signal: AbortSignal): Promise<void>
}
