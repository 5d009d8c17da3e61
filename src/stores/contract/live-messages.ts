/**
 * The facet `live`: messages about a queue from processes that work on it to processes that watch it now. Nothing is
 * kept.
 */

export interface LiveMessages {
  /**
   * Sends `message`, at most 1 MiB of text, to all watchers of the queue in any process: at most once, in the order of
   * this handle's calls. Without a message it only asks. Resolves with whether anybody watches; if nobody does, the
   * call costs no more than asking.
   */
  publish(queue: string, message?: string): Promise<boolean>
  /**
   * Calls `heard` with each message of the queue, from the moment this resolves until `signal` aborts or the store is
   * closed. The watch survives an outage. After any moment in which messages may have been missed, it calls `heard`
   * once with undefined. Rejects if it cannot begin.
   */
  watch(queue: string, heard: (message: string | undefined) => void, signal: AbortSignal): Promise<void>
}
