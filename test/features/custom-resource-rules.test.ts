import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { DEFINITIONS, definition, establish, settled } from '../testkit/custom-definitions.ts';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';

let server: InProcessServer;
before(async () => {
  server = await startServer();
});
after(() => server.stop());

const int = { type: 'integer' };
const text = { type: 'string' };
const withRules = (properties: object, ...rules: readonly object[]) => ({
  type: 'object',
  properties,
  'x-kubernetes-validations': rules,
});

const REFUSED: readonly (readonly [string, object, RegExp])[] = [
  ['names a property that is not there', withRules({ x: int }, { rule: 'self.z == 1' }), /undefined field 'z'/],
  ['does not parse', withRules({ x: int }, { rule: 'self = 42' }), /Syntax error/],
  [
    'is not a boolean',
    withRules({ x: int }, { rule: 'self.x' }),
    /rule: Invalid value: .*: cel expression must evaluate to a bool/,
  ],
  [
    'may cost too much',
    withRules(
      { x: { type: 'array', items: { type: 'array', items: text } } },
      { rule: 'self.x.all(a, self.x.all(b, a == b))' },
    ),
    /x-kubernetes-validations\[0\].rule: Forbidden: estimated rule cost exceeds budget by factor of more than 100x/,
  ],
  ['is empty', withRules({ x: int }, { rule: ' ' }), /rule: Required value: rule is not specified/],
  [
    'compares items that have no counterpart',
    { type: 'object', properties: { l: { type: 'array', items: withRules({ x: int }, { rule: 'self == oldSelf' }) } } },
    /oldSelf cannot be used on the uncorrelatable portion of the schema within spec.validation.openAPIV3Schema.properties\[spec\].properties\[l\]/,
  ],
  [
    'makes an old value optional that it does not use',
    withRules({ x: int }, { rule: 'self.x > 0', optionalOldSelf: true }),
    /optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule/,
  ],
  [
    'has a message on two lines',
    withRules({ x: int }, { rule: 'true', message: 'a\nb' }),
    /message: Invalid value: "a\\nb": must not contain line breaks/,
  ],
  [
    'has an unknown reason',
    withRules({ x: int }, { rule: 'true', reason: 'Because' }),
    /reason: Unsupported value: "Because"/,
  ],
  [
    'points nowhere',
    withRules({ x: int }, { rule: 'true', fieldPath: '.y' }),
    /fieldPath: Invalid value: ".y": must be a valid path/,
  ],
];
for (const [what, spec, message] of REFUSED) {
  test(`a definition is refused when a rule ${what}`, async () => {
    const answer = await server.request('POST', DEFINITIONS, { body: definition({ name: 'bad', spec }) });
    assert.equal(answer.status, 422);
    assert.match(answer.json.message, message);
  });
}

const PATH = '/apis/example.com/v1/namespaces/default/ruleds';
const ruled = (name: string, spec: object) => ({
  apiVersion: 'example.com/v1',
  kind: 'Ruled',
  metadata: { name },
  spec,
});

// S-154: Rules of a schema (`x-kubernetes-validations`) are run with their messages, reasons and fields, over what
//   changed and within a budget.
// Compat CustomResourceDefinitions, P0, yes: x-kubernetes-validations: rules, messages, reasons, transition rules
test('rules are run over objects, with their messages, reasons and fields', async () => {
  await establish(
    server,
    definition({
      name: 'ruled',
      spec: withRules(
        {
          min: int,
          max: int,
          kept: { type: 'string', 'x-kubernetes-validations': [{ rule: 'self == oldSelf', message: 'cannot change' }] },
          grow: {
            type: 'integer',
            'x-kubernetes-validations': [
              { rule: '!oldSelf.hasValue() || self >= oldSelf.value()', optionalOldSelf: true },
            ],
          },
          'a.b': text,
          items: {
            type: 'array',
            'x-kubernetes-list-type': 'map',
            'x-kubernetes-list-map-keys': ['name'],
            items: {
              type: 'object',
              required: ['name'],
              properties: {
                name: text,
                size: {
                  type: 'integer',
                  'x-kubernetes-validations': [{ rule: 'self >= oldSelf', message: 'shrinks' }],
                },
              },
            },
          },
          labels: {
            type: 'object',
            additionalProperties: { type: 'string', 'x-kubernetes-validations': [{ rule: "self != 'no'" }] },
          },
        },
        { rule: '!has(self.min) || !has(self.max) || self.min <= self.max' },
        {
          rule: '!has(self.max) || self.max < 100',
          messageExpression: "'max is ' + string(self.max)",
          reason: 'FieldValueForbidden',
          fieldPath: '.max',
        },
        { rule: "!has(self.a__dot__b) || self.a__dot__b == 'ok'", message: 'a.b is not ok' },
      ),
      root: { 'x-kubernetes-validations': [{ rule: "self.metadata.name.startsWith('r')" }] },
    }),
  );
  const cases: readonly (readonly [object, string])[] = [
    [{ min: 2, max: 1 }, 'spec: Invalid value: failed rule: !has(self.min) || !has(self.max) || self.min <= self.max'],
    [{ max: 100 }, 'spec.max: Forbidden: max is 100'],
    [{ 'a.b': 'x' }, 'spec: Invalid value: a.b is not ok'],
    [{ labels: { a: 'no' } }, `spec.labels[a]: Invalid value: "no": failed rule: self != 'no'`],
  ];
  for (const [spec, message] of cases) {
    const answer = await server.request('POST', PATH, { body: ruled('r', spec) });
    assert.equal(answer.status, 422);
    assert.equal(answer.json.message, `Ruled.example.com "r" is invalid: ${message}`);
  }
  const named = await server.request('POST', PATH, { body: ruled('x', {}) });
  assert.match(named.json.message, /<nil>: Invalid value: failed rule: self.metadata.name/);
  assert.equal((await server.request('POST', PATH, { body: ruled('r', { min: 1, max: 2 }) })).status, 201);
});

