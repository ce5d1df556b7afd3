/** The objects of the API bench: ConfigMaps of 2 kB, as text with the places the load generator fills in. */
import type { RequestTemplate } from '../load/load.ts';

export const OBJECT_BYTES = 2048;
/** Objects that are read and written over and over. */
export const OBJECTS = 2000;
export const LISTED = 5000;
export const PAGE = 500;

export const configMaps = (namespace: string): string => `/api/v1/namespaces/${namespace}/configmaps`;

/** JSON of a ConfigMap with the name `<prefix>-{i}`, about `OBJECT_BYTES` long as it is sent. */
export function configMap(prefix: string, more: Readonly<Record<string, string>> = {}): string {
  const withData = (filling: string): string =>
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: `${prefix}-{i}`, labels: { app: 'bench', part: 'config' } },
      data: { ...more, 'one.conf': filling, 'two.conf': filling, 'three.conf': filling, 'four.conf': filling },
    });
  return withData('x'.repeat(Math.floor((OBJECT_BYTES - withData('').length) / 4)));
}

export const createObjects = (namespace: string, prefix: string): RequestTemplate => ({
  method: 'POST',
  path: configMaps(namespace),
  body: configMap(prefix),
});

/** Without resourceVersion, so unconditional; every lap changes the object. */
export const updateObjects = (namespace: string, prefix: string): RequestTemplate => ({
  method: 'PUT',
  path: `${configMaps(namespace)}/${prefix}-{i}`,
  body: configMap(prefix, { lap: '{v}' }),
});

export const getObjects = (namespace: string, prefix: string): RequestTemplate => ({
  method: 'GET',
  path: `${configMaps(namespace)}/${prefix}-{i}`,
});
