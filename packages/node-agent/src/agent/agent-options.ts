/** What an agent is made with. */

import type { Client } from '@coracle/client/client';
import type { NodeFacts } from '@coracle/kubevirt/rules/machine/machine-plan';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { Logger } from '@coracle/runtime/log/log';
import type { Fills } from '../fill/fills.ts';
import type { ImageStore } from '../image/image-store.ts';
import type { PeerIdentity } from '../network/peer.ts';
import type { Pool } from '../storage/pool.ts';

export interface AgentOptions {
  /** QEMU's name or path. */
  readonly binary?: string;
  /** 'tcg' leaves KVM out even where it works. */
  readonly accelerator?: 'auto' | 'tcg';
  /** Shared with other agents of this host; default: below dataDir. */
  readonly images?: ImageStore;
  readonly addressesDir?: string;
  readonly memoryDir?: string;
  /** Shared with other agents of this host as well; default: one of its own, `claims` below dataDir. */
  readonly pool?: Pool;
  /** Of that pool. */
  readonly fills?: Fills;
  /** Found out already, by another agent of this host. */
  readonly facts?: NodeFacts;
  /** Address of the node. Default 127.0.0.1. */
  readonly address?: string;
  /** Port on which `handler` is served; 0 when it is called in process only. */
  readonly servingPort?: number;
  /** PEM of the CA that the serving certificate chains to, published on the Node for virt-api to trust. */
  readonly servingCa?: string;
  /** What the node offers; default: what the host has. */
  readonly cpus?: number;
  readonly memoryBytes?: number;
  /** Agents of this host between which its cores, memory and disk are divided; 1 when absent. */
  readonly share?: number;
  /** Directories below which hostDisk images may lie; none = the feature is off. */
  readonly hostDiskRoots?: readonly string[];
  /** Guests may have ports of their address under their own number, where a VMI asks for it. */
  readonly allowsHostPorts?: boolean;
  /** Names that a client certificate must carry to call `handler` over the network. */
  readonly allowedClients?: readonly string[];
  /** The API server is not ours: it may ask what a kubelet is asked, if the cluster lets it. */
  readonly asKubelet?: boolean;
  /** What this node proves its name to other nodes with: for live migrations. Without it, or while it cannot, guests stay where they are. */
  readonly peer?: PeerIdentity;
  /** Our version, for the Node. */
  readonly version?: string;
}

export interface AgentConfig {
  readonly client: Client;
  readonly nodeName: string;
  /** Made when missing, mode 0700. One agent only. */
  readonly dataDir: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly options?: AgentOptions;
}
