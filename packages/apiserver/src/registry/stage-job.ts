/**
 * What is sent to another thread for one stage of a large write, and what comes back: plain data, objects as JSON bytes.
 * Nothing of one job is kept for the next, so a thread may end at any time.
 */

import type { FieldError } from '@coracle/apimachinery/meta/status';
import type { Decision } from '../cache/object-store.ts';
import type { StageResource } from './stage-resource.ts';
import type { Admitted, SentBody, WriteClient } from './write-contract.ts';

/** The CustomResourceDefinition of a resource, as it is stored. */
export interface StageDefinition {
  readonly name: string;
  readonly revision: number;
  readonly bytes: Uint8Array;
  /** `view.currentFrom` of the resource. */
  readonly currentFrom: number | undefined;
}

interface StageContext {
  readonly resource: StageResource;
  readonly definition: StageDefinition | undefined;
  /** Every served `group/version`. */
  readonly served: readonly string[];
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** `isWhole` of the beginning of a write: no admission changes the object, so it is completed at once where it has its name. */
interface WriteContext extends StageContext {
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
  readonly manager: string;
  readonly dryRun: boolean;
}

/** Objects are JSON. */
export interface StoredBytes {
  readonly bytes: Uint8Array;
  readonly revision: number;
}

export type StageJob =
  /** A body as an object of its kind. */
  | (StageContext & {
      readonly stage: 'decode';
      readonly sent: SentBody;
      readonly dropStatus: boolean;
      readonly older: StageResource | undefined;
    })
  /** A stored object of another shape, or without today's defaults, as the resource shows it. */
  | (StageContext & { readonly stage: 'view'; readonly object: Uint8Array })
  | (WriteContext & { readonly stage: 'begin-create'; readonly sent: SentBody; readonly isWhole: boolean })
  | (WriteContext & {
      readonly stage: 'complete-create';
      readonly object: Uint8Array;
      readonly isRewritten: boolean;
    })
  | (WriteContext & {
      readonly stage: 'begin-update';
      readonly current: StoredBytes;
      /** What is wanted: as it was sent, or made out of the current object already (JSON). */
      readonly wanted: SentBody | Uint8Array;
      readonly isWhole: boolean;
      readonly pinned: boolean;
      readonly patch: boolean;
      readonly tracked: boolean;
    })
  | (WriteContext &
      Admitted & {
        readonly stage: 'complete-update';
        readonly current: StoredBytes;
        readonly object: Uint8Array;
        readonly patch: boolean;
        readonly tracked: boolean;
      });

/** An object's JSON but for its revision, and the whole of it where it is another than the completed one. */
export interface FormBytes {
  readonly before: Uint8Array;
  readonly after: Uint8Array;
  readonly whole: Uint8Array | undefined;
}

export interface StageResult {
  readonly object: Uint8Array;
  readonly warnings: readonly string[];
  /** Of the beginning of a create. */
  readonly isVersioned?: boolean;
  /** Of the beginning of an update. */
  readonly errors?: readonly FieldError[];
  readonly pinned?: boolean;
  /** Of a completion, also one right after the beginning. */
  readonly decision?: Decision['type'];
  /** Of a decision to put. */
  readonly form?: FormBytes;
}

/**
 * Does a stage on another thread, in turn with those of other owners. Rejects with the ApiError that the stage throws, 429
 * where too many wait, 400 where it takes too much time or memory, and with the signal's reason.
 */
export type RunStage = (job: StageJob, client: WriteClient | undefined) => Promise<StageResult>;
