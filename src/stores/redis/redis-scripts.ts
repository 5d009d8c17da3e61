/** The scripts of a Redis store, made for the kind of server it runs on. */

import { adoptScript } from './lua/adopt-script.js'
import { changeOrderedScript } from './lua/change-ordered-script.js'
import { changeScript } from './lua/change-script.js'
import { claimOrderedGatedScript, claimOrderedScript } from './lua/claim-ordered-script.js'
import { claimGatedScript, claimScript } from './lua/claim-script.js'
import { enqueueOrderedScript } from './lua/enqueue-ordered-script.js'
import { enqueueScript } from './lua/enqueue-script.js'
import { extendScript } from './lua/extend-script.js'
import { goneOrderedScript, goneScript } from './lua/gone-script.js'
import { layoutScript } from './lua/layout-script.js'
import { openScript } from './lua/open-script.js'
import {
  depthOrderedScript,
  endedOrderedScript,
  idsOrderedScript,
  lookOrderedScript,
  sectionOrderedScript,
  viewOrderedScript,
} from './lua/read-ordered-scripts.js'
import {
  depthScript,
  endedScript,
  groupsScript,
  headsScript,
  heldScript,
  lookScript,
  sectionScript,
  viewScript,
} from './lua/read-scripts.js'
import { registryScript } from './lua/registry-script.js'
import { scopeScript } from './lua/scope-script.js'
import { settleOrderedScript } from './lua/settle-ordered-script.js'
import { settleScript } from './lua/settle-script.js'
import { failOrderedScript, switchScript } from './lua/switch-script.js'

export function redisScripts(isCluster: boolean) {
  return {
    open: openScript(isCluster),
    enqueue: enqueueScript(isCluster),
    enqueueOrdered: enqueueOrderedScript(isCluster),
    claim: claimScript(isCluster),
    claimGated: claimGatedScript(isCluster),
    claimOrdered: claimOrderedScript(isCluster),
    claimOrderedGated: claimOrderedGatedScript(isCluster),
    settle: settleScript(isCluster),
    settleOrdered: settleOrderedScript(isCluster),
    extend: extendScript(isCluster),
    change: changeScript(isCluster),
    changeOrdered: changeOrderedScript(isCluster),
    switch: switchScript(isCluster),
    adopt: adoptScript(isCluster),
    gone: goneScript(isCluster),
    goneOrdered: goneOrderedScript(isCluster),
    view: viewScript(isCluster),
    viewOrdered: viewOrderedScript(isCluster),
    section: sectionScript(isCluster),
    sectionOrdered: sectionOrderedScript(isCluster),
    depth: depthScript(isCluster),
    depthOrdered: depthOrderedScript(isCluster),
    heads: headsScript(isCluster),
    look: lookScript(isCluster),
    lookOrdered: lookOrderedScript(isCluster),
    ended: endedScript(isCluster),
    endedOrdered: endedOrderedScript(isCluster),
    held: heldScript(isCluster),
    groups: groupsScript(isCluster),
    failOrdered: failOrderedScript(isCluster),
    idsOrdered: idsOrderedScript(isCluster),
    layout: layoutScript,
    registry: registryScript,
    scope: scopeScript,
  }
}

export type RedisScripts = ReturnType<typeof redisScripts>
