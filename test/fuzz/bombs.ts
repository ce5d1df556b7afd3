/** Bodies that are bad for whoever reads them: what the fuzz sends one by one, with its eye on the event loop. */
import { gzipSync } from 'node:zlib';

export interface Body {
  readonly name: string;
  readonly type: string;
  readonly bytes: Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
  /** Where it is sent; a config map where absent. */
  readonly target?: string;
}

const utf8 = new TextEncoder();
const json = (name: string, text: string, type = 'application/json'): Body => ({
  name,
  type,
  bytes: utf8.encode(text),
});
const map = (data: string): string =>
  `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"bomb"},"data":${data}}`;
const repeated = (count: number, part: (at: number) => string): string =>
  Array.from({ length: count }, (_, at) => part(at)).join(',');

const DEPLOYMENTS = '/apis/apps/v1/namespaces/default/deployments';
const CUSTOM = '/apis/fuzz.example/v1/namespaces/default/bombs';
const STRATEGIC = 'application/strategic-merge-patch+json';
const MERGE = 'application/merge-patch+json';
const APPLY = 'application/apply-patch+yaml';
const dry = (path: string): string => `${path}?fieldManager=fuzz&dryRun=All`;

/** A Deployment whose pods have these containers. */
const deployment = (containers: string, more = ''): string =>
  `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"bomb"},"spec":{"selector":{"matchLabels":{"a":"b"}${more}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[${containers}]}}}}`;
const custom = (spec: string): string =>
  `{"apiVersion":"fuzz.example/v1","kind":"Bomb","metadata":{"name":"bomb"},"spec":{${spec}}}`;
const definition = (name: string, properties: object): object => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `${name}s.fuzz.example` },
  spec: {
    group: 'fuzz.example',
    names: { plural: `${name}s`, singular: name, kind: `${name[0]!.toUpperCase()}${name.slice(1)}` },
    scope: 'Namespaced',
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: 'object', properties: { spec: { type: 'object', properties } } } },
      },
    ],
  },
});

/** What has to be there before some of the bombs: a kind of its own, and large objects. */
export function bombTargets(): { readonly path: string; readonly object: object }[] {
  const item = { type: 'object', properties: { name: { type: 'string' }, value: { type: 'integer' } } };
  return [
    {
      path: '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
      object: definition('bomb', {
        set: { type: 'array', 'x-kubernetes-list-type': 'set', items: { type: 'string' } },
        keyed: {
          type: 'array',
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['name'],
          items: { ...item, required: ['name'] },
        },
        table: { type: 'object', additionalProperties: { type: 'string', pattern: '^(a+)+$' } },
        open: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
        defaulted: {
          type: 'array',
          items: { type: 'object', properties: { a: { type: 'string', default: 'x' }, b: { type: 'integer' } } },
        },
      }),
    },
    {
      path: '/api/v1/namespaces/default/configmaps',
      object: {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: 'large' },
        data: Object.fromEntries(Array.from({ length: 60_000 }, (_, at) => [`k${at}`, 'v'])),
      },
    },
    {
      path: DEPLOYMENTS,
      object: JSON.parse(
        deployment(repeated(3000, (at) => `{"name":"c${at}","image":"a"}`)).replace('"bomb"', '"owned"'),
      ),
    },
  ];
}

