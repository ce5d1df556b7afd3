/** Small patches of large objects, and large answers in every form. */

import {
  APPLY,
  type Body,
  CUSTOM,
  DEFINITIONS,
  DEPLOYMENTS,
  deployment,
  dry,
  JSON_PATCH,
  json,
  MERGE,
  map,
  PROTOBUF,
  pod,
  repeated,
  STRATEGIC,
  TABLE,
} from './body.ts';
import { mentioned } from './bomb-targets.ts';

const MAPS = '/api/v1/namespaces/default/configmaps';
const PODS = '/api/v1/namespaces/default/pods';
/** A kind gets another short name: what was published of all kinds is out of date. */
const renamed = (): Body => ({
  ...json('', JSON.stringify({ spec: { names: { shortNames: [`b${++renames}`] } } }), MERGE),
  target: `${DEFINITIONS}/bombs.fuzz.example`,
});
let renames = 0;

const LABEL = '{"metadata":{"labels":{"c":"d"}}}';
const SMALL: readonly (readonly [string, string, string])[] = [
  ['JSON patch', JSON_PATCH, '[{"op":"add","path":"/metadata/labels","value":{"c":"d"}}]'],
  ['merge', MERGE, LABEL],
  ['strategic merge', STRATEGIC, LABEL],
];

export function answerBombs(): Body[] {
  const large: readonly (readonly [string, string, string, string])[] = [
    ['60,000 keys', `${MAPS}/large`, 'v1', 'ConfigMap'],
    ['3,000 containers', `${DEPLOYMENTS}/owned`, 'apps/v1', 'Deployment'],
    ['50,000 fields', `${DEFINITIONS}/wides.fuzz.example`, 'apiextensions.k8s.io/v1', 'CustomResourceDefinition'],
  ];
  const keys = map(`{${repeated(60_000, (i) => `"k${i}":"v"`)}}`);
  const containers = repeated(8000, (i) => `{"name":"c${i}","image":"a"}`);
  const shown = (name: string, accept: string, target: string, text: string): Body => ({
    ...json(name, text),
    target,
    headers: { accept },
  });
  const got = (name: string, target: string, accept: string): Body => ({
    ...json(name, ''),
    method: 'GET',
    target,
    headers: { accept },
  });
  return [
    ...large.flatMap(([what, path, apiVersion, kind]) => [
      ...SMALL.map(([patch, type, text]) => ({ ...json(`small ${patch} of ${what}`, text, type), target: dry(path) })),
      {
        ...json(`small apply to ${what}`, JSON.stringify(mentioned(path, apiVersion, kind)), APPLY),
        target: dry(path),
      },
    ]),
    ...[
      ['a Table', TABLE],
      ['YAML', 'application/yaml'],
      ['protobuf', PROTOBUF],
    ].flatMap(([form, accept]) => [
      shown(`many keys as ${form}`, accept!, `${dry(MAPS)}&includeObject=Object`, keys),
      shown(`many containers as ${form}`, accept!, `${dry(DEPLOYMENTS)}&includeObject=Object`, deployment(containers)),
      shown(
        `many members as ${form}`,
        accept!,
        `${dry(CUSTOM)}&includeObject=Object`,
        `{"apiVersion":"fuzz.example/v1","kind":"Bomb","metadata":{"name":"bomb"},"spec":{"open":{${repeated(60_000, (i) => `"k${i}":{"a":[${i}]}`)}}}}`,
      ),
    ]),
    // What lies there, alone and in a list, and as the first event of a watch.
    ...large.flatMap(([what, path]) =>
      [
        path,
        path.slice(0, path.lastIndexOf('/')),
        `${path.slice(0, path.lastIndexOf('/'))}?watch=1&timeoutSeconds=1`,
      ].map((target) => got(`${what} in protobuf: ${target}`, target, PROTOBUF)),
    ),
    ...[
      ['v2', '/openapi/v2', 'application/json'],
      ['v2', '/openapi/v2', 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf'],
      ['v3', '/openapi/v3/apis/fuzz.example/v1', 'application/json'],
      ['v3', '/openapi/v3/apis/fuzz.example/v1', 'application/com.github.proto-openapi.spec.v3@v1.0+protobuf'],
      ['v3 index', '/openapi/v3', 'application/json'],
    ].map(([what, target, accept]) => ({
      ...got(`OpenAPI ${what} of 90,000 fields as ${accept}`, target!, accept!),
      first: renamed,
    })),
    shown('many containers, indented', 'application/json', `${dry(DEPLOYMENTS)}&pretty=1`, deployment(containers)),
    {
      ...json(
        'a large object that stays',
        pod(`"containers":[${repeated(10_000, (i) => `{"name":"c${i}","image":"a"}`)}]`).replace(
          '"name":"bomb"',
          '"generateName":"stays-"',
        ),
      ),
      target: PODS,
    },
  ];
}
