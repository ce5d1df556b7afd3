/** Reads the objects volumes refer to, with errors that name them. Contents never appear in messages. */

import { ApiError } from '@coracle/apimachinery/meta/status';
import { CONFIG_MAPS, SECRETS } from '@coracle/apimachinery/types/resource-types';
import { VolumeError, type VolumeRequest } from './volume-request.ts';

export type ObjectData = ReadonlyMap<string, Uint8Array>;

/** The data of a Secret; undefined when it is missing and may be. */
export async function readSecret(
  request: VolumeRequest,
  ref: { readonly name: string; readonly volume: string; readonly optional?: boolean },
): Promise<ObjectData | undefined> {
  const key = { namespace: request.vmi.metadata.namespace ?? '', name: ref.name };
  try {
    const secret = await request.client.get(SECRETS, key, { signal: request.signal });
    return new Map(
      Object.entries(secret.data ?? {}).map(([name, text]) => [name, Buffer.from(String(text), 'base64')]),
    );
  } catch (error) {
    return missing(error, 'secret', ref);
  }
}

/** The data of a ConfigMap, text and binary; undefined when it is missing and may be. */
export async function readConfigMap(
  request: VolumeRequest,
  ref: { readonly name: string; readonly volume: string; readonly optional?: boolean },
): Promise<ObjectData | undefined> {
  const key = { namespace: request.vmi.metadata.namespace ?? '', name: ref.name };
  try {
    const map = await request.client.get(CONFIG_MAPS, key, { signal: request.signal });
    return new Map<string, Uint8Array>([
      ...Object.entries(map.data ?? {}).map(([name, text]) => [name, Buffer.from(String(text), 'utf8')] as const),
      ...Object.entries(map.binaryData ?? {}).map(
        ([name, text]) => [name, Buffer.from(String(text), 'base64')] as const,
      ),
    ]);
  } catch (error) {
    return missing(error, 'configmap', ref);
  }
}

function missing(
  error: unknown,
  what: string,
  ref: { readonly name: string; readonly volume: string; readonly optional?: boolean },
): undefined {
  if (!(error instanceof ApiError)) throw error;
  if (error.code === 404 && ref.optional) return undefined;
  throw new VolumeError('FailedMount', ref.volume, `volume ${ref.volume}: ${what} ${ref.name}: ${error.message}`, {
    cause: error,
  });
}
