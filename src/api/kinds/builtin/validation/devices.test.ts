import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseApiVersion } from '../../../meta/gvk.ts';
import { fieldErrorBody } from '../../../meta/status.ts';
import { builtinResource } from '../builtin-resources.ts';

type Json = Record<string, unknown>;

const infoOf = (resource: string) =>
  builtinResource({ ...parseApiVersion('resource.k8s.io/v1'), resource }) ?? assert.fail(resource);

/** Errors of the defaulted object as `field: message`. */
function errors(resource: string, object: Json, old?: Json): string[] {
  const info = infoOf(resource);
  for (const one of [object, old ?? {}]) info.setDefaults?.(one);
  return [...(info.validate?.(object, old) ?? [])].map((error) => `${error.field}: ${fieldErrorBody(error)}`);
}

const EXPRESSIONS: readonly (readonly [string, string | undefined])[] = [
  ["device.driver == 'a.example.com'", undefined],
  ["device.attributes['a.example.com'].model == 'm' && device.attributes['a.example.com'].size > 3", undefined],
  ["device.attributes['a.example.com'].shared", undefined],
  ["device.attributes['a.example.com'].?model.orValue('') == 'm'", undefined],
  ["device.attributes['a.example.com'].version.isGreaterThan(semver('1.0.0'))", undefined],
  ["device.capacity['a.example.com'].memory.compareTo(quantity('1Gi')) >= 0", undefined],
  ["cel.bind(a, device.attributes['a.example.com'], a.model == 'm' && a.size == 3)", undefined],
  ["device.allowMultipleAllocations || 'a.example.com' in device.capacity", undefined],
  ['device.driver', 'Invalid value: "device.driver": must evaluate to bool or the unknown type, not string'],
  ['dyn(true)', 'Invalid value: "dyn(true)": must evaluate to bool or the unknown type, not dyn'],
  [
    'device.model',
    'Invalid value: "device.model": compilation failed: ERROR: <input>:1:7: undefined field \'model\'\n | device.model\n | ......^',
  ],
  [
    "device.attributes['a'].b.all(x, true)",
    "Invalid value: \"device.attributes['a'].b.all(x, true)\": compilation failed: ERROR: <input>:1:23: expression of type 'any' cannot be range of a comprehension (must be list, map, or dynamic)\n | device.attributes['a'].b.all(x, true)\n | ......................^",
  ],
  ["int('x') == 1", "Internal error: program instantiation failed: type conversion error from 'string' to 'int'"],
  [
    'device.attributes.exists(d, device.attributes[d].exists(a, device.attributes.exists(e, device.attributes[e].exists(b, d + a == e + b))))',
    'Forbidden: too complex, exceeds cost limit',
  ],
  [`device.driver == '${'x'.repeat(10 * 1024)}'`, 'Too long: may not be more than 10240 bytes'],
];
for (const [expression, problem] of EXPRESSIONS) {
  // S-306: Device selectors are compiled when they are written, within their length and cost.
  test(`a selector ${expression.slice(0, 80)}: ${problem?.slice(0, 60) ?? 'fits'}`, () => {
    const selectors = [{ cel: { expression } }];
    const at = 'selectors[0].cel.expression';
    const expected = (path: string): string[] => (problem === undefined ? [] : [`${path}.${at}: ${problem}`]);
    assert.deepEqual(errors('deviceclasses', { spec: { selectors } }), expected('spec'));
    const request = { name: 'r', exactly: { deviceClassName: 'c', selectors } };
    assert.deepEqual(
      errors('resourceclaims', { spec: { devices: { requests: [request] } } }),
      expected('spec.devices.requests[0].exactly'),
    );
  });
}

// S-306
// Compat Types, P2, yes: rules and defaults of resource.k8s.io: claims, templates, slices, classes, the CEL of device
//   selectors; specs of claims do not change
test('no more than 32 selectors', () => {
  const selectors = Array.from({ length: 33 }, () => ({ cel: { expression: 'true' } }));
  assert.deepEqual(errors('deviceclasses', { spec: { selectors } }), [
    'spec.selectors: Too many: 33: must have at most 32 items',
  ]);
});

