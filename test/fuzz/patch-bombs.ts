/** Patches of every type, on small and on large objects. */
import { APPLY, type Body, DEPLOYMENTS, deployment, dry, json, MERGE, map, repeated, STRATEGIC } from './body.ts';
import { aliases } from './yaml-bombs.ts';

export function patchBombs(): Body[] {
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
  const patch = (name: string, text: string): Body => json(name, text, 'application/json-patch+json');
  return [
    patch('many operations', `[${repeated(10_001, () => '{"op":"add","path":"/data/a","value":"1"}')}]`),
    patch('ten thousand operations', `[${repeated(10_000, (at) => `{"op":"add","path":"/data/k${at}","value":"1"}`)}]`),
    patch(
      'copies that double',
      `[{"op":"add","path":"/metadata/annotations","value":{"a":"${'x'.repeat(1000)}"}},${repeated(40, (at) => `{"op":"copy","from":"/metadata","path":"/metadata/a${at}"}`)}]`,
    ),
    patch('a long pointer', `[{"op":"add","path":"${'/a'.repeat(500_000)}","value":1}]`),
    patch('many long pointers', `[${repeated(9_000, () => `{"op":"add","path":"${'/a'.repeat(130)}","value":1}`)}]`),
    patch(
      'long pointers to test',
      `[${repeated(20, () => `{"op":"test","path":"/data${'/a'.repeat(70_000)}","value":1}`)}]`,
    ),
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
    json('merge of many keys', `{"data":${keys(75_000)}}`, MERGE),
    json('merge of many nulls', `{"data":{${repeated(150_000, (i) => `"k${i}":null`)}}}`, MERGE),
    json('strategic merge of many keys', `{"data":${keys(75_000)}}`, STRATEGIC),
    json(
      'patch that adds many keys',
      `[{"op":"add","path":"/data","value":${keys(90_000)}}]`,
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