/** Bodies that are bad for whoever reads them, whatever the route. At most 3 MiB each. */
export function bombs(): Body[] {
  const aliases = (levels: number, width: number): string =>
    Array.from(
      { length: levels },
      (_, at) =>
        `a${at}: &a${at} [${Array(width)
          .fill(at === 0 ? 'x' : `*a${at - 1}`)
          .join(',')}]`,
    ).join('\n');
  const patch = (name: string, text: string): Body => json(name, text, 'application/json-patch+json');
  return [
    json('deep lists', '['.repeat(1_500_000)),
    json('deep closed lists', map(`${'['.repeat(9_000)}${']'.repeat(9_000)}`)),
    json('deep objects', map(`${'{"a":'.repeat(200_000)}1${'}'.repeat(200_000)}`)),
    json('many keys', map(`{${repeated(150_000, (at) => `"k${at}":"v"`)}}`)),
    json('one key again and again', map(`{${repeated(200_000, () => '"k":"v"')}}`)),
    json(
      'many unknown fields',
      `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"bomb"},${repeated(120_000, (at) => `"f${at}":${at}`)}}`,
    ),
    json('a long list', map(`[${repeated(700_000, () => '1')}]`)),
    json('a long string', map(`{"a":"${'x'.repeat(2_900_000)}"}`)),
    json('escapes', map(`{"a":"${'\\u0000'.repeat(480_000)}"}`)),
    json('a long number', map(`{"a":${'9'.repeat(2_000_000)}}`)),
    json('a large exponent', map('{"a":1e999999999}')),
    json(
      'many labels',
      `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"bomb","labels":{${repeated(60_000, (at) => `"l${at}":"v"`)}}}}`,
    ),
    json(
      'many bad labels',
      `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"bomb","labels":{${repeated(60_000, (at) => `"l ${at}":" v"`)}}}}`,
    ),
    json(
      'many owners',
      `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"bomb","ownerReferences":[${repeated(20_000, () => '{}')}]}}`,
    ),
    json(
      'many finalizers',
      `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"bomb","finalizers":[${repeated(100_000, (at) => `"a b${at}"`)}]}}`,
    ),
    json(
      'managed fields of nonsense',
      `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"bomb","managedFields":[${repeated(3000, () => '{"manager":"m","operation":"Apply","fieldsType":"FieldsV1","fieldsV1":{"f:a":{"k:{":{}}}}')}]}}`,
    ),
    json(
      'prototype',
      '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},"apiVersion":"v1","kind":"ConfigMap","metadata":{"__proto__":{"polluted":1},"name":"bomb"},"data":{"__proto__":"x"}}',
    ),
    json('YAML aliases', aliases(40, 10), 'application/yaml'),
    json('YAML wide aliases', aliases(6, 60), 'application/yaml'),
    json(
      'YAML with its own tags',
      'a: !!js/function "x"\nb: !!binary xxx\nc: !!set {a}\nd: !<tag:x> 1\n',
      'application/yaml',
    ),
    json(
      'YAML merge of a prototype',
      'x: &x {__proto__: {polluted: 1}}\n<<: *x\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: bomb}\n',
      'application/yaml',
    ),
    json('YAML deep flow', `a: ${'['.repeat(2_000_000)}`, 'application/yaml'),
    json('YAML deep on one line', '- '.repeat(1_000_000), 'application/yaml'),
    json(
      'YAML deep block',
      Array.from({ length: 1200 }, (_, at) => `${' '.repeat(at)}a:`).join('\n'),
      'application/yaml',
    ),
    json('YAML many keys', Array.from({ length: 60_000 }, (_, at) => `k${at}: v`).join('\n'), 'application/yaml'),
    json('YAML one long line', `a: "${'\\x41'.repeat(500_000)}"`, 'application/yaml'),
    patch('many operations', `[${repeated(10_001, () => '{"op":"add","path":"/data/a","value":"1"}')}]`),
    patch('ten thousand operations', `[${repeated(10_000, (at) => `{"op":"add","path":"/data/k${at}","value":"1"}`)}]`),
    patch(
      'copies that double',
      `[{"op":"add","path":"/metadata/annotations","value":{"a":"${'x'.repeat(1000)}"}},${repeated(40, (at) => `{"op":"copy","from":"/metadata","path":"/metadata/a${at}"}`)}]`,
    ),
    patch('a long pointer', `[{"op":"add","path":"${'/a'.repeat(500_000)}","value":1}]`),
    patch(
      'a prototype by pointer',
      '[{"op":"add","path":"/__proto__/polluted","value":1},{"op":"add","path":"/constructor/prototype/polluted","value":1}]',
    ),
    json(
      'merge of a prototype',
      '{"__proto__":{"polluted":1},"data":{"__proto__":{"polluted":"1"}}}',
      'application/merge-patch+json',
    ),
    json(
      'strategic merge of a prototype',
      '{"__proto__":{"polluted":1},"metadata":{"__proto__":{"polluted":1}}}',
      'application/strategic-merge-patch+json',
    ),
    json(
      'directives of nonsense',
      '{"$patch":1,"metadata":{"$patch":"frob","$retainKeys":1,"$deleteFromPrimitiveList/finalizers":"x","$setElementOrder/finalizers":[{}]}}',
      'application/strategic-merge-patch+json',
    ),
    json('deep merge', `${'{"a":'.repeat(9_000)}1${'}'.repeat(9_000)}`, 'application/merge-patch+json'),
    json(
      'deep strategic merge',
      `${'{"a":'.repeat(9_000)}1${'}'.repeat(9_000)}`,
      'application/strategic-merge-patch+json',
    ),
    json('apply of aliases', aliases(40, 10), 'application/apply-patch+yaml'),
    json(
      'deep apply',
      `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"bomb"},"data":${'{"a":'.repeat(9_000)}1${'}'.repeat(9_000)}}`,
      'application/apply-patch+yaml',
    ),
    json('apply of many keys', map(`{${repeated(60_000, (at) => `"k${at}":"v"`)}}`), 'application/apply-patch+yaml'),
    ...patchBombs(),
    ...objectBombs(),
    {
      name: 'gzip of zeros',
      type: 'application/json',
      bytes: gzipSync(new Uint8Array(64 * 1024 * 1024)),
      headers: { 'content-encoding': 'gzip' },
    },
    {
      name: 'gzip of nonsense',
      type: 'application/json',
      bytes: utf8.encode('not gzip'),
      headers: { 'content-encoding': 'gzip' },
    },
    {
      name: 'protobuf of groups',
      type: 'application/vnd.kubernetes.protobuf',
      bytes: envelope(new Uint8Array(1_000_000).fill(0x0b)),
    },
    {
      name: 'protobuf that claims a length',
      type: 'application/vnd.kubernetes.protobuf',
      bytes: envelope(new Uint8Array([0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f, 1])),
    },
    { name: 'protobuf in itself', type: 'application/vnd.kubernetes.protobuf', bytes: envelope(nested(4000)) },
  ];
}

