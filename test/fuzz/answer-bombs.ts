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
  pod,
  repeated,
  STRATEGIC,
  TABLE,
} from './body.ts';
import { mentioned } from './bomb-targets.ts';

const MAPS = '/api/v1/namespaces/default/configmaps';
const PODS = '/api/v1/namespaces/default/pods';
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
