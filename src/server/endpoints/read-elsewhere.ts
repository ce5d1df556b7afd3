/**
 * Large bodies that no reader of ours takes in pieces (YAML, protobuf): a host with threads reads them on another one
 * and hands back plain JSON, which is read in pieces here. Without such a host they are read where everything runs.
 */
import type { ResourceInfo } from '../../api/kinds/resource.ts';
import type { Pause } from '../../api/meta/steps.ts';
import { type ParsedJson, parseJsonInPieces, parseYamlInPieces } from '../../api/schema/parse-json.ts';

/** What of a resource a reader has to know, and nothing that could not be sent to another thread. */
export interface BodyKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly resource: string;
  readonly custom: boolean;
}

export interface LargeBody {
  readonly type: string;
  readonly bytes: Uint8Array;
  readonly kind: BodyKind | undefined;
}

/** Reads a body, in turn with those of other owners; rejects with ApiError as the decoder of its type does. */
export type ReadElsewhere = (
  body: LargeBody,
  owner?: string,
) => Promise<{ readonly json: Uint8Array; readonly duplicates: readonly string[] }>;

/** What is sent along of a resource. */
export const bodyKindOf = ({ group, version, kind, resource, strategy }: ResourceInfo): BodyKind => ({
  group,
  version,
  kind,
  resource,
  custom: strategy.custom,
});

/** Reads a body on another thread, and what comes back in pieces. */
export async function parseElsewhere(read: ReadElsewhere, body: LargeBody, pause: Pause): Promise<ParsedJson> {
  const { json, duplicates } = await read(body);
  const { value } = await parseJsonInPieces(json, pause);
  return { value, duplicates: () => [...duplicates] };
}

/** A large YAML document, which often is JSON. Throws ApiError 400 as `parseYaml`. */
export async function parseLargeYaml(
  bytes: Uint8Array,
  { read, pause }: { readonly read: ReadElsewhere | undefined; readonly pause: Pause },
): Promise<ParsedJson> {
  if (read === undefined) return parseYamlInPieces(new TextDecoder().decode(bytes), pause);
  if (startsWithBrace(bytes)) {
    try {
      const parsed = await parseJsonInPieces(bytes, pause);
      if (parsed.duplicates().length === 0) return { ...parsed, yaml: true };
    } catch (error) {
      // Flow-style YAML may start with a brace as well.
      if (!(error as Error).message.startsWith('json parse error')) throw error;
    }
  }
  return { ...(await parseElsewhere(read, { type: 'application/yaml', bytes, kind: undefined }, pause)), yaml: true };
}

function startsWithBrace(bytes: Uint8Array): boolean {
  const first = bytes.find((byte) => byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09);
  return first === 0x7b;
}
