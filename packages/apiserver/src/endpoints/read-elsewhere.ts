/**
 * Large bodies that are no objects (options of a delete) in YAML or protobuf: another thread reads them and hands back plain
 * JSON, which is read in pieces here. Without one they are read where everything runs.
 */
import type { Pause } from '@coracle/apimachinery/meta/pause';
import { type ParsedJson, parseJsonInPieces } from '@coracle/apimachinery/schema/parse-json';
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

/** Reads a body on another thread, and what comes back in pieces. */
export async function parseElsewhere(
  read: (body: LargeBody) => ReturnType<ReadElsewhere>,
  body: LargeBody,
  pause: Pause,
): Promise<ParsedJson> {
  const { json, duplicates } = await read(body);
  const { value } = await parseJsonInPieces(json, pause);
  return { value, duplicates: () => [...duplicates] };
}
