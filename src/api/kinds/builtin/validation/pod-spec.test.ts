import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseApiVersion } from '../../../meta/gvk.ts';
import { fieldErrorBody } from '../../../meta/status.ts';
import { builtinResource } from '../builtin-resources.ts';

/** Errors of a Pod as `field: message`. */
function errors(spec: object, container: object = {}): string[] {
  const info = builtinResource({ ...parseApiVersion('v1'), resource: 'pods' }) ?? assert.fail();
  const pod = { spec: { containers: [{ name: 'c', image: 'i', ...container }], ...spec } };
  return [...(info.validate?.(pod) ?? [])].map((error) => `${error.field}: ${fieldErrorBody(error)}`);
}
const sysctls = (...names: string[]): object => ({
  securityContext: { sysctls: names.map((name) => ({ name, value: '1' })) },
});

test('sysctls are names that a kernel could have', () => {
  const at = 'spec.securityContext.sysctls';
  assert.deepEqual(errors(sysctls('kernel.shmmax', 'net/ipv4/ip_forward', 'safe-and-unsafe')), []);
  const rule =
    'must have at most 253 characters and match regex ([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?';
  assert.deepEqual(errors(sysctls('foo-', 'kernel.shmmax', 'bar..', '', 'kernel.shmmax')), [
    `${at}[0].name: Invalid value: "foo-": ${rule}`,
    `${at}[2].name: Invalid value: "bar..": ${rule}`,
    `${at}[3].name: Required value`,
    `${at}[4].name: Duplicate value: "kernel.shmmax"`,
  ]);
});

test('a sub-path stays below its volume', () => {
  const mounted = (mount: object): string[] =>
    errors({ volumes: [{ name: 'v', emptyDir: {} }] }, { volumeMounts: [{ name: 'v', mountPath: '/x', ...mount }] });
  const at = 'spec.containers[0].volumeMounts[0]';
  assert.deepEqual(mounted({ subPath: 'a/..b' }), []);
  assert.deepEqual(mounted({ subPath: '/a' }), [`${at}.subPath: Invalid value: "/a": must be a relative path`]);
  assert.deepEqual(mounted({ subPathExpr: 'a/../b' }), [
    `${at}.subPathExpr: Invalid value: "a/../b": must not contain '..'`,
  ]);
});

test('a container asks for resources that exist', () => {
  const asking = (name: string): string[] => errors({}, { resources: { limits: { [name]: '1' }, requests: {} } });
  for (const name of ['cpu', 'ephemeral-storage', 'hugepages-2Mi', 'example.com/gpu'])
    assert.deepEqual(asking(name), []);
  const at = 'spec.containers[0].resources.limits';
  assert.deepEqual(asking('invalid_resource'), [
    `${at}[invalid_resource]: Invalid value: "invalid_resource": must be a standard resource type or fully qualified`,
    `${at}[invalid_resource]: Invalid value: "invalid_resource": must be a standard resource for containers`,
  ]);
});
