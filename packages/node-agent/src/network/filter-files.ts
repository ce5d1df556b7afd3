/** Names by which QEMU, the packet filter and the agent find each other in the directory of a VM. */
import type { FilteredNetwork } from './packet-rule.ts';

export interface FilteredCard {
  /** Id of the back end: `net-0`. */
  readonly netdev: string;
  readonly network: FilteredNetwork;
  /** Ports are forwarded by UDP: answers to them are recognised by what went before. */
  readonly udp: boolean;
}

/** Written by the agent, read by the filter. */
export interface FilterConfig {
  readonly version: 1;
  readonly cards: readonly FilteredCard[];
  /** Logs that QEMU writes, names in the directory of the VM: kept short while no agent is there to do it. */
  readonly logs?: readonly string[];
}

export const FILTER_FILES = {
  config: 'net-filter.json',
  /** Which process filters. */
  process: 'net-filter-process.json',
  /** From the guest. */
  taken: (netdev: string): string => `${netdev}-taken.sock`,
  /** What may go on to its network. */
  given: (netdev: string): string => `${netdev}-given.sock`,
  /** To the guest, a copy. */
  seen: (netdev: string): string => `${netdev}-seen.sock`,
} as const;
