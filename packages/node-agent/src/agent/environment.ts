/** What every launcher of an agent shares. */

import type { ReadonlyNode, ReadonlyPod } from '@coracle/apimachinery/types/types';
import type { Client } from '@coracle/client/client';
import type { EventRecorder } from '@coracle/client/events/recorder';
import type { PodResizeDecision } from '@coracle/kubevirt/rules/live-update/pod-resize';
import type { NodeFacts } from '@coracle/kubevirt/rules/machine/machine-plan';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { Logger } from '@coracle/runtime/log/log';
import type { ImageStore } from '../image/image-store.ts';
import type { PeerIdentity } from '../network/peer.ts';
import type { Pool } from '../storage/pool.ts';
import type { Tombstones } from './launcher/vm-record.ts';

export interface AgentEnvironment {
  readonly nodeName: string;
  readonly client: Client;
  readonly clock: Clock;
  readonly log: Logger;
  readonly events: EventRecorder;
  readonly facts: NodeFacts;
  readonly images: ImageStore;
  readonly tombstones: Tombstones;
  /** Aborted when the agent stops; guests run on. */
  readonly signal: AbortSignal;
  readonly bootId: string;
  readonly binary: string;
  /** What this node proves its name to others with; without it, and while it cannot, no guest comes or goes as it runs. */
  readonly peer?: PeerIdentity;
  /** Whether this node can give a Pod on it what it asks for now. What it said 'fits' to is taken. */
  readonly decideResize: (pod: ReadonlyPod) => Promise<PodResizeDecision>;
  /** The Node as it was read last; undefined before that. */
  readonly node?: () => ReadonlyNode | undefined;
  readonly hostIP: string;
  readonly vmsDirectory: string;
  readonly addressesDirectory: string;
  /** The volumes of claims. */
  readonly pool: Pool;
  /** Where saved guests lie; agents of one host share it. */
  readonly memoryDirectory: string;
  readonly hostDiskRoots: readonly string[];
  /** Guests may have ports of their address under their own number. */
  readonly allowsHostPorts: boolean;
  /** A record of a guest of this node has changed. */
  readonly guestsChanged?: () => void;
}
