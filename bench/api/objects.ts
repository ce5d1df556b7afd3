/** The objects of the API bench: ConfigMaps of 2 kB, as text with the places the load generator fills in. */
import type { RequestTemplate } from '../load/load.ts';

export const OBJECT_BYTES = 2048;
/** Objects that are read and written over and over. */
export const OBJECTS = 2000;
export const LISTED = 5000;
export const PAGE = 500;

export const configMaps = (namespace: string): string => `/api/v1/namespaces/${namespace}/configmaps`;

const FILES = ['one.conf', 'two.conf', 'three.conf', 'four.conf'];

/** JSON of a ConfigMap with the name `<prefix>-{i}`, about `OBJECT_BYTES` long as it is sent. */
export function configMap(
  prefix: string,
  more: Readonly<Record<string, string>> = {},
  fill: (bytes: number) => string = (bytes) => 'x'.repeat(bytes),
): string {
  const withData = (filling: () => string): string =>
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: `${prefix}-{i}`, labels: { app: 'bench', part: 'config' } },
      data: { ...more, ...Object.fromEntries(FILES.map((file) => [file, filling()])) },
    });
  const bytes = Math.floor((OBJECT_BYTES - withData(() => '').length) / FILES.length);
  return withData(() => fill(bytes));
}

/** Texts before they come again: further apart than any compression looks back. */
const TEXTS = 250;
const WORDS =
  'server listen upstream location worker timeout buffer cache level path default keepalive enabled false true log error access host port name namespace size limit';

/** As `createObjects`, of the same size, with settings in them that differ from object to object and compress like text. */
export function createTexts(namespace: string, prefix: string): RequestTemplate[] {
  const words = WORDS.split(' ');
  let state = 1;
  const below = (bound: number): number => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    return (state >>> 8) % bound;
  };
  const word = (): string => words[below(words.length)]!;
  const settings = (bytes: number): string => {
    let text = '';
    // A space, because the escape of a line feed is two bytes.
    while (text.length < bytes) text += `${word()}_${word()}=${below(4) === 0 ? below(100_000) : word()} `;
    return text.slice(0, bytes);
  };
  return Array.from({ length: TEXTS }, () => ({
    method: 'POST',
    path: configMaps(namespace),
    body: configMap(prefix, {}, settings),
  }));
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
