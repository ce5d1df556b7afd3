/** What every launcher of an agent shares. */
import type { Clock } from '../../base/clock/clock.ts';
import type { Logger } from '../../base/log/log.ts';
import type { Client } from '../../client/client.ts';
import type { EventRecorder } from '../../client/events/recorder.ts';
import type { NodeFacts, SmbiosConfig } from '../../domain/machine/machine-plan.ts';
import type { ImageStore } from '../image/image-store.ts';
import type { Tombstones } from './vm-record.ts';

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
  /** Instead of what the cluster says. */
  readonly smbios?: SmbiosConfig;
  readonly hostIP: string;
  readonly vmsDirectory: string;
  readonly addressesDirectory: string;
  readonly claimsDirectory: string;
  readonly hostDiskRoots: readonly string[];
}
