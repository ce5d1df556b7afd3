/** The aggregation layer of a server that passes nothing on. */
import type { Aggregator } from './aggregator.ts';

/** Knows no other server. */
export const NO_AGGREGATION: Aggregator = {
  remote: () => undefined,
  proxy: () => Promise.reject(new Error('this server passes no requests on')),
  ask: () => Promise.reject(new Error('this server passes no requests on')),
  generation: () => 0,
  discovery: () => ({ remote: [], stale: new Set(), priorityOf: () => undefined }),
  openApi: () => [],
  swaggers: () => [],
  start() {},
  stop() {},
};
