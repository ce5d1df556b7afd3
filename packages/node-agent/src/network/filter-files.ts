/** Names by which QEMU, the packet filter and the agent find each other in the directory of a VM. */
import type { DhcpOptions } from './dhcp-answer.ts';
import type { FilteredNetwork } from './packet-rule.ts';
import type { GuestHello } from './switch/switch-state.ts';

export interface FilteredCard {
  /** Id of the back end: `net-0`. */
  readonly netdev: string;
  readonly network: FilteredNetwork;
  /** Ports are forwarded by UDP: answers to them are recognised by what went before. */
  readonly udp: boolean;
}

/** Changes with what a filter does: one of another version is ended, and started anew. */
export const FILTER_VERSION = 3;

/** Written by the agent, read by the filter. */
export interface FilterConfig {
  readonly version: typeof FILTER_VERSION;
  readonly cards: readonly FilteredCard[];
  /** Card `net-0` is on the network of Pods too: what it says to the switch of the node. */
  readonly hello?: GuestHello;
  /** What that card gets by DHCP, where that is more than libslirp knows. */
  readonly dhcp?: DhcpOptions;
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
  /** From other guests. */
  brought: (netdev: string): string => `${netdev}-brought.sock`,
  /** To the guest, a copy. */
  seen: (netdev: string): string => `${netdev}-seen.sock`,
} as const;
