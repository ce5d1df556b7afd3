/**
 * Mean time of one CEL evaluation, in microseconds, for expressions as policies and rules have them. Prints JSON.
 *
 *     .node/bin/node bench/cel.ts
 */

import type { Schema } from '../packages/apimachinery/src/schema/schema.ts';
import { celBudget, celTypeOfSchema, compileCel, DYN } from '../packages/cel/src/cel.ts';

const POD = {
  metadata: { name: 'p', namespace: 'd', labels: { app: 'web', 'kubevirt.io/vm-delete-protection': 'true' } },
  spec: {
    replicas: 3,
    containers: ['a', 'b', 'c', 'd', 'e'].map((name) => ({
      name,
      image: `registry.example/${name}:1.0`,
      securityContext: { allowPrivilegeEscalation: false },
    })),
  },
};
const SCHEMA: Schema = {
  type: 'object',
  properties: {
    spec: {
      type: 'object',
      properties: {
        replicas: { type: 'integer' },
        containers: {
          type: 'array',
          maxItems: 10,
          items: { type: 'object', properties: { name: { type: 'string' }, image: { type: 'string' } } },
        },
      },
    },
  },
};

const CASES = {
  protection:
    "(has(object.metadata.labels) && 'kubevirt.io/vm-delete-protection' in object.metadata.labels) ? !object.metadata.labels['kubevirt.io/vm-delete-protection'].matches('^(t|T)rue$') : true",
  replicas: 'object.spec.replicas <= 5',
  images: "object.spec.containers.all(c, c.image.startsWith('registry.example/'))",
  privilege:
    'object.spec.containers.all(c, has(c.securityContext) && has(c.securityContext.allowPrivilegeEscalation) && c.securityContext.allowPrivilegeEscalation == false)',
  absorbed: 'object.spec.missing == 1 || object.spec.replicas == 3',
  rule: 'self.spec.replicas > 0 && self.spec.containers.all(c, c.name.size() < 64)',
};

const RUNS = 200_000;
const self = celTypeOfSchema(SCHEMA, { root: true });
const means: Record<string, number> = {};
for (const [name, expression] of Object.entries(CASES)) {
  const program = compileCel(expression, { variables: { object: DYN, self } });
  const bindings = { object: POD, self: POD };
  const budget = celBudget(Number.MAX_SAFE_INTEGER, 1_000_000);
  for (let i = 0; i < RUNS / 10; i++) program.run(bindings, budget);
  const start = performance.now();
  for (let i = 0; i < RUNS; i++) program.run(bindings, budget);
  means[name] = Number((((performance.now() - start) * 1000) / RUNS).toFixed(3));
}
const started = performance.now();
for (let i = 0; i < 500; i++) compileCel(CASES.privilege, { variables: { object: DYN } });
means['compile'] = Number((((performance.now() - started) * 1000) / 500).toFixed(1));
process.stdout.write(`${JSON.stringify({ unit: 'us', mean: means })}\n`);