// S-154
test('transition rules speak of changes only', async () => {
  const body = ruled('rt', { kept: 'a', grow: 2, items: [{ name: 'x', size: 2 }] });
  assert.equal((await server.request('POST', PATH, { body })).status, 201);
  const change = (spec: object) => server.request('PATCH', `${PATH}/rt`, { body: { spec } });
  assert.match((await change({ kept: 'b' })).json.message, /spec.kept: Invalid value: "b": cannot change/);
  assert.match((await change({ grow: 1 })).json.message, /spec.grow: Invalid value: 1: failed rule/);
  const shrunk = await change({
    items: [
      { name: 'new', size: 1 },
      { name: 'x', size: 1 },
    ],
  });
  assert.match(shrunk.json.message, /spec.items\[1\].size: Invalid value: 1: shrinks/);
  assert.equal(
    (
      await change({
        items: [
          { name: 'new', size: 1 },
          { name: 'x', size: 3 },
        ],
      })
    ).status,
    200,
  );
});

// S-154
// Compat CustomResourceDefinitions, P0, yes: CEL budgets: estimates at the definition, cost at run time
test('a rule that is too dear for one object stops there', async () => {
  const list = { type: 'array', items: int, maxItems: 1000 };
  await establish(
    server,
    definition({ name: 'dear', spec: withRules({ x: list }, { rule: 'self.x.all(a, self.x.all(b, a == b))' }) }),
  );
  const body = {
    apiVersion: 'example.com/v1',
    kind: 'Dear',
    metadata: { name: 'd' },
    spec: { x: Array(1000).fill(1) },
  };
  const answer = await server.request('POST', '/apis/example.com/v1/namespaces/default/dears', { body });
  assert.equal(answer.status, 422);
  assert.match(answer.json.message, /call cost exceeds limit/);
});

test('rules are not run over values of a wrong type', async () => {
  const answer = await server.request('POST', PATH, { body: ruled('r2', { min: 'x' }) });
  assert.match(answer.json.message, /some validation rules were not checked because the object was invalid/);
});

// S-154
test('a new rule does not bind what is not touched', async () => {
  const CRD = definition({ name: 'later', spec: { type: 'object', properties: { a: text, b: text } } });
  await establish(server, CRD);
  const LATERS = '/apis/example.com/v1/namespaces/default/laters';
  const later = { apiVersion: 'example.com/v1', kind: 'Later', metadata: { name: 'l' }, spec: { a: 'bad', b: 'x' } };
  await server.create(LATERS, later);
  const version = structuredClone(CRD.spec.versions[0]) as { schema: { openAPIV3Schema: { properties: object } } };
  const rule = { type: 'string', 'x-kubernetes-validations': [{ rule: "self != 'bad'" }] };
  version.schema.openAPIV3Schema.properties = { spec: { type: 'object', properties: { a: rule, b: rule } } };
  await server.request('PATCH', `${DEFINITIONS}/laters.example.com`, { body: { spec: { versions: [version] } } });
  await settled(server, 'laters.example.com');
  const change = (spec: object) => server.request('PATCH', `${LATERS}/l`, { body: { spec } });
  assert.equal((await change({ b: 'y' })).status, 200);
  assert.equal((await change({ b: 'bad' })).status, 422);
});