/** Patches of every type, on small and on large objects. */
function patchBombs(): Body[] {
  const large = dry('/api/v1/namespaces/default/configmaps/large');
  const named = (text: string): string => text.replace('"bomb"', '"target"');
  const keys = (count: number): string => `{${repeated(count, (at) => `"k${at}":"w"`)}}`;
  const pod = (text: string): string => `{"spec":{"template":{"spec":{${text}}}}}`;
  const at = (name: string, target: string, text: string, type: string): Body => ({
    ...json(name, text, type),
    target,
  });
  const containers = repeated(12_000, (i) => `{"name":"c${i}","image":"b"}`);
  const owned = dry(`${DEPLOYMENTS}/owned`);
  const ownedBy = (text: string): string => text.replace('"bomb"', '"owned"');
  return [
    json('merge of many keys', `{"data":${keys(150_000)}}`, MERGE),
    json('merge of many nulls', `{"data":{${repeated(150_000, (i) => `"k${i}":null`)}}}`, MERGE),
    json('strategic merge of many keys', `{"data":${keys(150_000)}}`, STRATEGIC),
    json(
      'patch that adds many keys',
      `[{"op":"add","path":"/data","value":${keys(150_000)}}]`,
      'application/json-patch+json',
    ),
    at('small merge into a large object', large, '{"metadata":{"labels":{"a":"b"}}}', MERGE),
    at('merge into a large object', large, `{"data":${keys(60_000)}}`, MERGE),
    at('apply to a large object', large, named(map(keys(60_000))).replace('"target"', '"large"'), APPLY),
    at(
      'removals from a long list',
      dry('/api/v1/namespaces/default/configmaps/target'),
      `[{"op":"add","path":"/metadata/finalizers","value":[${repeated(90_000, (i) => `"a/b${i}"`)}]},${repeated(9_990, () => '{"op":"remove","path":"/metadata/finalizers/0"}')}]`,
      'application/json-patch+json',
    ),
    json(
      'strategic merge of many finalizers',
      `{"metadata":{"finalizers":[${repeated(100_000, (i) => `"a/b${i}"`)}]}}`,
      STRATEGIC,
    ),
    json(
      'strategic merge that removes finalizers',
      `{"metadata":{"finalizers":[${repeated(50_000, (i) => `"a/b${i}"`)}],"$deleteFromPrimitiveList/finalizers":[${repeated(50_000, (i) => `"a/c${i}"`)}]}}`,
      STRATEGIC,
    ),
    json(
      'strategic merge in an order',
      `{"metadata":{"finalizers":[${repeated(50_000, (i) => `"a/b${i}"`)}],"$setElementOrder/finalizers":[${repeated(50_000, (i) => `"a/b${i}"`)}]}}`,
      STRATEGIC,
    ),
    at('strategic merge of many items', owned, pod(`"containers":[${containers}]`), STRATEGIC),
    at(
      'strategic merge of many removals',
      owned,
      pod(`"containers":[${repeated(12_000, (i) => `{"name":"c${i}","$patch":"delete"}`)}]`),
      STRATEGIC,
    ),
    at(
      'strategic merge of items in an order',
      owned,
      pod(
        `"containers":[${containers}],"$setElementOrder/containers":[${repeated(12_000, (i) => `{"name":"c${i}"}`)}]`,
      ),
      STRATEGIC,
    ),
    at('apply of many items', owned, ownedBy(deployment(containers)), APPLY),
    at(
      'apply of many items on a new object',
      dry(`${DEPLOYMENTS}/new`),
      deployment(containers).replace('"bomb"', '"new"'),
      APPLY,
    ),
    at(
      'apply of the same item again and again',
      owned,
      ownedBy(deployment(repeated(40_000, () => '{"name":"c","image":"b"}'))),
      APPLY,
    ),
    json('apply of many keys of its own', named(map(keys(60_000))), APPLY),
    json(
      'apply of many finalizers',
      named(map('{}')).replace('"target"', `"target","finalizers":[${repeated(60_000, (i) => `"a/b${i}"`)}]`),
      APPLY,
    ),
    json(
      'apply of many unknown fields',
      named(map('{}')).replace('"data"', `${repeated(100_000, (i) => `"f${i}":1`)},"data"`),
      APPLY,
    ),
    json('apply of one key again and again', named(map(`{${repeated(100_000, () => '"k":"v"')}}`)), APPLY),
    json(
      'apply of YAML with many keys',
      `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: target}\ndata:\n${Array.from({ length: 60_000 }, (_, i) => `  k${i}: v`).join('\n')}`,
      APPLY,
    ),
  ];
}

