/** Reads the objects volumes refer to, with errors that name them. Contents never appear in messages. */

import { ApiError } from '@coracle/apimachinery/meta/status';
import { CONFIG_MAPS, SECRETS } from '@coracle/apimachinery/types/resource-types';
import { failedMount, type VolumeRequest } from './volume-request.ts';

export type ObjectData = ReadonlyMap<string, Uint8Array>;

interface ObjectReference {
  readonly name: string;
  readonly volume: string;
  readonly optional?: boolean;
}

/** The data of a Secret; undefined when it is missing and may be. */
export async function readSecret(request: VolumeRequest, ref: ObjectReference): Promise<ObjectData | undefined> {
  const { client, signal } = request;
  const secret = await found('secret', ref, client.get(SECRETS, keyOf(request, ref), { signal }));
  return secret && new Map(bytesOf(secret.data, 'base64'));
}

/** The data of a ConfigMap, text and binary; undefined when it is missing and may be. */
export async function readConfigMap(request: VolumeRequest, ref: ObjectReference): Promise<ObjectData | undefined> {
  const { client, signal } = request;
  const map = await found('configmap', ref, client.get(CONFIG_MAPS, keyOf(request, ref), { signal }));
  return map && new Map([...bytesOf(map.data, 'utf8'), ...bytesOf(map.binaryData, 'base64')]);
}

const keyOf = ({ vmi }: VolumeRequest, { name }: ObjectReference) => ({
  namespace: vmi.metadata.namespace ?? '',
  name,
});

const bytesOf = (fields: Readonly<Record<string, unknown>> | undefined, encoding: BufferEncoding) =>
  Object.entries(fields ?? {}).map(([name, text]) => [name, Buffer.from(String(text), encoding)] as const);

async function found<T>(kind: string, ref: ObjectReference, answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.code === 404 && ref.optional) return undefined;
    throw failedMount(ref.volume, `${kind} ${ref.name}: ${error.message}`, error);
  }
}
