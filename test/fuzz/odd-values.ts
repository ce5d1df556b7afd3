/** Input nobody sends on purpose: values, objects that nearly fit their schema, bodies, queries and headers. */

export type Random = () => number;

// biome-ignore lint/suspicious/noExplicitAny: schemas of OpenAPI as they come.
type Schema = any;

export const pick = <T>(random: Random, list: readonly T[]): T => list[Math.floor(random() * list.length)]!;

const STRINGS: readonly string[] = [
  '',
  'a',
  'x'.repeat(253),
  'x'.repeat(300),
  'x'.repeat(70_000),
  '../../../etc/passwd',
  'a/b',
  'a%2fb',
  '%',
  '.',
  '..',
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'hasOwnProperty',
  'a\u0000b',
  'a\r\nb: c',
  '\u001b[31mred',
  '\u202eabc',
  '\ud800',
  'İ',
  '💥'.repeat(40),
  '10Gi',
  '-1',
  '1e400',
  '0x10',
  '1.5.5',
  '99999999999999999999999999999999Ei',
  '2026-13-45T99:99:99Z',
  '(a+)+$',
  '[',
  '*',
  '::1',
  '300.300.300.300',
  '10.0.0.0/99',
  'self.x.all(a, a)',
];
const NUMBERS: readonly number[] = [0, -0, -1, 1, 65536, 2 ** 31, -(2 ** 31) - 1, 2 ** 53, 1e21, 1e300, 0.1, 5e-324];

/** A value of any kind. */
export function oddValue(random: Random, depth = 0): unknown {
  const dice = random();
  if (dice < 0.35) return pick(random, STRINGS);
  if (dice < 0.55) return pick(random, NUMBERS);
  if (dice < 0.65) return null;
  if (dice < 0.72) return random() < 0.5;
  if (depth > 3) return {};
  if (dice < 0.86) return Array.from({ length: Math.floor(random() * 4) }, () => oddValue(random, depth + 1));
  // As own members: an object literal would set the prototype.
  const made: Record<string, unknown> = {};
  for (let i = Math.floor(random() * 4); i > 0; i--)
    Object.defineProperty(made, pick(random, STRINGS).slice(0, 300), {
      value: oddValue(random, depth + 1),
      enumerable: true,
      configurable: true,
      writable: true,
    });
  return made;
}

/** A value along an OpenAPI schema, wrong in places. `resolve` finds a `$ref`. */
export function nearly(random: Random, given: Schema, resolve: (ref: string) => Schema, depth = 0): unknown {
  const schema = given?.$ref ? resolve(given.$ref) : given?.allOf?.[0]?.$ref ? resolve(given.allOf[0].$ref) : given;
  if (!schema || random() < 0.08) return oddValue(random);
  if (schema.enum && random() < 0.7) return pick(random, schema.enum);
  if (schema.type === 'string') return random() < 0.4 ? pick(random, STRINGS.slice(0, 4)) : pick(random, STRINGS);
  if (schema.type === 'integer' || schema.type === 'number')
    return random() < 0.6 ? Math.floor(random() * 100) : pick(random, NUMBERS);
  if (schema.type === 'boolean') return random() < 0.5;
  if (schema.type === 'array') {
    const length = depth > 7 ? 0 : Math.floor(random() * 3);
    return Array.from({ length }, () => nearly(random, schema.items, resolve, depth + 1));
  }
  if (schema.properties && depth <= 7) {
    const names = Object.keys(schema.properties);
    const chance = depth === 0 ? 1 : Math.min(0.6, 3 / names.length);
    const made: Record<string, unknown> = {};
    for (const name of names) {
      const wanted = random() < chance || (schema.required?.includes(name) && random() < 0.85);
      if (wanted) made[name] = nearly(random, schema.properties[name], resolve, depth + 1);
    }
    return made;
  }
  if (schema.additionalProperties && depth <= 7)
    return {
      [pick(random, ['a', 'b', ...STRINGS.slice(0, 4)])]: nearly(
        random,
        schema.additionalProperties,
        resolve,
        depth + 1,
      ),
    };
  return oddValue(random);
}

/** Damages bytes: cut, flipped, doubled. */
export function damaged(random: Random, bytes: Uint8Array): Uint8Array {
  const made = Uint8Array.from(bytes);
  const dice = random();
  if (dice < 0.3) return made.subarray(0, Math.floor(random() * made.length));
  for (let i = 1 + Math.floor(random() * 8); i > 0 && made.length > 0; i--)
    made[Math.floor(random() * made.length)] = Math.floor(random() * 256);
  return made;
}