/** Large objects of built-in and custom kinds in several encodings. */
function objectBombs(): Body[] {
  const at = (name: string, target: string, text: string): Body => ({ ...json(name, text), target: dry(target) });
  const yaml = (name: string, text: string): Body => json(name, text, 'application/yaml');
  const lines = (count: number, line: (at: number) => string): string =>
    Array.from({ length: count }, (_, i) => line(i)).join('\n');
  const head = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bomb}\n';
  const entry = (key: string, value: string): number[] => {
    const inner = [
      0x0a,
      ...varint(key.length),
      ...utf8.encode(key),
      0x12,
      ...varint(value.length),
      ...utf8.encode(value),
    ];
    return [0x12, ...varint(inner.length), ...inner];
  };
  const entries = Array.from({ length: 120_000 }, (_, i) => entry(`k${i}`, 'v')).flat();
  return [
    at('many containers', DEPLOYMENTS, deployment(repeated(60_000, (i) => `{"name":"c${i}","image":"a"}`))),
    at('many empty containers', DEPLOYMENTS, deployment(repeated(30_000, () => '{}'))),
    at('many bad containers', DEPLOYMENTS, deployment(repeated(60_000, (i) => `{"name":"C ${i}","ports":[{}]}`))),
    at(
      'a container with much',
      DEPLOYMENTS,
      deployment(`{"name":"c","image":"a","env":[${repeated(60_000, (i) => `{"name":"E${i}","value":"v"}`)}]}`),
    ),
    at(
      'a label selector of 100 kB',
      DEPLOYMENTS,
      deployment(
        '{"name":"c","image":"a"}',
        `,"matchExpressions":[${repeated(2_000, (i) => `{"key":"k${i}","operator":"In","values":["a","b"]}`)}]`,
      ),
    ),
    at(
      'a label selector of many values',
      DEPLOYMENTS,
      deployment(
        '{"name":"c","image":"a"}',
        `,"matchExpressions":[{"key":"a","operator":"In","values":[${repeated(200_000, (i) => `"v${i}"`)}]}]`,
      ),
    ),
    at(
      'a label selector of bad values',
      DEPLOYMENTS,
      deployment(
        '{"name":"c","image":"a"}',
        `,"matchExpressions":[${repeated(40_000, (i) => `{"key":" ${i}","operator":"X","values":["-"]}`)}]`,
      ),
    ),
    at(
      'many rules',
      '/apis/rbac.authorization.k8s.io/v1/clusterroles',
      `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"bomb"},"rules":[${repeated(30_000, (i) => `{"apiGroups":[""],"resources":["r${i}"],"verbs":["get"]}`)}]}`,
    ),
    at(
      'many annotations',
      '/api/v1/namespaces/default/configmaps',
      `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"bomb","annotations":{${repeated(100_000, (i) => `"a${i}":"v"`)}}}}`,
    ),
    at(
      'binary data that is none',
      '/api/v1/namespaces/default/configmaps',
      `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"bomb"},"binaryData":{"a":"${'A'.repeat(2_900_000)}"}}`,
    ),
    at('many bad keys', '/api/v1/namespaces/default/configmaps', map(`{${repeated(120_000, (i) => `" ${i}":"v"`)}}`)),
    at(
      'a mistake at the end',
      '/api/v1/namespaces/default/configmaps',
      map(`{${repeated(150_000, (i) => `"k${i}":"v"`)},`),
    ),
    at(
      'a number too long at the end',
      '/api/v1/namespaces/default/configmaps',
      map(`[${repeated(300_000, () => '1')},12345678901234567890]`),
    ),
    at('custom set', CUSTOM, custom(`"set":[${repeated(150_000, (i) => `"s${i}"`)}]`)),
    at('custom set of the same', CUSTOM, custom(`"set":[${repeated(300_000, () => '"s"')}]`)),
    at('custom keyed list', CUSTOM, custom(`"keyed":[${repeated(60_000, (i) => `{"name":"n${i}","value":1}`)}]`)),
    at('custom keyed list without keys', CUSTOM, custom(`"keyed":[${repeated(100_000, () => '{}')}]`)),
    at(
      'custom map with a bad pattern',
      CUSTOM,
      custom(`"table":{${repeated(60_000, (i) => `"k${i}":"aaaaaaaaaaaaaaaaaaaaaaaaaaaab"`)}}`),
    ),
    at('custom open content', CUSTOM, custom(`"open":{${repeated(120_000, (i) => `"k${i}":{"a":1}`)}}`)),
    at('custom defaults', CUSTOM, custom(`"defaulted":[${repeated(300_000, () => '{}')}]`)),
    at('custom unknown fields', CUSTOM, custom(repeated(150_000, (i) => `"u${i}":1`))),
    at(
      'a definition of many fields',
      '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
      JSON.stringify(
        definition('many', Object.fromEntries(Array.from({ length: 40_000 }, (_, i) => [`f${i}`, { type: 'string' }]))),
      ),
    ),
    yaml('YAML one key again and again', `${head}data:\n${lines(60_000, () => '  k: v')}`),
    yaml('YAML long list', `${head}data:\n${lines(150_000, () => '- a')}`),
    yaml('YAML flow of many keys', `${head}data: {${repeated(100_000, (i) => `k${i}: v`)}}`),
    yaml('YAML comments', `${head}${lines(200_000, () => '# comment')}`),
    yaml('YAML block text', `${head}data:\n  a: |\n${lines(150_000, () => '    line of text')}`),
    yaml('YAML empty lines', `${head}${'\n'.repeat(2_500_000)}`),
    yaml('YAML many anchors', `${head}data:\n${lines(40_000, (i) => `  k${i}: &a${i} v`)}`),
    yaml(
      'YAML many documents',
      lines(200_000, () => '---\na: 1'),
    ),
    {
      name: 'protobuf of many keys',
      type: 'application/vnd.kubernetes.protobuf',
      bytes: envelope(Uint8Array.from([0x0a, 6, 0x0a, 4, ...utf8.encode('bomb'), ...entries])),
    },
    {
      name: 'protobuf of unknown fields',
      type: 'application/vnd.kubernetes.protobuf',
      bytes: envelope(new Uint8Array(2_000_000).map((_, i) => (i % 2 === 0 ? 0x78 : 1))),
    },
  ];
}

