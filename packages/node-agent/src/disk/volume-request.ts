/** What preparing a volume needs, and the error that ends in the status of the VMI. */

import type { ReadonlyPod } from '@coracle/apimachinery/types/types';
import type { Client } from '@coracle/client/client';
import type { ReadonlyVmi } from '@coracle/kubevirt/kinds/kinds';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { ImageStore } from '../image/image-store.ts';
import type { Pool } from '../storage/pool.ts';
import type { SavedFiles } from './saved-files.ts';

export interface VolumeRequest {
  readonly vmi: ReadonlyVmi;
  readonly pod: ReadonlyPod;
  /** The directory of the VM. */
  readonly directory: string;
  readonly images: ImageStore;
  readonly client: Client;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Directories below which hostDisk images may lie; none = the feature is off. */
  readonly hostDiskRoots: readonly string[];
  /** Where the contents of claims without a local path of their own are kept. */
  readonly pool: Pool;
  /** Name of the node, by which the pool knows who has a volume. */
  readonly nodeName: string;
  /** What a saved guest had: it finds that again, and not what its volumes would give to a new one. */
  readonly saved?: SavedFiles;
  /** Called at pulls: volume or 'kernel', and what happened. */
  readonly onImage?: (event: ImageEvent) => void;
}

export interface ImageEvent {
  readonly type: 'pulling' | 'pulled' | 'present';
  /** Volume name; '' for the kernel. */
  readonly volume: string;
  readonly image: string;
  readonly digest: string;
}

/** A volume that cannot be made. `retry` when waiting may help (an object is missing, a pull failed). */
export class VolumeError extends Error {
  /** CamelCase, for conditions and container statuses. */
  readonly reason: string;
  readonly volume: string;
  constructor(reason: string, volume: string, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = 'VolumeError';
    this.reason = reason;
    this.volume = volume;
  }
}

/** The error of a volume that has to wait for something, or cannot be at all. */
export const failedMount = (volume: string, why: string, cause?: unknown): VolumeError =>
  new VolumeError('FailedMount', volume, `volume ${volume}: ${why}`, { cause });