// S-262
test('claims', () => {
  const claim = (request: Json, more: Json = {}): Json => ({
    spec: { devices: { requests: [{ name: 'r', ...request }], ...more } },
  });
  const exactly = (fields: Json = {}): Json => ({ exactly: { deviceClassName: 'c', ...fields } });
  const at = 'spec.devices.requests[0]';
  const cases: [Json, string[]][] = [
    [claim(exactly()), []],
    [claim(exactly({ allocationMode: 'All' })), []],
    [claim({ firstAvailable: [{ name: 'a', deviceClassName: 'c' }] }), []],
    [claim({}), [`${at}: Required value: exactly one of \`exactly\` or \`firstAvailable\` is required`]],
    [claim({ exactly: {} }), [`${at}.exactly.deviceClassName: Required value`]],
    [
      claim(exactly({ allocationMode: 'All', count: 2 })),
      [`${at}.exactly.count: Invalid value: 2: must not be specified when allocationMode is 'All'`],
    ],
    [claim(exactly({ count: -1 })), [`${at}.exactly.count: Invalid value: -1: must be greater than zero`]],
    [claim(exactly({ selectors: [{}] })), [`${at}.exactly.selectors[0].cel: Required value`]],
    [
      claim(exactly(), { constraints: [{ requests: ['other'] }] }),
      [
        `spec.devices.constraints[0].requests[0]: Invalid value: "other": must be the name of a request in the claim or the name of a request and a subrequest separated by '/'`,
      ],
    ],
  ];
  for (const [object, wanted] of cases) assert.deepEqual(errors('resourceclaims', object), wanted);

  const [changed] = errors('resourceclaims', claim(exactly({ count: 2 })), claim(exactly()));
  assert.match(changed!, /^spec: Invalid value: .*: field is immutable$/);
  const template = (count: number): Json => ({ spec: claim(exactly({ count })) });
  assert.deepEqual(errors('resourceclaimtemplates', template(1)), []);
  assert.equal(errors('resourceclaimtemplates', template(2), template(1)).length, 1);

  const status = (fields: Json): Json => ({ ...claim(exactly()), status: fields });
  assert.deepEqual(
    errors('resourceclaims', status({ reservedFor: [{ resource: 'pods', name: 'p', uid: 'u' }] }), status({})),
    ['status.reservedFor: Forbidden: may not be specified when `allocated` is not set'],
  );
  const allocated = (request: string, device = 'd'): Json =>
    status({ allocation: { devices: { results: [{ request, driver: 'd.io', pool: 'p', device }] } } });
  assert.deepEqual(errors('resourceclaims', allocated('r'), status({})), []);
  assert.equal(errors('resourceclaims', allocated('other'), status({})).length, 1);
  assert.match(errors('resourceclaims', allocated('r', 'e'), allocated('r'))[0]!, /^status\.allocation: .* immutable$/);
});

// S-262
test('requests get a mode and a count', () => {
  const object = {
    spec: { devices: { requests: [{ exactly: {} }, { firstAvailable: [{ allocationMode: 'All' }, {}] }] } },
  };
  infoOf('resourceclaims').setDefaults?.(object);
  const one = { allocationMode: 'ExactCount', count: 1 };
  assert.deepEqual(object.spec.devices.requests, [
    { exactly: one },
    { firstAvailable: [{ allocationMode: 'All' }, one] },
  ]);
});

// S-262
test('slices and classes', () => {
  const slice = (spec: Json): Json => ({
    spec: { driver: 'd.io', nodeName: 'n', pool: { name: 'p', generation: 0, resourceSliceCount: 1 }, ...spec },
  });
  const one = 'exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required';
  const cases: [Json, string[]][] = [
    [slice({}), []],
    [slice({ nodeName: undefined, allNodes: true }), []],
    [slice({ nodeName: undefined }), [`spec: Required value: ${one}`]],
    [slice({ allNodes: true }), [`spec: Invalid value: "{\`nodeName\`, \`allNodes\`}": ${one}`]],
    [
      slice({ pool: { name: 'p', generation: -1, resourceSliceCount: 0 } }),
      [
        'spec.pool.resourceSliceCount: Invalid value: 0: must be greater than zero',
        'spec.pool.generation: Invalid value: -1: must be greater than or equal to zero',
      ],
    ],
    [slice({ devices: [{ name: 'a' }, { name: 'a' }] }), ['spec.devices[1]: Duplicate value: "a"']],
  ];
  for (const [object, wanted] of cases) assert.deepEqual(errors('resourceslices', object), wanted);
  assert.deepEqual(errors('resourceslices', slice({ driver: 'e.io' }), slice({})), [
    'spec.driver: Invalid value: "e.io": field is immutable',
  ]);
  assert.deepEqual(errors('deviceclasses', { spec: { selectors: [{}], config: [{}] } }), [
    'spec.selectors[0].cel: Required value',
    'spec.config[0].opaque: Required value',
  ]);
});