const MAGIC = [0x6b, 0x38, 0x73, 0x00];

/** `raw` as the object of kind ConfigMap in the envelope of the protobuf wire. */
export function envelope(raw: Uint8Array, apiVersion = 'v1', kind = 'ConfigMap'): Uint8Array {
  const field = (number: number, bytes: Uint8Array): number[] => [(number << 3) | 2, ...varint(bytes.length), ...bytes];
  const meta = [...field(1, utf8.encode(apiVersion)), ...field(2, utf8.encode(kind))];
  const head = [...MAGIC, ...field(1, Uint8Array.from(meta)), (2 << 3) | 2, ...varint(raw.length)];
  const out = new Uint8Array(head.length + raw.length);
  out.set(head);
  out.set(raw, head.length);
  return out;
}

function varint(value: number): number[] {
  const bytes: number[] = [];
  for (let rest = value; ; rest >>>= 7) {
    if (rest < 0x80) return [...bytes, rest];
    bytes.push((rest & 0x7f) | 0x80);
  }
}

/** Messages of field 1 in one another. */
function nested(levels: number): Uint8Array {
  let inner: number[] = [];
  for (let i = 0; i < levels; i++) inner = [0x0a, ...varint(inner.length), ...inner];
  return Uint8Array.from(inner);
}
