/**
 * Large bodies that are no objects (options of a delete) in YAML or protobuf: another thread reads them and hands back plain
 * JSON, which is read in pieces here. Without one they are read where everything runs.
 */
import type { WriteClient } from '../registry/write-contract.ts';

export interface LargeBody {
  /** Media type, without parameters. */
  readonly type: string;
  readonly bytes: Uint8Array;
}

/** Reads a body, in turn with those of other owners; rejects with ApiError as the decoder of its type does. */
export type ReadElsewhere = (
  body: LargeBody,
  client?: WriteClient,
) => Promise<{ readonly json: Uint8Array; readonly duplicates: readonly string[] }>;
