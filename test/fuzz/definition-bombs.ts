/** CustomResourceDefinitions of very many fields. */

import { at, type Body, DEFINITIONS, dry, json, MERGE } from './body.ts';
import { definition, texts } from './bomb-targets.ts';

export function definitionBombs(): Body[] {
  const define = (name: string, object: object): Body => at(name, DEFINITIONS, JSON.stringify(object));
  const versions = (count: number): object => {
    const { spec, ...rest } = definition('many', {}) as { spec: object };
    const one = { served: true, schema: { openAPIV3Schema: { type: 'object' } } };
    const all = Array.from({ length: count }, (_, at) => ({ ...one, name: `v${at + 1}`, storage: at === 0 }));
    return { ...rest, spec: { ...spec, versions: all } };
  };
  const names = (count: number): string[] => Array.from({ length: count }, (_, i) => `f${i}`);
  const rules = (count: number, rule: (i: number) => string) => ({
    'x-kubernetes-validations': Array.from({ length: count }, (_, i) => ({ rule: rule(i), message: 'm' })),
  });
  return [
    define('a definition of many fields', definition('many', texts(40_000))),
    define('a definition of 2,000 versions', versions(2000)),
    define('a definition of 90,000 fields', definition('more', texts(90_000))),
    define(
      'a definition of many fields without a type',
      definition('many', Object.fromEntries(names(60_000).map((name) => [name, {}]))),
    ),
    define(
      'a definition of many fields of no type',
      definition(
        'many',
        texts(40_000, () => ({ type: 'strin' })),
      ),
    ),
    define(
      'a definition of many defaults',
      definition(
        'many',
        texts(40_000, () => ({ default: 'v' })),
      ),
    ),
    define(
      'a definition of a large default',
      definition('many', texts(15_000), { default: Object.fromEntries(names(15_000).map((name) => [name, 'v'])) }),
    ),
    define(
      'a definition of dear patterns',
      definition(
        'many',
        texts(800, (i) => ({ pattern: `^((a{1,30}){1,30}|b${i})$` })),
      ),
    ),
    define(
      'a definition of many rules',
      definition(
        'many',
        texts(15_000, (i) => ({ maxLength: 9, ...rules(1, () => `self != 'x${i}'`) })),
      ),
    ),
    define(
      'a definition of many rules in one place',
      definition(
        'many',
        texts(1, () => ({ maxLength: 9 })),
        rules(20_000, (i) => `self.f0 != 'x${i}'`),
      ),
    ),
    define(
      'a definition of many bad rules',
      definition(
        'many',
        texts(1),
        rules(20_000, (i) => `self.g${i} != 'x'`),
      ),
    ),
    define(
      'a definition of rules that name fields',
      definition('many', texts(20_000), {
        'x-kubernetes-validations': names(4000).map((name) => ({ rule: 'true', message: 'm', fieldPath: `.${name}` })),
      }),
    ),
    {
      ...json(
        'a change of many fields of a definition',
        JSON.stringify({
          spec: {
            versions: [
              {
                name: 'v1',
                served: true,
                storage: true,
                schema: {
                  openAPIV3Schema: {
                    type: 'object',
                    properties: { spec: { type: 'object', properties: texts(50_001) } },
                  },
                },
              },
            ],
          },
        }),
        MERGE,
      ),
      target: dry(`${DEFINITIONS}/wides.fuzz.example`),
    },
  ];
}