const QUERIES: readonly string[] = [
  'limit=-1',
  'limit=abc',
  'limit=99999999999999999999',
  'limit=1&continue=garbage',
  `limit=1&continue=${Buffer.from('{"v":"meta.k8s.io/v1","rv":-5,"start":"../../x"}').toString('base64url')}`,
  'continue=e30',
  'resourceVersion=abc',
  'resourceVersion=-1',
  'resourceVersion=0&resourceVersionMatch=Exact',
  'resourceVersionMatch=NotOlderThan',
  'resourceVersion=1&resourceVersionMatch=Frob',
  'sendInitialEvents=true',
  'watch=1&sendInitialEvents=true&timeoutSeconds=0',
  'watch=maybe',
  'watch=1&timeoutSeconds=-1',
  'watch=1&resourceVersion=abc',
  'watch=1&timeoutSeconds=1&resourceVersion=1',
  'timeoutSeconds=abc',
  'labelSelector=a%20in%20(',
  `labelSelector=${'a,'.repeat(3000)}`,
  'labelSelector=!!a',
  'labelSelector=__proto__%3Dx',
  'labelSelector=a%00b',
  'fieldSelector=metadata.name',
  'fieldSelector=metadata.__proto__%3Dx',
  'fieldSelector=a%3D%3D%5C',
  'dryRun=Frob',
  'dryRun=All&dryRun=All',
  'fieldManager=%01',
  `fieldManager=${'m'.repeat(200)}`,
  'fieldValidation=Frob',
  'force=maybe',
  'force=true',
  'pretty=maybe',
  'propagationPolicy=Frob',
  'gracePeriodSeconds=-99999999999999999999',
  'orphanDependents=maybe',
  'timeout=abc',
  'timeout=-5s',
  'timeout=1ns',
  'a%zz=%',
  '%00=%00',
  '&&&&===',
  '__proto__=x&constructor=y',
  'x'.repeat(6000),
  'as=table&includeObject=Frob',
];
const HEADERS: readonly Readonly<Record<string, string>>[] = [
  { accept: 'x'.repeat(4000) },
  { accept: '*/*;q=banana, ;;;,,' },
  { accept: 'application/json;as=Table;v=v9;g=frob' },
  { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' },
  { accept: 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io' },
  { accept: 'application/vnd.kubernetes.protobuf' },
  { accept: 'application/yaml' },
  { accept: 'application/json;stream=watch', 'accept-encoding': 'gzip;q=zzz, br' },
  { 'accept-encoding': 'gzip' },
  { 'impersonate-user': '' },
  { 'impersonate-user': '__proto__', 'impersonate-group': 'system:masters' },
  { 'impersonate-group': 'x' },
  { 'impersonate-user': 'x', 'impersonate-extra-%zz': 'y' },
  { 'impersonate-uid': 'x' },
  { authorization: 'Bearer x.y.z' },
  { authorization: 'Basic !!!' },
  { 'if-none-match': '"x', 'if-modified-since': 'yesterday' },
  { 'x-remote-user': 'admin', 'x-remote-group': 'system:masters' },
  { 'audit-id': 'a'.repeat(300) },
  { 'user-agent': '%s%n\u00ff' },
  { origin: 'null', 'access-control-request-method': 'FROB' },
  { upgrade: 'websocket', connection: 'upgrade' },
  { upgrade: 'SPDY/3.1', connection: 'upgrade' },
  { upgrade: 'websocket', connection: 'upgrade', 'sec-websocket-version': '13', 'sec-websocket-key': 'x' },
  { expect: '100-continue' },
  { range: 'bytes=0-0' },
  { 'content-length-x': '5', te: 'trailers' },
];

export const oddQuery = (random: Random): string => {
  const queries = [pick(random, QUERIES)];
  while (random() < 0.3) queries.push(pick(random, QUERIES));
  return queries.join('&');
};
export const oddHeaders = (random: Random): Readonly<Record<string, string>> => pick(random, HEADERS);
export const oddName = (random: Random): string =>
  encodeURIComponent(pick(random, STRINGS).slice(0, 4000).toWellFormed()) || '%00';
