/** What a node needs to know to fetch the content of a DataVolume, with what Secrets and ConfigMaps of its namespace say. */
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { CONFIG_MAPS, SECRETS } from '@coracle/apimachinery/types/resource-types';
import { orAbsent } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import type { FillSource } from '@coracle/cluster-rules/storage/pool-calls';
import type { DataVolumeSource } from '../../rules/data-volume/data-volume-source.ts';
import { linkForNodes } from '../../rules/export/export-names.ts';
import { MissingPart } from '../resolve-data-source.ts';

type Http = Extract<DataVolumeSource, { type: 'http' }>['http'];
type Registry = Extract<DataVolumeSource, { type: 'registry' }>['registry'];

/** A header's name and value; neither may end its line. */
const HEADER = /^([!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}):[ \t]*([\t\x20-\x7e]{0,8192})$/;

export interface FillSourceReader {
  /** Both throw MissingPart. */
  http(namespace: string, http: DeepReadonly<Http>): Promise<FillSource>;
  registry(namespace: string, registry: DeepReadonly<Registry>): Promise<FillSource>;
}

/**
 * Makes the reader; nothing is cached: a Secret that was put right counts at once. `exportServer`: where nodes fetch what is
 * linked to inside the cluster.
 */
export function createFillSourceReader(client: Client, exportServer?: string): FillSourceReader {
  const secret = async (namespace: string, name: string): Promise<ReadonlyMap<string, string>> => {
    const found = await orAbsent(client.get(SECRETS, { namespace, name }));
    if (!found) throw new MissingPart(`Secret ${name} does not exist`);
    return new Map(
      Object.entries(found.data ?? {}).map(([key, text]) => [key, new TextDecoder().decode(decoded(String(text)))]),
    );
  };
  const credentials = async (namespace: string, name: string | undefined) => {
    if (!name) return undefined;
    const data = await secret(namespace, name);
    const username = data.get('accessKeyId');
    const password = data.get('secretKey');
    if (username === undefined || password === undefined)
      throw new MissingPart(`Secret ${name} needs the keys accessKeyId and secretKey`);
    return { username, password };
  };
  const certificates = async (namespace: string, name: string | undefined): Promise<string | undefined> => {
    if (!name) return undefined;
    const found = await orAbsent(client.get(CONFIG_MAPS, { namespace, name }));
    if (!found) throw new MissingPart(`ConfigMap ${name} does not exist`);
    const text = Object.values(found.data ?? {}).join('\n');
    if (!text.includes('-----BEGIN CERTIFICATE-----'))
      throw new MissingPart(`ConfigMap ${name} holds no certificate in PEM`);
    return text;
  };
  return {
    async http(namespace, { url, checksum, secretRef, certConfigMap, extraHeaders, secretExtraHeaders }) {
      const lines = [...(extraHeaders ?? [])];
      for (const name of secretExtraHeaders ?? []) lines.push(...(await secret(namespace, name)).values());
      const headers: Record<string, string> = {};
      for (const line of lines) {
        const [, name = '', value = ''] = HEADER.exec(line.trim()) ?? [];
        if (name === '') throw new MissingPart('an extra header is not NAME: VALUE');
        headers[name.toLowerCase()] = value;
      }
      const known = await credentials(namespace, secretRef);
      const ca = await certificates(namespace, certConfigMap);
      return {
        type: 'http',
        url: exportServer === undefined ? url : linkForNodes(url, exportServer),
        headers,
        ...(checksum && { checksum }),
        ...(known && { credentials: known }),
        ...(ca !== undefined && { ca }),
      };
    },
    async registry(namespace, { url = '', secretRef }) {
      const known = await credentials(namespace, secretRef);
      return { type: 'registry', reference: url.replace(/^docker:\/\//, ''), ...(known && { credentials: known }) };
    },
  };
}

const decoded = (text: string): Uint8Array => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
