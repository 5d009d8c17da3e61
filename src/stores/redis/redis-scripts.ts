/** The scripts of a Redis store, made for the kind of server it runs on. */

import { changeScript } from './lua/change-script.js'
import { claimScript } from './lua/claim-script.js'
import { enqueueScript } from './lua/enqueue-script.js'
import { extendScript } from './lua/extend-script.js'
import { goneScript } from './lua/gone-script.js'
import { openScript } from './lua/open-script.js'
import {
  depthScript,
  endedScript,
  headsScript,
  heldScript,
  lookScript,
  sectionScript,
  viewScript,
} from './lua/read-scripts.js'
import { registryScript } from './lua/registry-script.js'
import { settleScript } from './lua/settle-script.js'
import { switchScript } from './lua/switch-script.js'

export function redisScripts(isCluster: boolean) {
  return {
    open: openScript(isCluster),
    enqueue: enqueueScript(isCluster),
    claim: claimScript(isCluster),
    settle: settleScript(isCluster),
    extend: extendScript(isCluster),
    change: changeScript(isCluster),
    switch: switchScript(isCluster),
    gone: goneScript(isCluster),
    view: viewScript(isCluster),
    section: sectionScript(isCluster),
    depth: depthScript(isCluster),
    heads: headsScript(isCluster),
    look: lookScript(isCluster),
    ended: endedScript(isCluster),
    held: heldScript(isCluster),
    registry: registryScript,
  }
}

export type RedisScripts = ReturnType<typeof redisScripts>
